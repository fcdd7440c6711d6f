// SPDX-License-Identifier: Apache-2.0
// Requests and centroids as points in the plane in which the signatures differ most.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "calibrator/report/analysis/fitted_trace.h"

namespace eldr::calibrator {

struct RequestMap {
  std::vector<std::size_t> requests;  ///< those with a direction
  Eigen::MatrixXd points;             ///< [requests][2]
  Eigen::MatrixXd centroids;          ///< [K][2], in the same plane
  std::vector<double> shares;         ///< of the variance, for each of the two axes
};

RequestMap map_requests(const FittedTrace& fitted);

}  // namespace eldr::calibrator
