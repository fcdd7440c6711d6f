// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/svg/markup.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <spdlog/fmt/fmt.h>

namespace eldr::calibrator::svg {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kMinus = "\xE2\x88\x92";
constexpr double kLetter = 0.56;

struct CodePoint {
  std::string_view bytes;
  std::optional<std::uint32_t> value;  ///< nullopt: one byte that is not UTF-8
};

/// The code point that `text`, which is not empty, begins with.
CodePoint first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xC2 ? 0
                             : byte(0) < 0xE0 ? 2
                             : byte(0) < 0xF0 ? 3
                                              : 4;
  if (length == 0 || byte(0) > 0xF4 || length > text.size()) {
    return {text.substr(0, 1), std::nullopt};
  }
  std::uint32_t value = length == 1 ? byte(0) : byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) {
      return {text.substr(0, 1), std::nullopt};
    }
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || surrogate || value > 0x10FFFF) {
    return {text.substr(0, 1), std::nullopt};
  }
  return {text.substr(0, length), value};
}

template <class Visit>
void for_each_code_point(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const CodePoint point = first_of(text);
    visit(point);
    text.remove_prefix(point.bytes.size());
  }
}

std::string_view entity_or_bytes(const CodePoint& point) {
  if (!point.value) {
    return kReplacement;
  }
  switch (*point.value) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      break;
  }
  const bool control = *point.value < 0x20 || (*point.value >= 0x7F && *point.value < 0xA0);
  return control || (*point.value & 0xFFFEU) == 0xFFFE ? kReplacement : point.bytes;
}

bool is_wide(std::uint32_t value) {
  return (value >= 0x1100 && value <= 0x115F) || (value >= 0x2E80 && value <= 0xD7A3) ||
         (value >= 0xF900 && value <= 0xFAFF) || (value >= 0xFE30 && value <= 0xFF60) || value >= 0x1F300;
}

std::string with_true_minus(std::string text) {
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  if (!text.empty() && text[0] == '-') {
    text = (zero ? "" : std::string(kMinus)) + text.substr(1);
  }
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](const CodePoint& point) { out += entity_or_bytes(point); });
  return out;
}

std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t count = 0;
  std::size_t kept = 0;  // bytes of the first characters - 1 code points
  for_each_code_point(text, [&](const CodePoint& point) {
    ++count;
    kept += count < characters ? point.bytes.size() : 0;
  });
  return count <= characters ? std::string(text) : std::string(text.substr(0, kept)) + "…";
}

double text_width(std::string_view text) {
  double width = 0;
  for_each_code_point(
      text, [&](const CodePoint& point) { width += is_wide(point.value.value_or(0)) ? 1.0 : kLetter; });
  return width;
}

std::string number(double value) {
  if (!std::isfinite(value)) {
    return "0";
  }
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string fixed(double value, int decimals) {
  return with_true_minus(fmt::format("{:.{}f}", value, decimals));
}

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t end = text.size(); end > 3; end -= 3) {
    text.insert(end - 3, ",");
  }
  return text;
}

std::string percent(double share, int decimals) { return fixed(100 * share, decimals) + "\u00A0%"; }

}  // namespace eldr::calibrator::svg
