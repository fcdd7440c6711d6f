// SPDX-License-Identifier: Apache-2.0
// A worker whose every answer a test decides. Records what it was asked.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/http/server.h"

namespace eldr::router::testing {

/// Copies share one count, so that a worker's answer may go on after the test that reads it. Thread-safe.
class SharedCount {
 public:
  void add() const { ++*count_; }
  int value() const { return *count_; }

 private:
  std::shared_ptr<std::atomic<int>> count_ = std::make_shared<std::atomic<int>>(0);
};

/// Thread-safe.
class FakeWorker {
 public:
  using Answer = std::function<void(const http::Request&, http::ResponseWriter&)>;
  explicit FakeWorker(Answer answer, std::chrono::milliseconds idle = std::chrono::seconds(60));
  ~FakeWorker();

  std::uint16_t port() const { return server_->port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }
  std::string id() const { return "127.0.0.1:" + std::to_string(port()); }

  void answer_with(Answer answer);
  /// Every POST so far.
  std::vector<http::Request> requests() const;
  std::size_t count() const;
  /// Connections open now: for what keep-alive does.
  std::size_t connections() const { return server_->connections(); }

  void stop();

 private:
  mutable std::mutex mutex_;
  Answer answer_;
  std::vector<http::Request> requests_;
  std::unique_ptr<http::Server> server_;
};

/// A prefill worker's usual answer, with `eldr` (JSON text, may be empty) in its transfer parameters.
FakeWorker::Answer prefilled(const std::string& eldr = "");
/// Streams `pieces` as server-sent events where the body says "stream":true, else one completion.
FakeWorker::Answer decoded(int pieces = 3, std::chrono::milliseconds pause = std::chrono::milliseconds(0));
FakeWorker::Answer status_answer(int status, const std::string& body);
/// Says nothing until the client goes, at most 20 s. Counts the clients that went.
FakeWorker::Answer hangs(const SharedCount& went = {});
/// Streams pieces until the client goes, at most 20 s. Counts the clients that went.
FakeWorker::Answer streams_on(const SharedCount& went = {});

}  // namespace eldr::router::testing
