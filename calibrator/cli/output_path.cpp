// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cli/output_path.h"

#include <string_view>

namespace eldr::calibrator {
namespace {

constexpr std::string_view kPlaceholder = "{clusters}";

}  // namespace

bool names_clusters(const std::string& name) { return name.find(kPlaceholder) != std::string::npos; }

std::string path_for(std::string name, std::uint32_t clusters) {
  const std::string number = std::to_string(clusters);
  for (std::size_t at = name.find(kPlaceholder); at != std::string::npos;
       at = name.find(kPlaceholder, at + number.size())) {
    name.replace(at, kPlaceholder.size(), number);
  }
  return name;
}

}  // namespace eldr::calibrator
