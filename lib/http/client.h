// SPDX-License-Identifier: Apache-2.0
// A small blocking HTTP/1.1 client without TLS, one connection a request: for simulated workers and tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/status.h"
#include "lib/http/message.h"

namespace eldr::http {

struct ClientRequest {
  std::string host;  ///< numeric address or name
  std::uint16_t port = 0;
  std::string method = "GET";
  std::string target = "/";
  Headers headers = {};  ///< Host, Content-Length and Connection are set by the client
  std::string body = {};
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;  ///< empty where a sink took it

  std::string_view header(std::string_view name) const { return find_header(headers, name); }
};

struct ClientLimits {
  std::chrono::milliseconds deadline{10'000};  ///< for the whole exchange
  std::size_t max_body = 64U << 20U;           ///< bytes, with and without a sink
};

/// Receives the body piece by piece as it arrives (chunk framing removed). Return false to hang up.
using BodySink = std::function<bool(std::string_view)>;

/// Sends and waits for the whole answer. kTimeout, kUnavailable (refused, reset, ended early), kInvalid (not
/// HTTP), kResourceExhausted (body over the limit), kCancelled (the sink returned false). Thread-safe.
Result<ClientResponse> fetch(const ClientRequest& request, const ClientLimits& limits = {},
                             const BodySink& sink = {});

}  // namespace eldr::http
