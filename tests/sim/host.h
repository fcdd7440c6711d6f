// SPDX-License-Identifier: Apache-2.0
// A worker on its port: listens, refuses connections for a while when the fault says so, drains at the end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "lib/http/server.h"
#include "tests/sim/worker.h"

namespace eldr::sim {

/// Thread-safe.
class Host {
 public:
  /// `hooks.refuse_connections` is replaced by the host's own.
  static Result<std::unique_ptr<Host>> start(http::ServerOptions server, WorkerOptions options,
                                             const ExpertModel& model, const Clock& clock, WorkerHooks hooks);
  ~Host();  ///< stop(0)

  std::uint16_t port() const { return server_options_.port; }
  Worker& worker() { return *worker_; }
  /// No new connections; running requests have `grace` to end. Idempotent.
  void stop(std::chrono::milliseconds grace);

 private:
  explicit Host(http::ServerOptions server) : server_options_(std::move(server)) {}
  Status listen();
  void refuse_when_asked();

  http::ServerOptions server_options_;
  std::unique_ptr<Worker> worker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<http::Server> server_;  // guarded by mutex_
  std::chrono::milliseconds refuse_for_{0};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace eldr::sim
