// SPDX-License-Identifier: Apache-2.0
// Text and numbers on their way into HTML and SVG. Names come from data sets and files: all text is escaped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace eldr::calibrator::svg {

/// For element content and quoted attributes: & < > " ' as entities; control characters, which XML cannot
/// hold, as the replacement character. UTF-8 stays as it is, bytes that are none become the replacement
/// character.
std::string escaped(std::string_view text);

/// At most `characters` code points (at least 1), the last of them "…" where something was cut.
std::string shortened(std::string_view text, std::size_t characters);

/// Width in units of the font size, by a rule of thumb for sans-serif fonts: letters 0.56, wide scripts 1.
double text_width(std::string_view text);

/// A coordinate: at most two decimals and none that say nothing. "0" for what is not finite.
std::string number(double value);

/// For people: `decimals` of them, with a true minus sign.
std::string fixed(double value, int decimals);
/// 12,031
std::string grouped(std::uint64_t value);
/// "14.8 %" of 0.148, with a true minus sign and a space that does not break.
std::string percent(double share, int decimals = 1);

}  // namespace eldr::calibrator::svg
