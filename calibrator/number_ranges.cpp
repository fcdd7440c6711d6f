// SPDX-License-Identifier: Apache-2.0
#include "calibrator/number_ranges.h"

#include <charconv>

namespace eldr::calibrator {

std::optional<std::vector<std::int32_t>> parse_number_ranges(std::string_view text, std::int32_t largest,
                                                             std::size_t most) {
  std::vector<std::int32_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    std::int32_t first = 0;
    auto parsed = std::from_chars(at, end, first);
    std::int32_t last = first;
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    }
    const bool separated = parsed.ptr == end || (*parsed.ptr == ',' && parsed.ptr + 1 != end);
    if (parsed.ec != std::errc() || !separated || first < 0 || last < first || last > largest ||
        (!numbers.empty() && first <= numbers.back()) ||
        static_cast<std::size_t>(last - first) >= most - numbers.size()) {
      return std::nullopt;
    }
    for (std::int32_t number = first; number <= last; ++number) {
      numbers.push_back(number);
    }
    at = parsed.ptr == end ? end : parsed.ptr + 1;
  }
  if (numbers.empty()) {
    return std::nullopt;
  }
  return numbers;
}

}  // namespace eldr::calibrator
