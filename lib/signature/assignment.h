// SPDX-License-Identifier: Apache-2.0
// The linear assignment problem, solved to optimality (shortest augmenting paths; Jonker and Volgenant 1987,
// Crouse 2016).
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "lib/base/status.h"

namespace eldr::signature {

/// Largest magnitude of a cost: sums of costs must stay finite.
inline constexpr double kMaxCost = 1e100;

/// kInvalid: an entry is not a number or its magnitude is over kMaxCost.
Status check_costs(const Eigen::MatrixXd& cost);

/// Column of each row so that the total cost is minimal. `cost` is [rows][columns] with rows <= columns and
/// finite entries (kInvalid otherwise). O(rows^2 * columns). Deterministic: the same input gives the same
/// answer.
Result<std::vector<std::int32_t>> solve_assignment(const Eigen::MatrixXd& cost);

/// Cluster of each of N points so that no cluster takes more than `capacity` and the total cost is minimal,
/// exactly. `cost` is [N][K]; N <= K * capacity (kInvalid otherwise). Works on K columns with capacities,
/// never on N * N: memory O(N * K). Every point starts at its cheapest cluster; then each point too many
/// moves along a shortest path of moves between clusters: about O(N * K + excess * K^2), where excess is how
/// many points the cheapest choice puts over capacity. Deterministic.
Result<std::vector<std::int32_t>> solve_capacitated_assignment(const Eigen::MatrixXd& cost,
                                                               std::int32_t capacity);

}  // namespace eldr::signature
