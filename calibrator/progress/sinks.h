// SPDX-License-Identifier: Apache-2.0
// Progress for people at a terminal and for people who read logs.
#pragma once

#include <cstdio>
#include <string>

#include "calibrator/progress/progress.h"

namespace eldr::calibrator {

/// "Collecting 420/1000 (42 %), 8.1/s, 1 min 12 s left"
std::string progress_text(const ProgressState& state);

/// One line that is drawn over and over; a stage that is finished keeps its line.
class TerminalBar final : public ProgressSink {
 public:
  explicit TerminalBar(std::FILE* terminal) : terminal_(terminal) {}
  ~TerminalBar() override;  ///< ends an open line
  void show(const ProgressState& state) override;
  std::chrono::milliseconds interval() const override { return std::chrono::milliseconds(100); }

 private:
  std::FILE* terminal_;
  bool line_open_ = false;
};

/// A log line at a stage's start and end, and every few seconds in between.
class LogLines final : public ProgressSink {
 public:
  void show(const ProgressState& state) override;
  std::chrono::milliseconds interval() const override { return std::chrono::seconds(10); }
};

}  // namespace eldr::calibrator
