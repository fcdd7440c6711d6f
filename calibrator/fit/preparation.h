// SPDX-License-Identifier: Apache-2.0
// What a fit finds before it is told a number of clusters: transform, weights, layers, how alike the requests
// are.
#pragma once

#include <memory>
#include <vector>

#include "calibrator/fit/backend.h"
#include "calibrator/fit/fit.h"
#include "calibrator/fit/layer_selection.h"
#include "calibrator/fit/steps.h"

namespace eldr::calibrator {

struct Preparation {
  signature::Transform transform = signature::Transform::kCountIdf;
  signature::RowMatrixF idf;  ///< [L][E]
  LayerSelection selection;
  signature::RowMatrixF signatures;  ///< [N][S * E], rows of length 1 or 0
  std::unique_ptr<SimilarityMatrix> similarities;
  FitResult result;  ///< the part that is the same for any number of clusters
};

/// Of options.clusters nothing is used. `clusterings` is how many will follow, for the progress. Errors as
/// fit_centroids.
Result<Preparation> prepare_fit(const signature::Trace& trace, const FitOptions& options, FitBackend& backend,
                                const Clock& clock, std::size_t clusterings, Steps& steps);

}  // namespace eldr::calibrator
