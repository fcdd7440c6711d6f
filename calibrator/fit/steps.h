// SPDX-License-Identifier: Apache-2.0
// How far a fit is, and how long its stages took.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

/// Called with what is done and what there is to do; returns false to stop. From any thread.
using FitProgress = std::function<bool(std::size_t done, std::size_t total)>;

struct StageTime {
  std::string stage;
  double seconds = 0;
};

/// Counts steps of about equal work. Thread-safe but for expect().
class Steps {
 public:
  explicit Steps(const FitProgress& progress) : progress_(progress) {}
  void expect(std::size_t total) { total_ = total; }
  /// One more is done. False: stop.
  bool advance() { return progress_(std::min(done_.fetch_add(1) + 1, total_), total_); }

 private:
  const FitProgress& progress_;
  std::size_t total_ = 0;
  std::atomic<std::size_t> done_{0};
};

/// Runs body() -> Status and notes its time.
template <class Body>
Status timed(const Clock& clock, std::vector<StageTime>& times, const char* stage, Body body) {
  const auto start = clock.steady();
  const Status status = body();
  times.push_back({stage, std::chrono::duration<double>(clock.steady() - start).count()});
  return status;
}

}  // namespace eldr::calibrator
