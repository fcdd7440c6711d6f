// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/assignment.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace eldr::signature {
namespace {

using Random = std::mt19937_64;

Eigen::MatrixXd random_costs(Random& random, Eigen::Index rows, Eigen::Index columns, bool ties) {
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> whole(0, 3);
  Eigen::MatrixXd cost(rows, columns);
  for (double& entry : cost.reshaped()) entry = ties ? whole(random) : real(random);
  return cost;
}

double total(const Eigen::MatrixXd& cost, const std::vector<std::int32_t>& choice) {
  double sum = 0;
  for (std::size_t row = 0; row < choice.size(); ++row)
    sum += cost(static_cast<Eigen::Index>(row), choice[row]);
  return sum;
}

/// Every injective choice of columns.
double cheapest_by_enumeration(const Eigen::MatrixXd& cost, Eigen::Index row, std::vector<bool>& used) {
  if (row == cost.rows()) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (Eigen::Index column = 0; column < cost.cols(); ++column) {
    if (used[static_cast<std::size_t>(column)]) continue;
    used[static_cast<std::size_t>(column)] = true;
    best = std::min(best, cost(row, column) + cheapest_by_enumeration(cost, row + 1, used));
    used[static_cast<std::size_t>(column)] = false;
  }
  return best;
}

/// The capacitated problem as a general one: each cluster's column `capacity` times.
double cheapest_by_general_solver(const Eigen::MatrixXd& cost, std::int32_t capacity) {
  Eigen::MatrixXd wide(cost.rows(), cost.cols() * capacity);
  for (Eigen::Index column = 0; column < wide.cols(); ++column)
    wide.col(column) = cost.col(column / capacity);
  return total(wide, solve_assignment(wide).value());
}

void expect_within_capacity(const std::vector<std::int32_t>& choice, Eigen::Index clusters,
                            std::int32_t capacity) {
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(clusters), 0);
  for (const std::int32_t cluster : choice) {
    ASSERT_GE(cluster, 0);
    ASSERT_LT(cluster, clusters);
    ++sizes[static_cast<std::size_t>(cluster)];
  }
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), capacity);
}

/// Optimality certificate: an assignment is optimal if and only if no cycle of moves between clusters lowers
/// the total, where a cycle may also end in a cluster with room. Bellman-Ford over the clusters.
bool has_improving_cycle(const Eigen::MatrixXd& cost, const std::vector<std::int32_t>& choice,
                         std::int32_t capacity) {
  const Eigen::Index k = cost.cols();
  // Node k stands for "room": a point leaves through a cluster with room, and room may be opened at any
  // cluster with points.
  Eigen::MatrixXd edge = Eigen::MatrixXd::Constant(k + 1, k + 1, std::numeric_limits<double>::infinity());
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(k), 0);
  for (std::size_t row = 0; row < choice.size(); ++row) {
    ++sizes[static_cast<std::size_t>(choice[row])];
    for (Eigen::Index to = 0; to < k; ++to) {
      const double move =
          cost(static_cast<Eigen::Index>(row), to) - cost(static_cast<Eigen::Index>(row), choice[row]);
      if (to != choice[row]) edge(choice[row], to) = std::min(edge(choice[row], to), move);
    }
  }
  for (Eigen::Index c = 0; c < k; ++c) {
    if (sizes[static_cast<std::size_t>(c)] < capacity) edge(c, k) = 0;
    edge(k, c) = 0;
  }
  std::vector<double> distance(static_cast<std::size_t>(k) + 1, 0.0);
  for (Eigen::Index round = 0; round <= k + 1; ++round) {
    bool changed = false;
    for (Eigen::Index a = 0; a <= k; ++a) {
      for (Eigen::Index b = 0; b <= k; ++b) {
        const double through = distance[static_cast<std::size_t>(a)] + edge(a, b);
        if (through < distance[static_cast<std::size_t>(b)] - 1e-9) {
          distance[static_cast<std::size_t>(b)] = through;
          changed = true;
        }
      }
    }
    if (!changed) return false;
  }
  return true;
}

TEST(Assignment, IsTheCheapestOfAllChoices) {
  Random random(1);
  for (int instance = 0; instance < 300; ++instance) {
    const Eigen::Index rows = static_cast<Eigen::Index>(random() % 6);
    const Eigen::Index columns = rows + static_cast<Eigen::Index>(random() % 3);
    const auto cost = random_costs(random, rows, columns, instance % 2 == 0);
    const auto choice = solve_assignment(cost);
    ASSERT_TRUE(choice.has_value());
    std::vector<bool> used(static_cast<std::size_t>(columns), false);
    EXPECT_NEAR(total(cost, *choice), cheapest_by_enumeration(cost, 0, used), 1e-12) << cost;
    auto sorted = *choice;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << "a column twice";
  }
}

TEST(Assignment, AnswersTheSameEveryTime) {
  Random random(2);
  const auto cost = random_costs(random, 40, 60, true);
  EXPECT_EQ(solve_assignment(cost).value(), solve_assignment(cost).value());
  EXPECT_EQ(solve_capacitated_assignment(cost, 1).value(), solve_capacitated_assignment(cost, 1).value());
}

