// SPDX-License-Identifier: Apache-2.0
// A trace beside the centroids that were fitted on it: what every part of the analysis starts from.
#pragma once

#include <vector>

#include "lib/base/status.h"
#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// Both references must outlive it. N requests, K clusters, D = kept layers * experts.
struct FittedTrace {
  const signature::Trace& trace;
  const signature::CentroidSet& set;
  signature::RowMatrixF signatures;    ///< [N][D], rows of length 1, or 0 where a request has no direction
  signature::RowMatrixF similarities;  ///< [N][K], cosine with each centroid
  std::vector<std::size_t> directed;   ///< requests with a direction: the others are routed by load alone
};

/// kInvalid says why they do not belong together: another model, experts, layers, number of requests, or
/// centroids that are not the means of these requests.
Result<FittedTrace> match_trace(const signature::Trace& trace, const signature::CentroidSet& set);

}  // namespace eldr::calibrator
