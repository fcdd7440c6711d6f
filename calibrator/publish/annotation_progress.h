// SPDX-License-Identifier: Apache-2.0
// Progress for the operator: {"stage":"Collecting","done":420,"total":1000} in the annotation
// eldr.dev/progress.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "calibrator/progress/progress.h"
#include "calibrator/publish/publisher.h"

namespace eldr::calibrator {

/// Patches from a thread of its own, at most once a second and only the newest state, so that a slow API
/// server holds nothing up. A patch that fails is logged once in a row and forgotten: progress is a courtesy.
class AnnotationProgress final : public ProgressSink {
 public:
  /// `publisher` must outlive it.
  explicit AnnotationProgress(const Publisher& publisher);
  ~AnnotationProgress() override;  ///< does not wait for a state that is not sent yet
  void show(const ProgressState& state) override;
  std::chrono::milliseconds interval() const override { return std::chrono::seconds(1); }

 private:
  void run(const std::stop_token& stop);
  Status annotate(const ProgressState& state, const std::stop_token& stop) const;

  const Publisher& publisher_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<ProgressState> newest_;
  std::jthread thread_;
};

}  // namespace eldr::calibrator
