// SPDX-License-Identifier: Apache-2.0
// Waiting behind an interface, so that tests do not.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace eldr::calibrator {

/// Thread-safe.
class Sleeper {
 public:
  virtual ~Sleeper() = default;
  /// False when stop was requested before the time was over.
  virtual bool sleep(std::chrono::milliseconds time, const std::stop_token& stop) = 0;
};

class RealSleeper final : public Sleeper {
 public:
  bool sleep(std::chrono::milliseconds time, const std::stop_token& stop) override {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, time, [] { return false; });
    return !stop.stop_requested();
  }
};

}  // namespace eldr::calibrator
