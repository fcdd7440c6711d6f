// SPDX-License-Identifier: Apache-2.0
// The calibrator's view of HTTP, narrow enough for a fake in tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>

#include "lib/base/status.h"

namespace eldr::calibrator {

struct HttpCall {
  std::string method = "GET";
  std::string url = {};
  std::string body = {};  ///< sent as application/json when not empty
  std::chrono::milliseconds timeout{30000};
  std::size_t max_answer = std::size_t{1} << 20U;  ///< bytes of answer body
  std::stop_token stop = {};
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  int retry_after_seconds = 0;
};

/// Thread-safe.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  /// Any HTTP status is an answer. kUnavailable: refused, reset, cut short; kTimeout; kResourceExhausted:
  /// over max_answer; kCancelled; kInvalid: not a URL.
  virtual Result<HttpAnswer> send(const HttpCall& call) = 0;
};

}  // namespace eldr::calibrator
