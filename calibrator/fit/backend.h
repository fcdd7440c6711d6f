// SPDX-License-Identifier: Apache-2.0
// The heavy arithmetic of a fit behind an interface: Gram matrices, ranks, correlations, distances of
// k-means. The CPU fills it here; a GPU fills the same one, keeps the matrices on its side and gives the same
// layers and the same rho within 1e-5.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "calibrator/fit/features.h"
#include "calibrator/fit/similarity_matrix.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

/// Scores sets of layers for one set of requests: Spearman's rho, over all pairs of requests, between the
/// cosine of signatures and the cosine of decode use. (Cosine distance is 1 - cosine on both sides: the same
/// rho.) A request whose signature is zero has cosine 0 with every other. Not thread-safe.
class LayerScorer {
 public:
  struct Choice {
    std::size_t layer = 0;
    double rho = 0;
  };

  virtual ~LayerScorer() = default;
  /// rho of the layers added so far plus each candidate alone, in the order of `candidates`.
  virtual Result<std::vector<double>> score(std::span<const std::size_t> candidates) = 0;
  /// The candidate that score() would rate highest (ties: the first in `candidates`, which has one at least)
  /// and its rho. Backends may find it with less work than rating all.
  virtual Result<Choice> best(std::span<const std::size_t> candidates);
  /// Adds a layer (an index into the features given) for good.
  virtual Status add(std::size_t layer) = 0;
};

/// Thread-safe: scorers of one backend may be used side by side.
class FitBackend {
 public:
  virtual ~FitBackend() = default;
  virtual std::string_view name() const = 0;  ///< "cpu", "cuda"
  /// `prefill` [S layers] and `decode` [all layers] are of the same requests, at least 2. Keeps no reference
  /// to either. Memory: 4 bytes a pair and prefill layer, 12 a pair, 16 a pair and thread.
  /// kResourceExhausted: more pairs than it can hold.
  virtual Result<std::unique_ptr<LayerScorer>> layer_scorer(const LayerFeatures& prefill,
                                                            const LayerFeatures& decode) = 0;
  /// Of `rows` [N][D], each of length 1 or 0. Keeps no reference to them. Memory: 4 bytes a pair, both ways.
  virtual Result<std::unique_ptr<SimilarityMatrix>> similarities(const signature::RowMatrixF& rows) = 0;
};

/// On the CPU, on that many threads; results do not depend on the number.
std::unique_ptr<FitBackend> make_cpu_backend(unsigned threads);

}  // namespace eldr::calibrator
