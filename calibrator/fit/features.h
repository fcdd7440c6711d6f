// SPDX-License-Identifier: Apache-2.0
// What the fit works on: per layer one matrix of requests by experts, counts transformed and weighted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/signature/signature.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// x(l, e) of N requests over some layers: layer_matrices[i] is [N][E] for the i-th layer. A value type.
struct LayerFeatures {
  std::vector<signature::RowMatrixF> layer_matrices;

  std::size_t layers() const { return layer_matrices.size(); }
  std::size_t requests() const {
    return layer_matrices.empty() ? 0 : static_cast<std::size_t>(layer_matrices.front().rows());
  }
};

/// IDF weights [L][E] over the requests named, from their prefill counts; all ones for a transform without.
signature::RowMatrixF idf_of(const signature::Trace& trace, std::span<const std::size_t> requests,
                             signature::Transform transform);

/// Prefill features of the requests named, in that order, for the layers named (indices into trace.layers).
LayerFeatures prefill_features(const signature::Trace& trace, std::span<const std::size_t> requests,
                               std::span<const std::size_t> layers, signature::Transform transform,
                               const signature::RowMatrixF& idf);

/// Decode counts of the requests named, all layers. Their direction is that of the activation probabilities
/// p(l, e) = tokens that used e / tokens, since one request's counts share one divisor.
LayerFeatures decode_features(const signature::Trace& trace, std::span<const std::size_t> requests);

/// The layers' matrices side by side, [N][S * E], each row brought to length 1; a zero row stays zero.
signature::RowMatrixF unit_signatures(const LayerFeatures& features);

/// Sum of the signatures [N][D] of each cluster, [K][D]; `assignment` [N] is below `clusters`.
Eigen::MatrixXd cluster_sums(const signature::RowMatrixF& signatures,
                             std::span<const std::uint32_t> assignment, std::uint32_t clusters);

}  // namespace eldr::calibrator
