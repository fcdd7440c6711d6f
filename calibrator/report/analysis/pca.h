// SPDX-License-Identifier: Apache-2.0
// The directions in which rows differ most.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "lib/signature/signature.h"

namespace eldr::calibrator {

struct PrincipalComponents {
  Eigen::RowVectorXf mean;     ///< [D]
  Eigen::MatrixXf directions;  ///< [D][C], orthonormal columns, the largest variance first
  std::vector<double> shares;  ///< [C] of the total variance, 0 to 1

  /// Coordinates [rows][C].
  Eigen::MatrixXd project(const signature::RowMatrixF& rows) const;
};

/// The first `count` components of `rows` [N][D]; fewer where N or D is smaller, with zero directions where
/// the rows differ in fewer. Block subspace iteration with a Rayleigh-Ritz step (Halko, Martinsson and Tropp
/// 2011, section 4.5): O(N * D) an iteration and no N * N or D * D matrix. Each direction's largest entry is
/// positive, and the start is fixed, so the same rows give the same answer.
PrincipalComponents principal_components(const signature::RowMatrixF& rows, Eigen::Index count);

}  // namespace eldr::calibrator
