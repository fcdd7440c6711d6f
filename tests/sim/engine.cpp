// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/engine.h"

#include <algorithm>

namespace eldr::sim {
namespace {

// How soon to look again when requests wait for blocks that leases hold.
constexpr auto kBlockedRetry = std::chrono::milliseconds(20);

}  // namespace

Engine::Engine(const Clock& clock, const ModelShape& shape, const CostModel& cost, const BatchLimits& limits,
               KvPool& pool, Stats& stats, std::function<void()> before_step)
    : clock_(clock),
      stats_(stats),
      before_step_(std::move(before_step)),
      batch_(shape, cost, limits, pool),
      thread_([this] { run(); }) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

bool Engine::submit(std::shared_ptr<Sequence> sequence) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || !batch_.submit(std::move(sequence))) {
    return false;
  }
  changed_.notify_all();
  return true;
}

std::size_t Engine::running() const {
  const std::lock_guard lock(mutex_);
  return batch_.running();
}

std::size_t Engine::waiting() const {
  const std::lock_guard lock(mutex_);
  return batch_.waiting();
}

void Engine::run() {
  std::unique_lock lock(mutex_);
  Clock::Steady step_end{};
  while (!stopping_) {
    if (!batch_.has_work()) {
      changed_.wait(lock, [this] { return stopping_ || batch_.has_work(); });
      continue;
    }
    before_step_();
    const double step_us = batch_.begin_step() * slowdown_.load();
    const Clock::Steady now = clock_.steady();
    if (step_us <= 0 && batch_.running() == 0) {
      changed_.wait_for(lock, kBlockedRetry, [this] { return stopping_; });
      continue;
    }
    // Steps follow one another without drift; after a pause, or when the machine lags, the present counts.
    const auto length = std::chrono::duration_cast<Clock::Steady::duration>(
        std::chrono::duration<double, std::micro>(step_us));
    step_end = std::max(step_end + length, now);
    if (step_end < now + length / 2) {
      step_end = now + length;
    }
    changed_.wait_until(lock, step_end, [this] { return stopping_; });
    if (!stopping_) {
      batch_.end_step(clock_.steady(), stats_);
    }
  }
  batch_.fail_all();
}

}  // namespace eldr::sim
