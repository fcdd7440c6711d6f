// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace eldr::calibrator {

/// "0,2,4" or "1-26" or both mixed: ascending, each once, none above `largest`, at most `most`. nullopt:
/// anything else, or nothing.
std::optional<std::vector<std::int32_t>> parse_number_ranges(std::string_view text, std::int32_t largest,
                                                             std::size_t most);

}  // namespace eldr::calibrator
