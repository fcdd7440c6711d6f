// SPDX-License-Identifier: Apache-2.0
// What a worker counts: for GET /sim/stats (since the last reset) and for GET /metrics (since the start).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/sequence.h"

namespace eldr::sim {

/// Hears what the batch does. Separate from Stats' readers so that tests can listen.
class Stats {
 public:
  virtual ~Stats() = default;
  /// `running` sequences in the step, `decoding` of them read experts for a decode token, `distinct` active
  /// experts (mean over layers).
  virtual void on_step(std::size_t running, std::size_t decoding, double distinct) = 0;
  /// Before Sequence::last_token is updated.
  virtual void on_token(const Sequence& sequence, Clock::Steady now, bool decoded, double distinct) = 0;
  virtual void on_finished(const Sequence& sequence, Clock::Steady now) = 0;
};

/// Sums by label. Thread-safe.
class LabelStats final : public Stats {
 public:
  void on_step(std::size_t running, std::size_t decoding, double distinct) override;
  void on_token(const Sequence& sequence, Clock::Steady now, bool decoded, double distinct) override;
  void on_finished(const Sequence& sequence, Clock::Steady now) override;

  /// A named event: "kv_pull_failed", "fault_drop".
  void count(const std::string& event);
  void reset();
  /// README.md lists the fields. Means are null where nothing was counted.
  nlohmann::json to_json() const;

 private:
  static constexpr std::size_t kMostLabels =
      64;  // labels come from clients; the rest is counted as "(other)"

  struct Sums {
    std::uint64_t requests = 0;
    std::uint64_t tokens = 0;
    std::uint64_t decode_tokens = 0;  // tokens whose step read experts for them
    double distinct = 0;              // sum over decode tokens
    std::uint64_t timed_requests = 0;
    double seconds_per_token = 0;  // sum over timed requests
  };
  static nlohmann::json json_of(const Sums& sums);
  Sums& sums_of(const std::string& label);

  mutable std::mutex mutex_;
  std::map<std::string, Sums> by_label_;
  Sums all_;
  std::uint64_t steps_ = 0;     // steps with a decode token
  std::uint64_t decoding_ = 0;  // sum over them
  double distinct_ = 0;         // sum over them
  std::map<std::string, std::uint64_t> events_;
};

}  // namespace eldr::sim
