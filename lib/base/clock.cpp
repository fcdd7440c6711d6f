// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <cstdio>
#include <ctime>

namespace eldr {
namespace {

std::string date_and_time(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return text;
}

}  // namespace

std::string format_rfc3339(Clock::Wall time) {
  return date_and_time(std::chrono::system_clock::to_time_t(time)) + "Z";
}

std::string format_rfc3339_micro(Clock::Wall time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds).count();
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%06dZ", static_cast<int>(micros));
  return date_and_time(std::chrono::system_clock::to_time_t(seconds)) + fraction;
}

}  // namespace eldr
