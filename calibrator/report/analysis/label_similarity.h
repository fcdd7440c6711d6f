// SPDX-License-Identifier: Apache-2.0
// Whether clusters are about what labels are about.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "calibrator/report/analysis/fitted_trace.h"
#include "calibrator/report/analysis/label_groups.h"

namespace eldr::calibrator {

struct LabelSimilarity {
  LabelGroups labels;
  Eigen::MatrixXd cosine;  ///< [labels][K] mean over the label's directed requests; NaN where there are none
  Eigen::MatrixXi counts;  ///< [labels][K] requests of the label in the cluster
  /// Clusters so that those with the same main label are together: labels by size, then the cluster with the
  /// most of its label's requests first.
  std::vector<std::uint32_t> cluster_order;
  /// Share of the requests that are in a cluster whose most frequent label they have; every label counts for
  /// itself.
  double main_label_share = 0;
};

LabelSimilarity label_similarity(const FittedTrace& fitted, std::size_t most_labels);

}  // namespace eldr::calibrator
