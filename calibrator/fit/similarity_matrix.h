// SPDX-License-Identifier: Apache-2.0
// How alike the requests of a clustering are, held where the backend computes.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "lib/base/status.h"

namespace eldr::calibrator {

/// The cluster of a request without a direction.
inline constexpr std::uint32_t kNoCluster = std::numeric_limits<std::uint32_t>::max();

/// The Gram matrix of N signatures of length 1, or 0 where a request has no direction. Immutable;
/// thread-safe.
class SimilarityMatrix {
 public:
  virtual ~SimilarityMatrix() = default;
  virtual std::size_t requests() const = 0;
  virtual bool has_direction(std::size_t request) const = 0;
  /// Cosines of one request with every request, itself included: `out` is [N].
  virtual Status row(std::size_t request, std::span<float> out) const = 0;
  /// 1 - cosine of each request with the normalised sum of each cluster's members, [N][K]. `cluster_of` is
  /// [N], below `clusters` or kNoCluster. A cluster without members is at distance 1 from all.
  Result<Eigen::MatrixXd> distances_to_centroids(std::span<const std::uint32_t> cluster_of,
                                                 std::uint32_t clusters) const;

 private:
  /// Inner products of each request with the sum of each cluster's members, [N][K]: for request i the sum of
  /// G(i, j) over the members j. N^2 additions, whatever the dimension of a signature.
  virtual Result<Eigen::MatrixXd> products_with_sums(std::span<const std::uint32_t> cluster_of,
                                                     std::uint32_t clusters) const = 0;
};

}  // namespace eldr::calibrator
