// SPDX-License-Identifier: Apache-2.0
// One line of a data set: what is sent to the engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/status.h"

namespace eldr::calibrator {

enum class PromptKind {
  kCompletion,  ///< POST /v1/completions
  kChat,        ///< POST /v1/chat/completions
};

/// A value type. Its text never reaches a log.
struct Prompt {
  PromptKind kind = PromptKind::kCompletion;
  std::string body =
      {};  ///< a JSON object: the line's request without label, model and what the collector decides
  std::string label = {};  ///< empty: none
  std::uint64_t line = 0;  ///< number in the data set, from 1
};

/// Longest line and deepest nesting that are read.
inline constexpr std::size_t kMaxLine = std::size_t{16} << 20U;
inline constexpr int kMaxDepth = 64;

/// {"prompt": text or token ids}, {"messages": […]}, a whole OpenAI body with either, or a batch line whose
/// "body" is one; each with an optional "label" (text or a whole number). Fields of a body that say how much
/// to generate, how often, or how to send it are dropped: the collector sets those. kInvalid says what is
/// wrong with the line, without quoting it.
Result<Prompt> parse_prompt(std::string_view line, std::uint64_t number);

}  // namespace eldr::calibrator
