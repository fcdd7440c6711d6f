// SPDX-License-Identifier: Apache-2.0
// What is put where in device memory, in bytes, as pure functions of sizes.
//
// A layer scorer of N requests, P = N (N - 1) / 2 pairs and L layers takes 28 bytes a pair for sums, ranks
// and the sort, and 4 bytes a pair for each layer whose inner products stay. Where not all layers fit, the
// others are computed again for every candidate, into a place that they share. N = 8,000, L = 48, E = 128:
// 0.9 GB for the pairs, 6.1 GB for the layers, 0.3 GB for tiles.
#pragma once

#include <cstdint>

#include "lib/base/status.h"

namespace eldr::calibrator::cuda {

/// Hands out places one after the other, aligned as CUDA aligns. 64 bits are enough for all sizes allowed.
class Layout {
 public:
  std::uint64_t add(std::uint64_t count, std::uint64_t element_bytes);
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

/// Rows of a Gram matrix that are computed at a time, at least 1: `budget` holds that many rows of n doubles.
std::uint64_t tile_rows(std::uint64_t n, std::uint64_t budget);

struct ScorerShape {
  std::uint64_t requests = 0;
  std::uint64_t layers = 0;   ///< of the prefill side
  std::uint64_t columns = 0;  ///< experts
};

struct ScorerPlan {
  std::uint64_t tile_rows = 0;
  std::uint64_t kept_layers = 0;           ///< the first so many stay in memory
  std::uint64_t bytes = 0;                 ///< of all
  std::uint64_t layer_pairs_bytes = 0;     ///< from one layer's pairs to the next
  std::uint64_t layer_features_bytes = 0;  ///< from one layer's features to the next

  // Offsets.
  std::uint64_t upload = 0;    ///< float [N][E]: a layer on its way
  std::uint64_t rows = 0;      ///< double [N][E]: the same
  std::uint64_t tile = 0;      ///< double [tile_rows][N]
  std::uint64_t diagonal = 0;  ///< double [N]
  std::uint64_t inverse = 0;   ///< double [N]
  std::uint64_t sums = 0;      ///< double [P]
  std::uint64_t ranks = 0;     ///< u32 [P]
  std::uint64_t sort[4] = {};  ///< u32 [P] each
  std::uint64_t scratch = 0;
  std::uint64_t kept = 0;      ///< float [kept_layers][P]
  std::uint64_t shared = 0;    ///< float [P], where not all are kept
  std::uint64_t features = 0;  ///< float [layers - kept_layers][N][E]
};
/// kResourceExhausted: not even one layer at a time fits into `available`.
Result<ScorerPlan> plan_scorer(const ScorerShape& shape, std::uint64_t scratch_bytes,
                               std::uint64_t available);

struct SimilarityPlan {
  std::uint64_t tile_rows = 0;
  bool kept = false;  ///< the whole matrix stays; else its rows are computed whenever they are needed

  std::uint64_t work_bytes = 0;  ///< of the block below; given back when the matrix is kept
  std::uint64_t rows = 0;        ///< double [N][D]
  std::uint64_t tile = 0;        ///< double [tile_rows][N]
  std::uint64_t narrow = 0;      ///< float [tile_rows][N], where the matrix is not kept

  std::uint64_t gram_bytes = 0;  ///< float [N][N], where it is kept
};
/// kResourceExhausted: not even a row at a time fits.
Result<SimilarityPlan> plan_similarities(std::uint64_t requests, std::uint64_t columns,
                                         std::uint64_t available);

}  // namespace eldr::calibrator::cuda
