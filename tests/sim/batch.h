// SPDX-License-Identifier: Apache-2.0
// Continuous batching, step by step: who runs, how long the step takes, who has a token after it. No clock,
// no threads.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "lib/base/clock.h"
#include "tests/sim/kv_pool.h"
#include "tests/sim/sequence.h"
#include "tests/sim/stats.h"

namespace eldr::sim {

/// Time of a step, microseconds. One MoE layer takes step_a + step_b * (distinct active experts); the
/// simulated layers stand for layer_scale times as many.
struct CostModel {
  double step_a_us = 25.7;  ///< Qwen3-30B-A3B on an H100 in bf16, fitted on aiconfigurator's measurements
  double step_b_us = 3.10;
  double layer_scale = 6;  ///< 8 simulated layers for 48
  double prefill_us = 20;  ///< for each prompt token computed
  double time_scale = 1;   ///< everything, times this
};

struct BatchLimits {
  std::size_t max_running = 256;         ///< sequences in a step
  std::size_t max_waiting = 4096;        ///< more are refused
  std::uint32_t max_step_tokens = 8192;  ///< prompt tokens computed in a step
};

/// Not thread-safe; the engine guards it.
class Batch {
 public:
  Batch(const ModelShape& shape, const CostModel& cost, const BatchLimits& limits, KvPool& pool);

  bool submit(std::shared_ptr<Sequence> sequence);  ///< false: the queue is full
  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  std::size_t running() const { return running_.size(); }
  std::size_t waiting() const { return waiting_.size(); }

  /// Drops the cancelled, admits what fits and draws this step's experts. The step's time in microseconds,
  /// without faults; 0 when nothing can run (empty, or no free blocks).
  double begin_step();
  /// Each running sequence has one more token; those that are done leave. `stats` hears of all.
  void end_step(Clock::Steady now, Stats& stats);
  /// Everything leaves, failed.
  void fail_all();

 private:
  void drop_cancelled();
  void leave(Sequence& sequence);
  double admit();
  double draw_decode_tokens();

  const ModelShape& shape_;
  const CostModel cost_;
  const BatchLimits limits_;
  KvPool& pool_;
  std::deque<std::shared_ptr<Sequence>> waiting_;
  std::vector<std::shared_ptr<Sequence>> running_;
  std::vector<std::uint16_t> picks_;   // [L][K], one token
  std::vector<std::uint64_t> active_;  // [L][words], experts of the step as bits
  std::size_t decoding_ = 0;           // sequences whose step reads experts for a decode token
  double distinct_ = 0;                // mean over layers of distinct active experts, this step
};

}  // namespace eldr::sim
