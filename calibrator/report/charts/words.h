// SPDX-License-Identifier: Apache-2.0
// Names and counts as the report says them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "calibrator/report/analysis/label_groups.h"

namespace eldr::calibrator::charts {

/// Colours of the palette: classes c0 … c7; the group of rare labels has the class "rest".
inline constexpr std::size_t kColours = 8;

/// "1 request", "1,204 requests"
std::string counted(std::uint64_t count, std::string_view singular);
/// The group's label for people: "(no label)" for an empty one, "12 other labels" for the folded ones.
std::string group_name(const LabelGroups& groups, std::size_t group);
bool is_folded(const LabelGroups& groups, std::size_t group);

}  // namespace eldr::calibrator::charts
