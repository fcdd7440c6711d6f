// SPDX-License-Identifier: Apache-2.0
// Names of output files, one for each number of clusters.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/status.h"

namespace eldr::calibrator {

/// kInvalid: the option's name lacks {clusters}, so that fits of several numbers would share a file. An empty
/// name is none.
Status check_name(const char* option, const std::string& name, std::size_t numbers);
/// The name with each {clusters} replaced by the number.
std::string path_for(std::string name, std::uint32_t clusters);

}  // namespace eldr::calibrator
