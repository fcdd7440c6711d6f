// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/label_groups.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace eldr::calibrator {

LabelGroups group_labels(std::span<const std::string> labels, std::size_t requests, std::size_t limit) {
  LabelGroups groups;
  if (labels.empty()) {
    groups.names = {""};
    groups.sizes = {static_cast<std::uint32_t>(requests)};
    groups.of_request.assign(requests, 0);
    return groups;
  }
  std::map<std::string_view, std::uint32_t> sizes;
  for (const std::string& label : labels) {
    ++sizes[label];
  }
  std::vector<std::pair<std::string_view, std::uint32_t>> frequent(sizes.begin(), sizes.end());
  std::stable_sort(frequent.begin(), frequent.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const std::size_t own = frequent.size() <= limit ? frequent.size() : limit - 1;
  std::map<std::string_view, std::uint32_t> group_of;
  for (std::size_t i = 0; i < frequent.size(); ++i) {
    const std::size_t group = std::min(i, own);
    group_of[frequent[i].first] = static_cast<std::uint32_t>(group);
    if (group == groups.names.size()) {
      groups.names.emplace_back(i < own ? frequent[i].first : std::string_view());
      groups.sizes.push_back(0);
    }
    groups.sizes[group] += frequent[i].second;
  }
  groups.folded = frequent.size() - own;
  for (const std::string& label : labels) {
    groups.of_request.push_back(group_of[label]);
  }
  return groups;
}

}  // namespace eldr::calibrator
