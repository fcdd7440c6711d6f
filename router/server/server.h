// SPDX-License-Identifier: Apache-2.0
// The data port: threads, listener, drain. Boost.Asio stays behind this header.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/base/status.h"
#include "lib/http/listen_address.h"

namespace eldr::router {

struct ServerShared;

/// Thread-safe. Owns its threads: each has an event loop, its share of the connections, its own pool of
/// connections to workers, and no lock on a request's way.
class DataServer {
 public:
  struct Options {
    http::ListenAddress listen;
    std::size_t threads = 0;                 ///< 0: one a core
    std::uint64_t seed = 0;                  ///< of the numbers that break ties
    std::chrono::milliseconds load_poll{0};  ///< 0: workers' load is not polled
  };
  /// Binds, listens, serves. `shared.routing` is set; `shared` outlives the server. kUnavailable: cannot
  /// bind.
  static Result<std::unique_ptr<DataServer>> start(ServerShared& shared, Options options);
  ~DataServer();  ///< stops at once
  DataServer(const DataServer&) = delete;
  DataServer& operator=(const DataServer&) = delete;

  std::uint16_t port() const;

  /// Takes no new connections, closes idle ones, answers with "Connection: close", and waits until every
  /// request has ended or `limit` has passed. True: all ended.
  bool drain(std::chrono::milliseconds limit);
  /// Ends everything now. Idempotent.
  void stop();

 private:
  class Impl;
  explicit DataServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eldr::router
