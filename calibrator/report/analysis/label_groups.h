// SPDX-License-Identifier: Apache-2.0
// Requests by label, the many rare labels together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace eldr::calibrator {

struct LabelGroups {
  std::vector<std::string> names;         ///< the most frequent first, ties by name; as the data set has them
  std::vector<std::uint32_t> sizes;       ///< requests of each
  std::vector<std::uint32_t> of_request;  ///< [N], index into `names`
  std::size_t folded = 0;  ///< how many labels the last group holds; 0: every label has its own

  std::size_t count() const { return names.size(); }
};

/// At most `limit` groups (at least 2), the last of them for all labels that are left. Without labels
/// (`labels` is empty) one group without a name has all `requests`.
LabelGroups group_labels(std::span<const std::string> labels, std::size_t requests, std::size_t limit);

}  // namespace eldr::calibrator
