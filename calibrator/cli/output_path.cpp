// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cli/output_path.h"

#include <string_view>

namespace eldr::calibrator {
namespace {

constexpr std::string_view kNumberMark = "{clusters}";

}  // namespace

Status check_name(const char* option, const std::string& name, std::size_t numbers) {
  if (numbers < 2 || name.empty() || name.find(kNumberMark) != std::string::npos) {
    return {};
  }
  return failure(Code::kInvalid,
                 std::string(option) + ": must contain {clusters} where --clusters names several numbers");
}

std::string path_for(std::string name, std::uint32_t clusters) {
  const std::string number = std::to_string(clusters);
  for (std::size_t at = name.find(kNumberMark); at != std::string::npos;
       at = name.find(kNumberMark, at + number.size())) {
    name.replace(at, kNumberMark.size(), number);
  }
  return name;
}

}  // namespace eldr::calibrator