TEST(Assignment, RefusesMoreRowsThanColumnsAndCostsThatAreNoNumbers) {
  EXPECT_EQ(solve_assignment(Eigen::MatrixXd::Zero(3, 2)).error().code, Code::kInvalid);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1e300}) {
    Eigen::MatrixXd cost = Eigen::MatrixXd::Zero(2, 3);
    cost(1, 2) = bad;
    const auto general = solve_assignment(cost);
    ASSERT_FALSE(general.has_value()) << bad;
    EXPECT_NE(general.error().message.find("row 1, column 2"), std::string::npos) << general.error().message;
    EXPECT_EQ(solve_capacitated_assignment(cost, 5).error().code, Code::kInvalid) << bad;
  }
}

TEST(CapacitatedAssignment, CostsWhatTheGeneralSolverFinds) {
  Random random(3);
  for (int instance = 0; instance < 400; ++instance) {
    const Eigen::Index points = 1 + static_cast<Eigen::Index>(random() % 40);
    const Eigen::Index clusters = 1 + static_cast<Eigen::Index>(random() % 9);
    const auto tightest = static_cast<std::int32_t>((points + clusters - 1) / clusters);
    const auto capacity =
        tightest + static_cast<std::int32_t>(random() % 3);  // N divides K or not, with slack or without
    auto cost = random_costs(random, points, clusters, instance % 2 == 0);
    if (instance % 3 == 0) cost.col(0).array() -= 5;  // everybody wants the same cluster
    const auto choice = solve_capacitated_assignment(cost, capacity);
    ASSERT_TRUE(choice.has_value()) << choice.error().to_string();
    expect_within_capacity(*choice, clusters, capacity);
    EXPECT_NEAR(total(cost, *choice), cheapest_by_general_solver(cost, capacity), 1e-9)
        << points << " points, " << clusters << " clusters of " << capacity;
  }
}

TEST(CapacitatedAssignment, CopesWithMoreClustersThanDistinctPoints) {
  Random random(4);
  for (int instance = 0; instance < 50; ++instance) {
    const auto distinct = random_costs(random, 3, 10, false);
    Eigen::MatrixXd cost(24, 10);
    for (Eigen::Index row = 0; row < cost.rows(); ++row) cost.row(row) = distinct.row(row % 3);
    const auto choice = solve_capacitated_assignment(cost, 3).value();
    expect_within_capacity(choice, 10, 3);
    EXPECT_NEAR(total(cost, choice), cheapest_by_general_solver(cost, 3), 1e-9);
  }
}

TEST(CapacitatedAssignment, MoreClustersThanPoints) {
  Random random(5);
  const auto cost = random_costs(random, 4, 11, false);
  const auto choice = solve_capacitated_assignment(cost, 1).value();
  EXPECT_NEAR(total(cost, choice), cheapest_by_general_solver(cost, 1), 1e-12);
}

TEST(CapacitatedAssignment, LeavesNoCycleOfMovesThatImproves) {
  Random random(6);
  for (const Eigen::Index clusters : {5, 33, 64}) {
    for (const bool ties : {false, true}) {
      const Eigen::Index points = 1500;
      const auto capacity = static_cast<std::int32_t>((points + clusters - 1) / clusters);
      auto cost = random_costs(random, points, clusters, ties);
      for (Eigen::Index c = 0; c < clusters; ++c) cost.col(c).array() += 0.05 * static_cast<double>(c);
      const auto choice = solve_capacitated_assignment(cost, capacity).value();
      expect_within_capacity(choice, clusters, capacity);
      EXPECT_FALSE(has_improving_cycle(cost, choice, capacity)) << clusters << " clusters, ties " << ties;
      auto worse = choice;
      std::swap(worse.front(), worse.back());
      if (total(cost, worse) > total(cost, choice) + 1e-6) {
        EXPECT_TRUE(has_improving_cycle(cost, worse, capacity))
            << "the certificate must see a worse assignment";
      }
    }
  }
}

TEST(CapacitatedAssignment, SolvesTheLargestSize) {
  Random random(7);
  std::normal_distribution<double> normal;
  // 8,000 points around 40 places, 256 clusters: as clustered as real signatures are.
  Eigen::MatrixXd places(40, 8), points(8000, 8), centres(256, 8);
  for (double& x : places.reshaped()) x = normal(random);
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    for (Eigen::Index d = 0; d < 8; ++d) points(i, d) = places(i % 40, d) + 0.3 * normal(random);
  }
  for (Eigen::Index c = 0; c < centres.rows(); ++c) centres.row(c) = points.row(c * 17 % 8000);
  points.rowwise().normalize();
  centres.rowwise().normalize();
  const Eigen::MatrixXd cost = 1 - (points * centres.transpose()).array();
  const auto choice = solve_capacitated_assignment(cost, 32).value();
  expect_within_capacity(choice, 256, 32);
  EXPECT_FALSE(has_improving_cycle(cost, choice, 32));
}

TEST(CapacitatedAssignment, RefusesTooLittleRoom) {
  EXPECT_EQ(solve_capacitated_assignment(Eigen::MatrixXd::Zero(5, 2), 2).error().code, Code::kInvalid);
  EXPECT_EQ(solve_capacitated_assignment(Eigen::MatrixXd::Zero(5, 2), 0).error().code, Code::kInvalid);
  EXPECT_EQ(solve_capacitated_assignment(Eigen::MatrixXd::Zero(5, 2), -1).error().code, Code::kInvalid);
  EXPECT_EQ(solve_capacitated_assignment(Eigen::MatrixXd::Zero(1, 0), 3).error().code, Code::kInvalid);
  EXPECT_TRUE(solve_capacitated_assignment(Eigen::MatrixXd::Zero(0, 2), 1).value().empty());
}

}  // namespace
}  // namespace eldr::signature
