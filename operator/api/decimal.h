// SPDX-License-Identifier: Apache-2.0
// Decimals as text, the way Kubernetes' own APIs carry them. Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eldr::op {

/// "0.1", "2", "-0.25": an optional minus sign, digits, and digits after a dot. Nothing else ("1e3", ".5",
/// "5.", " 1", "nan").
std::optional<double> parse_decimal(std::string_view text);
/// At most `digits` after the dot, without trailing zeros: "0.4989", "1", "0".
std::string decimal_text(double value, int digits = 4);
/// The shortest text for messages: "2", "0.5".
inline std::string number_text(double value) { return decimal_text(value, 6); }

}  // namespace eldr::op
