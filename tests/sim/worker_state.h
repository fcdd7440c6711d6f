// SPDX-License-Identifier: Apache-2.0
// What a worker's request handlers share. Private to the worker.
#pragma once

#include <atomic>
#include <string>

#include "tests/sim/engine.h"
#include "tests/sim/faults.h"
#include "tests/sim/kv_pool.h"
#include "tests/sim/metrics.h"
#include "tests/sim/prefix_cache.h"
#include "tests/sim/stats.h"
#include "tests/sim/worker.h"

namespace eldr::sim {

/// Hands each observation to statistics and metrics.
class BothStats final : public Stats {
 public:
  BothStats(Stats& first, Stats& second) : first_(first), second_(second) {}
  void on_step(std::size_t running, std::size_t decoding, double distinct) override {
    first_.on_step(running, decoding, distinct);
    second_.on_step(running, decoding, distinct);
  }
  void on_token(const Sequence& sequence, Clock::Steady now, bool decoded, double distinct) override {
    first_.on_token(sequence, now, decoded, distinct);
    second_.on_token(sequence, now, decoded, distinct);
  }
  void on_finished(const Sequence& sequence, Clock::Steady now) override {
    first_.on_finished(sequence, now);
    second_.on_finished(sequence, now);
  }

 private:
  Stats& first_;
  Stats& second_;
};

struct WorkerState {
  WorkerState(WorkerOptions o, const ExpertModel& m, const Clock& c, WorkerHooks h)
      : options(std::move(o)),
        model(m),
        clock(c),
        hooks(std::move(h)),
        engine_id(hex(hash_text("engine", options.instance))),
        pool(options.kv_blocks),
        leases(clock, pool, options.lease),
        prefix_cache(options.kv_blocks),
        metrics(options.model),
        both(stats, metrics),
        engine(clock, model.shape(), options.cost, options.batch, pool, both, [this] { leases.expire(); }) {}

  static std::string hex(std::uint64_t value) {
    std::string text(16, '0');
    for (std::size_t i = 0; i < text.size(); ++i) {
      text[text.size() - 1 - i] = "0123456789abcdef"[(value >> (4 * i)) & 0xFU];
    }
    return text;
  }
  std::string next_id() { return hex(hash_text("request", options.instance + ++serial)); }

  const WorkerOptions options;
  const ExpertModel& model;
  const Clock& clock;
  const WorkerHooks hooks;
  const std::string engine_id;
  std::atomic<std::uint16_t> port{0};
  std::atomic<std::uint64_t> serial{0};
  std::atomic<int> generating{0};
  FaultBoard faults;
  KvPool pool;
  LeaseTable leases;
  PrefixCache prefix_cache;
  LabelStats stats;
  Metrics metrics;
  BothStats both;
  Engine engine;  // last: its thread uses the above
};

}  // namespace eldr::sim
