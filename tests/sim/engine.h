// SPDX-License-Identifier: Apache-2.0
// The loop that runs a batch in time: one thread, sleeping to absolute deadlines.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/sim/batch.h"

namespace eldr::sim {

/// Thread-safe. Everything handed in must outlive it.
class Engine {
 public:
  /// `before_step` runs before sequences are admitted (leases expire there).
  Engine(const Clock& clock, const ModelShape& shape, const CostModel& cost, const BatchLimits& limits,
         KvPool& pool, Stats& stats, std::function<void()> before_step);
  ~Engine();  ///< what still runs fails

  bool submit(std::shared_ptr<Sequence> sequence);  ///< false: the queue is full or the engine has stopped
  void set_slowdown(double factor) { slowdown_ = factor; }
  std::size_t running() const;
  std::size_t waiting() const;

 private:
  void run();

  const Clock& clock_;
  Stats& stats_;
  const std::function<void()> before_step_;
  std::atomic<double> slowdown_{1.0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Batch batch_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace eldr::sim
