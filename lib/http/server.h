// SPDX-License-Identifier: Apache-2.0
// A small blocking HTTP/1.1 server for admin ports, simulated workers and tests: one thread a connection,
// every size and every wait limited. It is not meant for the router's traffic.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/status.h"
#include "lib/http/message.h"

namespace eldr::http {

/// One whole request. A value: the handler may keep it.
struct Request {
  std::string method;  ///< as sent, upper case: "GET"
  std::string target;  ///< as sent: "/metrics?x=1"
  std::string path;    ///< target up to '?'
  std::string query;   ///< target after '?', empty without
  Headers headers;     ///< in order
  std::string body;    ///< decoded, at most ServerOptions::max_body
  std::string
      local_address;  ///< the address that the client reached us on, without port: "10.244.0.7", "::1"

  /// First value of that name (case does not matter), or empty.
  std::string_view header(std::string_view name) const { return find_header(headers, name); }
};

/// The answer to one request: respond() once; or start(), write() any number of times, finish(). An answer
/// that is not begun when the handler returns becomes a 500; one that is begun and not finished drops the
/// connection. Not thread-safe: one thread at a time, which need not be the handler's as long as the handler
/// waits. Errors: kUnavailable, the client is gone or the server stops; kTimeout, the client does not read;
/// kInvalid, a header that may not be sent or calls out of order. After an error nothing more is sent.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;
  virtual Status respond(int status, std::string_view content_type, std::string_view body,
                         Headers extra = {}) = 0;
  /// Begins a chunked answer (until close for HTTP/1.0); the head goes out with the first chunk.
  virtual Status start(int status, std::string_view content_type, Headers extra = {}) = 0;
  virtual Status write(
      std::string_view chunk) = 0;  ///< sent at once, one system call; "" sends the head alone
  virtual Status finish() = 0;
  virtual void abort() = 0;        ///< drop the connection with a reset, as a crashed worker would
  virtual bool client_gone() = 0;  ///< the client closed or reset; cheap, does not block
};

/// Runs on the connection's thread. An exception that leaves it counts as an answer not finished.
using Handler = std::function<void(const Request&, ResponseWriter&)>;

struct ServerOptions {
  std::string address = "127.0.0.1";                ///< numeric; "0.0.0.0", "::"
  std::uint16_t port = 0;                           ///< 0: a free one, see Server::port
  std::size_t max_connections = 256;                ///< one more gets 503 and is closed
  std::size_t max_header = 16U << 10U;              ///< bytes of request line and headers; more: 431
  std::size_t max_body = 8U << 20U;                 ///< bytes; more: 413
  std::chrono::milliseconds read_timeout{10'000};   ///< from a request's first byte to its last; later: 408
  std::chrono::milliseconds write_timeout{10'000};  ///< for each write; later: the connection is dropped
  std::chrono::milliseconds idle_timeout{60'000};   ///< between requests; later: closed
};

/// Thread-safe. Owns its threads: none is left when stop() or the destructor returns.
class Server {
 public:
  /// Binds, listens and starts to serve. kInvalid: not a numeric address; kUnavailable: cannot bind.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options, Handler handler);
  ~Server();  ///< stop(0)
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  std::size_t connections() const;  ///< open now
  std::size_t in_flight() const;    ///< requests whose handler runs now

  /// Stops to accept, closes idle connections, lets handlers finish for `grace`, then drops their connections
  /// (writes fail, client_gone() is true) and waits for the handlers to return. Idempotent.
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eldr::http
