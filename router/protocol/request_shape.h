// SPDX-License-Identifier: Apache-2.0
// What the router needs to know of a completion request, read from the byte ranges of its members.
#pragma once

#include <string_view>

#include "lib/base/status.h"
#include "router/protocol/json_members.h"

namespace eldr::router {

enum class Api { kCompletions, kChat };

/// Why a request cannot go through two legs. Such a request is sent whole to one decode worker, which
/// prefills it by itself: always right, without locality.
enum class Whole {
  kNo,
  kManyPrompts,     ///< several prompts in one body: the transfer parameters would be the first one's only
  kSeveralChoices,  ///< n, best_of over 1 or beam search: the blocks are pulled once
  kPromptLogprobs,  ///< log-probabilities of the prompt need the whole prompt computed where they are asked
};
std::string_view name_of(Whole whole);  ///< "", "many_prompts", "several_choices", "prompt_logprobs"

struct RequestShape {
  bool stream = false;
  Whole whole = Whole::kNo;
  /// Raw JSON bytes of the prompt or of the messages (views into the body): for the prefix hash alone.
  std::string_view prompt;
};

/// kInvalid, worded for the client, when a member the router must understand has the wrong type.
Result<RequestShape> read_shape(const JsonObject& body, Api api);

}  // namespace eldr::router
