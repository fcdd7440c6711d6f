// SPDX-License-Identifier: Apache-2.0
// Speaks to an OpenAI-compatible engine that returns routed experts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "calibrator/collect/http_transport.h"
#include "calibrator/collect/routed_experts.h"
#include "calibrator/dataset/prompt.h"
#include "calibrator/failure.h"

namespace eldr::calibrator {

struct EngineOptions {
  std::string base_url = {};  ///< "http://host:port", with or without a slash at the end
  std::string model = {};
  std::uint32_t decode_tokens = 128;
  std::size_t top_k = 0;  ///< for SGLang's form
  bool keep_decode_experts = false;
  std::chrono::milliseconds request_timeout{600000};
};

/// Why one request gave no counts, and what that means for the others.
struct RequestFailure {
  enum class Kind {
    kRetry,      ///< may pass: connection lost, 5xx, 429, an answer cut short
    kBadPrompt,  ///< the engine refuses this prompt (400, 413, 422)
    kFatal,      ///< no request will do better: wrong model, no routed experts, credentials
    kStopped,    ///< stop was requested
  };
  Kind kind = Kind::kRetry;
  Failure failure;
  bool overloaded = false;      ///< the engine has too much to do: 429, 503, or no answer in time
  int retry_after_seconds = 0;  ///< as the engine said, or 0
};

/// Thread-safe. The transport must outlive it.
class EngineClient {
 public:
  EngineClient(HttpTransport& transport, EngineOptions options);

  /// Whether GET /health answers 200. The error says why not.
  Status health(const std::stop_token& stop) const;
  /// That the model is served: GET /v1/models. Exit code 78 names what is served instead, 69 when the engine
  /// does not answer.
  Outcome check_model(const std::stop_token& stop) const;
  /// Generates and counts. Sends temperature 0 where the prompt does not say.
  tl::expected<RequestCounts, RequestFailure> run(const Prompt& prompt, const std::stop_token& stop) const;

 private:
  std::string request_body(const Prompt& prompt) const;

  HttpTransport& transport_;
  EngineOptions options_;
};

/// An error text of an engine that is fit for a log: one line, not long, and without what stands in quotes,
/// which may be the prompt.
std::string loggable(const std::string& engine_message);

}  // namespace eldr::calibrator
