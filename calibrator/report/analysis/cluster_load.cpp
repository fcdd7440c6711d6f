// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/cluster_load.h"

namespace eldr::calibrator {

ClusterLoad cluster_load(const FittedTrace& fitted) {
  const std::uint32_t clusters = fitted.set.clusters();
  ClusterLoad load{fitted.set.cluster_sizes(), std::vector<std::uint32_t>(clusters, 0),
                   (fitted.set.requests() + clusters - 1) / clusters};
  for (const std::size_t r : fitted.directed) {
    Eigen::Index nearest = 0;
    fitted.similarities.row(static_cast<Eigen::Index>(r)).maxCoeff(&nearest);
    ++load.nearest[static_cast<std::size_t>(nearest)];
  }
  return load;
}

}  // namespace eldr::calibrator
