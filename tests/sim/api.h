// SPDX-License-Identifier: Apache-2.0
// Reading requests of the OpenAI-compatible API as vLLM does, its error bodies included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace eldr::sim {

enum class Endpoint { kCompletions, kChat };

/// An answer like vLLM's {"error": {"message", "type", "param", "code"}}.
struct ApiError {
  int status = 400;
  std::string type = "BadRequestError";
  std::string message;
  std::string param;  ///< null in the answer when empty

  std::string to_json() const;
};
ApiError internal_server_error();  ///< what vLLM says when a request failed inside, a KV load for example

struct Prompt {
  std::string text;  ///< token ids in decimal where the client sent ids
  std::vector<std::uint32_t> tokens;
};

/// What the body's kv_transfer_params say, as far as the NIXL pull connector looks.
struct KvParams {
  bool do_remote_decode = false;
  bool do_remote_prefill = false;
  bool complete = false;  ///< everything that a pull needs is there
  std::string remote_engine_id;
  std::string remote_request_id;
  std::string remote_host;
  std::uint16_t remote_port = 0;
  bool has_eldr = false;
  std::vector<std::int64_t> eldr_layers;  ///< asked for by the router; empty: all
};

struct GenerationRequest {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model;  ///< empty: the client named none
  std::vector<Prompt> prompts;
  std::uint32_t n = 1;
  std::optional<std::uint32_t> max_tokens;
  std::uint32_t min_tokens = 0;
  bool ignore_eos = false;
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  KvParams kv;
};

/// At most so many answers in one request (prompts times n).
inline constexpr std::size_t kMostChoices = 128;

tl::expected<GenerationRequest, ApiError> parse_generation(Endpoint endpoint, std::string_view body);
/// {"prompt": …} or {"messages": …}.
tl::expected<Prompt, ApiError> parse_tokenize(std::string_view body);

}  // namespace eldr::sim
