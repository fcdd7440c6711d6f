// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/charts/words.h"

#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {

std::string counted(std::uint64_t count, std::string_view singular) {
  return svg::grouped(count) + " " + std::string(singular) + (count == 1 ? "" : "s");
}

bool is_folded(const LabelGroups& groups, std::size_t group) {
  return groups.folded > 0 && group + 1 == groups.count();
}

std::string group_name(const LabelGroups& groups, std::size_t group) {
  if (is_folded(groups, group)) {
    return std::to_string(groups.folded) + " other labels";
  }
  return groups.names[group].empty() ? "(no label)" : groups.names[group];
}

}  // namespace eldr::calibrator::charts
