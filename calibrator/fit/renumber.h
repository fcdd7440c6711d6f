// SPDX-License-Identifier: Apache-2.0
// Clusters that keep their numbers from one fit to the next.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/signature/centroids.h"

namespace eldr::calibrator {

/// A number below set.clusters() for each cluster, all different: that of the cluster of `previous` which it
/// goes on as (largest total cosine on the layers that both have), where that number is still there.
std::vector<std::uint32_t> matched_numbers(const signature::CentroidSet& set,
                                           const signature::CentroidSet& previous);

/// Cluster k becomes cluster numbers[k], in centroids and assignment. The set has no placement yet.
void renumber(signature::CentroidSet& set, const std::vector<std::uint32_t>& numbers);

}  // namespace eldr::calibrator
