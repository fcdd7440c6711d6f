// SPDX-License-Identifier: Apache-2.0
#include "calibrator/progress/sinks.h"

#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

namespace eldr::calibrator {
namespace {

constexpr std::size_t kBarWidth = 30;

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_text(const ProgressState& state) {
  std::string text(name_of(state.stage));
  if (state.total > 0) {
    text += fmt::format(" {}/{} ({} %)", state.done, state.total, 100 * state.done / state.total);
  }
  if (state.per_second > 0 && state.stage == Stage::kCollecting) {
    text += fmt::format(", {:.1f}/s", state.per_second);
  }
  if (state.seconds_left > 0 && !state.finished()) {
    text += fmt::format(", {} left", duration_text(state.seconds_left));
  }
  return text;
}

TerminalBar::~TerminalBar() {
  if (line_open_) {
    std::fputc('\n', terminal_);
  }
}

void TerminalBar::show(const ProgressState& state) {
  if (state.stage_began && line_open_) {
    std::fputc('\n', terminal_);
  }
  std::string bar;
  if (state.total > 0) {
    const std::size_t filled = std::min(kBarWidth, kBarWidth * state.done / state.total);
    bar = fmt::format("[{:#<{}}{:{}}] ", "", filled, "", kBarWidth - filled);
  }
  std::fprintf(terminal_, "\r%s%s\x1b[K", bar.c_str(), progress_text(state).c_str());
  line_open_ = !state.finished();
  if (!line_open_) {
    std::fputc('\n', terminal_);
  }
  std::fflush(terminal_);
}

void LogLines::show(const ProgressState& state) { spdlog::info("{}", progress_text(state)); }

}  // namespace eldr::calibrator
