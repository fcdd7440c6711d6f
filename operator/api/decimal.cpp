// SPDX-License-Identifier: Apache-2.0
#include "operator/api/decimal.h"

#include <charconv>
#include <cmath>

namespace eldr::op {
namespace {
bool is_digit(char c) { return c >= '0' && c <= '9'; }
}  // namespace

std::optional<double> parse_decimal(std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '-') rest.remove_prefix(1);
  if (rest.empty() || rest.size() > 32 || !is_digit(rest.front()) || !is_digit(rest.back())) return {};
  int dots = 0;
  for (const char c : rest) {
    if (c == '.')
      ++dots;
    else if (!is_digit(c))
      return {};
  }
  if (dots > 1) return {};
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return {};
  return value;
}

std::string decimal_text(double value, int digits) {
  if (!std::isfinite(value)) return "";
  char buffer[400];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, digits);
  std::string text(buffer, result.ptr);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

}  // namespace eldr::op
