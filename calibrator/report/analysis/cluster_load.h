// SPDX-License-Identifier: Apache-2.0
// How many requests each cluster has: as the balanced fit assigned them, and as the nearest centroid would.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrator/report/analysis/fitted_trace.h"

namespace eldr::calibrator {

struct ClusterLoad {
  std::vector<std::uint32_t> assigned;  ///< [K]
  std::vector<std::uint32_t>
      nearest;                 ///< [K] online nothing balances; directed requests only, ties to the lower
  std::uint32_t capacity = 0;  ///< ceil(N / K), the most that the fit allows
};

ClusterLoad cluster_load(const FittedTrace& fitted);

}  // namespace eldr::calibrator
