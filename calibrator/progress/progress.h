// SPDX-License-Identifier: Apache-2.0
// How far a calibration is, told to people: a bar on a terminal, log lines in a pod, an annotation for the
// operator (publish/annotation_progress.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"

namespace eldr::calibrator {

enum class Stage { kWaiting, kCollecting, kFitting, kPublishing };
/// "Waiting", "Collecting", "Fitting", "Publishing": as the operator shows them.
std::string_view name_of(Stage stage);

struct ProgressState {
  Stage stage = Stage::kWaiting;
  std::size_t done = 0;
  std::size_t total = 0;     ///< 0: unknown
  double per_second = 0;     ///< since the stage began; 0: unknown
  double seconds_left = -1;  ///< < 0: unknown
  bool stage_began = false;  ///< the first report of this stage
  bool finished() const { return total > 0 && done >= total; }
};

/// Something that shows progress. Called by one thread at a time; must not block for long.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  virtual void show(const ProgressState& state) = 0;
  /// Least time between two reports of one stage; a stage's first and last always come.
  virtual std::chrono::milliseconds interval() const = 0;
};

/// Thread-safe. Within a stage the number done never goes back. The clock must outlive it.
class Progress {
 public:
  explicit Progress(const Clock& clock) : clock_(clock) {}
  void add_sink(std::shared_ptr<ProgressSink> sink);
  /// It is shown nothing more once this returns.
  void remove_sink(const std::shared_ptr<ProgressSink>& sink);
  void update(Stage stage, std::size_t done, std::size_t total);

 private:
  struct Entry {
    std::shared_ptr<ProgressSink> sink;
    Clock::Steady shown{};
  };
  const Clock& clock_;
  std::mutex mutex_;
  std::vector<Entry> sinks_;
  ProgressState state_;
  bool any_ = false;
  std::size_t first_done_ = 0;
  Clock::Steady stage_start_{};
};

}  // namespace eldr::calibrator
