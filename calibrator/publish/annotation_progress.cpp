// SPDX-License-Identifier: Apache-2.0
#include "calibrator/publish/annotation_progress.h"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace eldr::calibrator {

AnnotationProgress::AnnotationProgress(const Publisher& publisher)
    : publisher_(publisher), thread_([this](const std::stop_token& stop) { run(stop); }) {}

AnnotationProgress::~AnnotationProgress() =
    default;  // the thread is the last member: stopped and joined first

void AnnotationProgress::show(const ProgressState& state) {
  {
    const std::lock_guard lock(mutex_);
    newest_ = state;
  }
  changed_.notify_one();
}

Status AnnotationProgress::annotate(const ProgressState& state, const std::stop_token& stop) const {
  try {
    return publisher_.annotate_progress(
        {{"stage", name_of(state.stage)}, {"done", state.done}, {"total", state.total}}, stop);
  } catch (const std::bad_alloc&) {  // the work itself will say so, if it is as short of memory
    return failure(Code::kResourceExhausted, "out of memory");
  }
}

void AnnotationProgress::run(const std::stop_token& stop) {
  bool failing = false;
  while (true) {
    ProgressState state;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return newest_.has_value(); }) || stop.stop_requested()) {
        return;
      }
      state = *newest_;
      newest_.reset();
    }
    const Status sent = annotate(state, stop);
    if (!sent && !failing && !stop.stop_requested()) {
      spdlog::warn("progress annotation: {}", sent.error().message);
    }
    failing = !sent;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, interval(), [] { return false; });
  }
}

}  // namespace eldr::calibrator
