// SPDX-License-Identifier: Apache-2.0
// The narrow interface between the client and an HTTP library. One implementation speaks through cpprestsdk
// (cpprest_transport.h), another is a fake in the tests.
//
// Thread-safety: a Transport is used by many threads at once. A WatchStream belongs to one thread, but
// abort() may come from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "lib/base/status.h"

namespace eldr::kube {

struct HttpRequest {
  std::string method{};        ///< "GET", "POST", "PUT", "PATCH", "DELETE"
  std::string target{};        ///< path and query, percent-encoded, relative to the server's address
  std::string content_type{};  ///< of `body`; empty without a body
  std::string body{};
  std::chrono::milliseconds timeout{
      30'000};  ///< total, from the call to the last byte; for a stream, to its headers
  std::size_t max_body = std::size_t{64} << 20;  ///< bytes of answer body; more is kResourceExhausted
  std::stop_token
      stop;  ///< when stop is requested the call ends soon with kCancelled, and so does a stream's read()
};

struct HttpResponse {
  int status = 0;  ///< any HTTP status: judging it is the caller's business
  std::string body{};
  int retry_after_seconds = 0;  ///< from Retry-After in seconds; 0 when absent
};

/// A body that arrives over minutes. Destroying it closes the connection.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  /// Waits for bytes and returns what is there: at least one byte, or "" at the regular end of the body.
  /// Errors: kTimeout when nothing came within `wait` (the stream is still good), kCancelled after abort() or
  /// stop, anything else when the connection broke.
  virtual Result<std::string> read(std::chrono::milliseconds wait) = 0;
  /// Makes a read() in progress, and all later ones, return kCancelled. Never blocks.
  virtual void abort() = 0;
};

/// What open_stream() gives: a stream when the status is 200, else the whole (bounded) answer.
struct StreamResponse {
  HttpResponse head;                    ///< body filled only when there is no stream
  std::unique_ptr<WatchStream> stream;  ///< nullptr unless status is 200
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// One request, one answer. Errors: kTimeout, kUnavailable (refused, reset, TLS failure),
  /// kResourceExhausted, kCancelled. Must not be called on a thread of the HTTP library.
  virtual Result<HttpResponse> send(const HttpRequest& request) = 0;
  /// `longest` is how long the stream may live: the server's timeoutSeconds and a margin.
  virtual Result<StreamResponse> open_stream(const HttpRequest& request,
                                             std::chrono::milliseconds longest) = 0;
};

}  // namespace eldr::kube
