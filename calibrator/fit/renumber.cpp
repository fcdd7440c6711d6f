// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/renumber.h"

#include <numeric>

namespace eldr::calibrator {

std::vector<std::uint32_t> matched_numbers(const signature::CentroidSet& set,
                                           const signature::CentroidSet& previous) {
  std::vector<std::int32_t> before(previous.clusters());
  std::iota(before.begin(), before.end(), 0);
  std::vector<std::int32_t> now(set.clusters());
  std::iota(now.begin(), now.end(), 0);
  const std::vector<std::int32_t> ids = signature::match_cluster_ids(set, previous, before, now);
  return {ids.begin(), ids.end()};
}

void renumber(signature::CentroidSet& set, const std::vector<std::uint32_t>& numbers) {
  signature::RowMatrixF centroids(set.centroids.rows(), set.centroids.cols());
  for (std::size_t cluster = 0; cluster < numbers.size(); ++cluster) {
    centroids.row(numbers[cluster]) = set.centroids.row(static_cast<Eigen::Index>(cluster));
  }
  set.centroids = std::move(centroids);
  for (std::uint32_t& cluster : set.assignment) {
    cluster = numbers[cluster];
  }
}

}  // namespace eldr::calibrator
