// SPDX-License-Identifier: Apache-2.0
// What a fit says about itself: spread of similarities, separation of labels, reasons to distrust it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/signature/signature.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

struct SimilarityStatistics {
  double spread = 0;                             ///< mean over requests of (best - mean similarity)
  std::map<std::string, double> best_quantiles;  ///< "p01", "p10", "p50", "p90", "p99"
  double nearest_share = 0;                      ///< largest share of requests one centroid is nearest to
  std::size_t directionless = 0;  ///< requests with a zero signature; they count in nothing above
};

/// `signatures` [N][D] of length 1 or 0, `centroids` [K][D] of length 1. Quantiles are linear between order
/// statistics.
SimilarityStatistics similarity_statistics(const signature::RowMatrixF& signatures,
                                           const signature::RowMatrixF& centroids);

/// Mean cosine of two requests of one label minus that of two of different labels; nullopt without labels or
/// with one alone. `signatures` [N][D] of length 1 or 0. O(N * D): the cosines of all pairs of a group of
/// unit vectors sum to (|sum of the vectors|^2 - sum of their squares) / 2.
std::optional<double> label_gap(const signature::RowMatrixF& signatures, std::span<const std::string> labels);

struct CalibrationFacts {
  const signature::Trace& trace;
  std::span<const std::uint32_t> cluster_sizes;
  std::size_t directionless = 0;
  double nearest_share = 0;
  std::optional<double> label_gap;
  double rho = 0;
  std::optional<double> held_out_rho;
  std::span<const double> layer_rhos;  ///< rho after each layer of the greedy order; empty: not known
};
/// Sentences for people, each with its numbers; none when all is well.
std::vector<std::string> calibration_warnings(const CalibrationFacts& facts);

}  // namespace eldr::calibrator
