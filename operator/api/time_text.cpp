// SPDX-License-Identifier: Apache-2.0
#include "operator/api/time_text.h"

#include <chrono>
#include <cstdio>
#include <string>

namespace eldr::op {

std::optional<Clock::Wall> parse_rfc3339(std::string_view text) {
  if (text.size() < 20 || text.size() > 40 || text.back() != 'Z') return {};
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second) != 6)
    return {};
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month)),
                                         std::chrono::day(unsigned(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return {};
  return Clock::Wall(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                     std::chrono::minutes(minute) + std::chrono::seconds(second));
}

}  // namespace eldr::op
