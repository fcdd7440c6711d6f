// SPDX-License-Identifier: Apache-2.0
// The centroid file: what a fit found and a router reads (format eldr-centroids/1,
// docs/reference/formats.md).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/signature/safetensors.h"
#include "lib/signature/signature.h"

namespace eldr::signature {

/// Largest file: it lives in a ConfigMap, whose data may hold 1 MiB.
inline constexpr std::size_t kMaxCentroidFile = 1U << 20U;

/// K centroids and what belongs to them. Immutable once loaded: shared between threads freely.
struct CentroidSet {
  std::string model;
  std::uint32_t top_k = 0;
  SignatureSpec spec;                     ///< layers [S], experts E, transform, idf [S][E]
  RowMatrixF centroids;                   ///< [K][S*E], rows of unit length
  std::vector<std::uint32_t> assignment;  ///< cluster of each calibration request [N]
  std::vector<std::int16_t> placement;    ///< EP rank of each expert [K][S][E], or empty
  double spread = 0;                      ///< sigma: mean over requests of (best - mean similarity)
  double rho = 0;                         ///< Spearman rho at the chosen layers
  double rho_all_layers = 0;              ///< the same with every layer
  double tau = 0.1;                       ///< the band that the fit was reported with
  std::string fit_hash;                   ///< identity of the inputs, empty outside Kubernetes
  std::uint64_t seed = 0;
  std::map<std::string, double> best_similarity_quantiles;  ///< "p01", "p10", "p50", "p90", "p99"
  std::map<std::string, std::string> extra;                 ///< other metadata, kept as they are

  std::uint32_t clusters() const { return static_cast<std::uint32_t>(centroids.rows()); }
  std::uint32_t requests() const { return static_cast<std::uint32_t>(assignment.size()); }
  /// Calibration requests of each cluster [K].
  std::vector<std::uint32_t> cluster_sizes() const;
  /// Largest cluster's share of the requests, 0..1.
  double max_cluster_share() const;
};

/// Strict: kInvalid names the tensor or the key. Rows are re-normalised after decoding F16 and I8.
Result<CentroidSet> parse_centroids(std::span<const std::byte> bytes);
/// Uses the narrowest of I8, F16, F32 that keeps every cosine of a centroid with its own original within
/// 0.001 and fits kMaxCentroidFile; kResourceExhausted says by how much it does not fit.
Result<std::vector<std::byte>> serialize_centroids(const CentroidSet& set);
/// The same with a given dtype (I8, F16 or F32), whatever it loses.
Result<std::vector<std::byte>> serialize_centroids(const CentroidSet& set, DType dtype);
Result<CentroidSet> load_centroids(const std::string& path);

/// Cluster ids for the rows of `next` so that the fewest workers change what they serve: rows are matched to
/// `previous_ids` (row i of `previous` had id previous_ids[i]) by largest total cosine (an assignment
/// problem); only ids in `live` are handed on, ids that no row takes stay free; rows left over take the live
/// ids that had no row before, then the smallest unused non-negative numbers. With other layers or transform
/// than before, rows are matched on the layers that both have; with nothing in common (or an empty
/// `previous`), in order. `previous_ids` may be shorter than `previous`: further rows had none. Negative ids
/// are ignored.
std::vector<std::int32_t> match_cluster_ids(const CentroidSet& next, const CentroidSet& previous,
                                            std::span<const std::int32_t> previous_ids,
                                            std::span<const std::int32_t> live);

}  // namespace eldr::signature
