// SPDX-License-Identifier: Apache-2.0
// How many requests may be in flight: additive increase, multiplicative decrease (Chiu and Jain 1989).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace eldr::calibrator {

/// Thread-safe. Starts at `most`; an overload halves the limit (never below 1), and every full round of
/// successes adds one again.
class AdaptiveLimit {
 public:
  explicit AdaptiveLimit(unsigned most) : most_(most), limit_(most) {}

  /// Waits for a place; false when stop was requested.
  bool acquire(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const bool got = changed_.wait(lock, stop, [&] { return in_flight_ < static_cast<unsigned>(limit_); });
    if (got) {
      ++in_flight_;
    }
    return got;
  }
  void release(bool overloaded) {
    const std::lock_guard lock(mutex_);
    --in_flight_;
    limit_ = overloaded ? std::max(1.0, limit_ / 2) : std::min<double>(most_, limit_ + 1.0 / limit_);
    changed_.notify_all();
  }
  unsigned limit() const {
    const std::lock_guard lock(mutex_);
    return static_cast<unsigned>(limit_);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  unsigned most_;
  double limit_;
  unsigned in_flight_ = 0;
};

}  // namespace eldr::calibrator
