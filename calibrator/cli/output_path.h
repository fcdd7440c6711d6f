// SPDX-License-Identifier: Apache-2.0
// Names of output files, one for each number of clusters.
#pragma once

#include <cstdint>
#include <string>

namespace eldr::calibrator {

/// Whether {clusters} is in the name, so that fits of several numbers do not share a file.
bool names_clusters(const std::string& name);
/// The name with each {clusters} replaced by the number.
std::string path_for(std::string name, std::uint32_t clusters);

}  // namespace eldr::calibrator
