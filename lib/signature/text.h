// SPDX-License-Identifier: Apache-2.0
// Text of the file formats: quoting for messages, numbers that round-trip, JSON lists in metadata. Internal
// to lib/signature.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::signature {

/// `text` in double quotes for an error message: control characters escaped, long text cut. Names in files
/// are not trusted.
std::string in_quotes(std::string_view text);

/// Shortest decimal that reads back as the same double. `value` must be finite.
std::string format_double(double value);
/// The whole of `text` as a finite decimal number; nullopt otherwise (no blanks, no plus sign, no inf, no
/// nan).
std::optional<double> parse_double(std::string_view text);
/// The whole of `text` as an unsigned decimal number; nullopt otherwise.
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

/// A JSON list of integers that fit std::int32_t, at most `max_items`. kInvalid: anything else.
Result<std::vector<std::int32_t>> parse_json_ints(std::string_view json, std::size_t max_items);
/// A JSON list of strings, at most `max_items`. kInvalid: anything else.
Result<std::vector<std::string>> parse_json_strings(std::string_view json, std::size_t max_items);
std::string format_json_ints(const std::vector<std::int32_t>& values);
/// kInvalid: an item is not UTF-8.
Result<std::string> format_json_strings(const std::vector<std::string>& values);

}  // namespace eldr::signature
