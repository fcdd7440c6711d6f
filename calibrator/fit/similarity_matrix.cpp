// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/similarity_matrix.h"

namespace eldr::calibrator {

Result<Eigen::MatrixXd> SimilarityMatrix::distances_to_centroids(std::span<const std::uint32_t> cluster_of,
                                                                 std::uint32_t clusters) const {
  constexpr double kTiny = 1e-300;
  const auto common = products_with_sums(cluster_of, clusters);
  if (!common) {
    return common;
  }
  Eigen::VectorXd squares = Eigen::VectorXd::Zero(clusters);
  for (std::size_t i = 0; i < cluster_of.size(); ++i) {
    if (cluster_of[i] != kNoCluster) {
      squares[cluster_of[i]] += (*common)(static_cast<Eigen::Index>(i), cluster_of[i]);
    }
  }
  const Eigen::VectorXd inverse = squares.cwiseMax(kTiny).cwiseSqrt().cwiseInverse();
  return Eigen::MatrixXd((1.0 - (*common * inverse.asDiagonal()).array()).matrix());
}

}  // namespace eldr::calibrator
