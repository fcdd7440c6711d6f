// SPDX-License-Identifier: Apache-2.0
// GET /metrics with vLLM's names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/sim/stats.h"

namespace eldr::sim {

/// Thread-safe.
class Metrics final : public Stats {
 public:
  explicit Metrics(const std::string& model);
  ~Metrics() override;

  void on_step(std::size_t running, std::size_t decoding, double distinct) override;
  void on_token(const Sequence& sequence, Clock::Steady now, bool decoded, double distinct) override;
  void on_finished(const Sequence& sequence, Clock::Steady now) override;

  struct Gauges {
    std::size_t running = 0;
    std::size_t waiting = 0;
    double kv_usage = 0;  ///< 0..1
  };
  void on_prompt(std::uint32_t tokens, std::uint32_t cached);
  std::string text(const Gauges& gauges);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace eldr::sim
