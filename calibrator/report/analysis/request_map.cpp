// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/request_map.h"

#include "calibrator/report/analysis/pca.h"

namespace eldr::calibrator {

RequestMap map_requests(const FittedTrace& fitted) {
  const bool all = fitted.directed.size() == fitted.trace.requests();
  signature::RowMatrixF some;
  if (!all) {
    some = fitted.signatures(fitted.directed, Eigen::all);
  }
  const signature::RowMatrixF& rows = all ? fitted.signatures : some;
  const PrincipalComponents components = principal_components(rows, 2);
  return {fitted.directed, components.project(rows), components.project(fitted.set.centroids),
          components.shares};
}

}  // namespace eldr::calibrator
