// SPDX-License-Identifier: Apache-2.0
#include "calibrator/progress/progress.h"

#include <algorithm>

namespace eldr::calibrator {

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::kWaiting:
      return "Waiting";
    case Stage::kCollecting:
      return "Collecting";
    case Stage::kFitting:
      return "Fitting";
    case Stage::kPublishing:
      return "Publishing";
  }
  return "Unknown";
}

void Progress::add_sink(std::shared_ptr<ProgressSink> sink) {
  const std::lock_guard lock(mutex_);
  sinks_.push_back({std::move(sink), {}});
}

void Progress::remove_sink(const std::shared_ptr<ProgressSink>& sink) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sinks_, [&](const Entry& entry) { return entry.sink == sink; });
}

void Progress::update(Stage stage, std::size_t done, std::size_t total) {
  const std::lock_guard lock(mutex_);
  const auto now = clock_.steady();
  const bool began = !any_ || stage != state_.stage;
  if (began) {
    any_ = true;
    stage_start_ = now;
    first_done_ = done;
  } else {
    done = std::max(done, state_.done);  // reports of several threads may arrive out of order
  }
  const bool was_finished = !began && state_.finished();
  state_ = {.stage = stage, .done = done, .total = total, .stage_began = began};
  const double elapsed = std::chrono::duration<double>(now - stage_start_).count();
  if (elapsed > 0 && done > first_done_) {
    state_.per_second = static_cast<double>(done - first_done_) / elapsed;
    state_.seconds_left = static_cast<double>(total - std::min(done, total)) / state_.per_second;
  }
  const bool due_for_all = began || (state_.finished() && !was_finished);
  for (Entry& entry : sinks_) {
    if (due_for_all || now - entry.shown >= entry.sink->interval()) {
      entry.shown = now;
      entry.sink->show(state_);
    }
  }
}

}  // namespace eldr::calibrator
