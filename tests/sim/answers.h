// SPDX-License-Identifier: Apache-2.0
// Writing answers of the OpenAI-compatible API as vLLM does: whole, and as server-sent events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/api.h"

namespace eldr::sim {

/// What is the same in every part of one answer.
struct AnswerHead {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string id;
  std::string model;
  std::int64_t created = 0;  ///< seconds since 1970
};

struct Usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
};

struct Choice {
  std::string text;
  std::string_view finish_reason;  ///< "stop", "length"
  std::string routed_experts;      ///< base64 of a .npy, empty: absent
};

/// A whole answer; `kv_transfer_params` may be null.
std::string whole_answer(const AnswerHead& head, const std::vector<Choice>& choices, const Usage& usage,
                         const nlohmann::json& kv_transfer_params);

/// Events of a streamed answer, each "data: …\n\n". What does not change is made once.
class EventWriter {
 public:
  explicit EventWriter(const AnswerHead& head);
  /// Chat begins each choice with its role. "" for completions.
  std::string opening(std::size_t choice) const;
  /// `finish_reason` empty: more follows.
  std::string token(std::size_t choice, std::string_view text, std::string_view finish_reason) const;
  std::string usage(const Usage& usage) const;
  static std::string error(const ApiError& error);
  static std::string_view done() { return "data: [DONE]\n\n"; }

 private:
  bool chat_;
  std::string prefix_;  // up to "choices":
};

/// base64 of a .npy of shape [rows][layers][top_k], uint8 where every id fits, else uint16.
std::string routed_experts_npy(const std::vector<std::uint16_t>& picks, std::size_t layers, std::size_t top_k,
                               std::uint32_t experts);

}  // namespace eldr::sim
