// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/balanced_kmeans.h"

#include <random>

#include <gtest/gtest.h>

#include "calibrator/fit/backend.h"

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;

std::unique_ptr<SimilarityMatrix> similarities(const RowMatrixF& rows) {
  return make_cpu_backend(2)->similarities(rows).value();
}

const auto kGoOn = [](std::size_t, std::size_t) { return true; };

/// Unit rows around `groups` directions, none negative, as expert use is.
RowMatrixF points(std::uint64_t seed, Eigen::Index n, Eigen::Index dimension, int groups) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<float> uniform(0.0F, 1.0F);
  RowMatrixF centers = RowMatrixF::NullaryExpr(groups, dimension, [&] { return uniform(engine); });
  RowMatrixF rows(n, dimension);
  for (Eigen::Index i = 0; i < n; ++i) {
    rows.row(i) = centers.row(static_cast<Eigen::Index>(engine() % static_cast<unsigned>(groups)));
    for (Eigen::Index d = 0; d < dimension; ++d) {
      rows(i, d) += 0.3F * uniform(engine);
    }
    rows.row(i).normalize();
  }
  return rows;
}

std::vector<std::size_t> sizes_of(const Clustering& clustering, std::uint32_t clusters) {
  std::vector<std::size_t> sizes(clusters, 0);
  for (const std::uint32_t cluster : clustering.assignment) {
    ++sizes.at(cluster);
  }
  return sizes;
}

/// The objective, from the definition: distance of each point from the normalised mean of its cluster.
double objective_of(const RowMatrixF& rows, const Clustering& clustering, std::uint32_t clusters) {
  Eigen::MatrixXd means = Eigen::MatrixXd::Zero(clusters, rows.cols());
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    means.row(clustering.assignment[static_cast<std::size_t>(i)]) += rows.row(i).cast<double>();
  }
  means.rowwise().normalize();
  double sum = 0;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    sum += 1 - means.row(clustering.assignment[static_cast<std::size_t>(i)]).dot(rows.row(i).cast<double>());
  }
  return sum;
}

TEST(BalancedKMeans, KeepsItsPromisesOverManyShapes) {
  for (const auto& [n, k] : {std::pair<Eigen::Index, std::uint32_t>{40, 4},
                             {41, 4},
                             {43, 4},
                             {40, 7},
                             {12, 12},
                             {13, 12},
                             {5, 4},
                             {30, 1},
                             {1, 1},
                             {100, 16}}) {
    const RowMatrixF rows = points(static_cast<std::uint64_t>(n * 31 + k), n, 12, 3);
    const auto matrix = similarities(rows);
    const auto clustering = balanced_kmeans(*matrix, {.clusters = k, .seed = 1, .restarts = 3}, kGoOn);
    ASSERT_TRUE(clustering) << n << " points, " << k << " clusters: " << clustering.error().message;
    const std::size_t capacity = (static_cast<std::size_t>(n) + k - 1) / k;
    for (const std::size_t size : sizes_of(*clustering, k)) {
      EXPECT_LE(size, capacity) << n << " points, " << k << " clusters";
      EXPECT_GE(size, 1U) << n << " points, " << k << " clusters";
    }
    EXPECT_NEAR(clustering->objective, objective_of(rows, *clustering, k), 1e-4);
    for (std::size_t i = 1; i < clustering->path.size(); ++i) {
      EXPECT_LE(clustering->path[i], clustering->path[i - 1])
          << n << " points, " << k << " clusters, step " << i;
    }
  }
}

TEST(BalancedKMeans, FindsWellSeparatedGroups) {
  RowMatrixF rows = RowMatrixF::Zero(30, 3);
  for (Eigen::Index i = 0; i < 30; ++i) {
    rows(i, i % 3) = 1;
  }
  const auto clustering =
      balanced_kmeans(*similarities(rows), {.clusters = 3, .seed = 9, .restarts = 1}, kGoOn);
  ASSERT_TRUE(clustering);
  EXPECT_NEAR(clustering->objective, 0, 1e-9);
  for (std::size_t i = 3; i < 30; ++i) {
    EXPECT_EQ(clustering->assignment[i], clustering->assignment[i % 3]);
  }
}

TEST(BalancedKMeans, MoreClustersThanDistinctPoints) {
  RowMatrixF rows = RowMatrixF::Zero(20, 2);
  for (Eigen::Index i = 0; i < 20; ++i) {
    rows(i, i % 2) = 1;
  }
  const auto clustering =
      balanced_kmeans(*similarities(rows), {.clusters = 8, .seed = 2, .restarts = 4}, kGoOn);
  ASSERT_TRUE(clustering);
  for (const std::size_t size : sizes_of(*clustering, 8)) {
    EXPECT_GE(size, 1U);
    EXPECT_LE(size, 3U);
  }
}

TEST(BalancedKMeans, SameBytesOnAnyNumberOfThreadsAndOtherOnAnotherSeed) {
  const RowMatrixF rows = points(11, 120, 24, 6);
  const auto matrix = similarities(rows);
  const auto run = [&](std::uint64_t seed, unsigned threads) {
    return balanced_kmeans(*matrix, {.clusters = 9, .seed = seed, .restarts = 5, .threads = threads}, kGoOn)
        .value();
  };
  const Clustering one = run(4, 1);
  for (const unsigned threads : {2U, 5U, 16U}) {
    const Clustering many = run(4, threads);
    EXPECT_EQ(many.assignment, one.assignment);
    EXPECT_EQ(many.objective, one.objective);
  }
}

TEST(BalancedKMeans, MoreStartsAreNeverWorse) {
  const RowMatrixF rows = points(21, 90, 16, 5);
  const auto matrix = similarities(rows);
  double last = 1e9;
  for (const std::uint32_t restarts : {1U, 2U, 6U, 12U}) {
    const auto clustering = balanced_kmeans(*matrix, {.clusters = 6, .seed = 3, .restarts = restarts}, kGoOn);
    EXPECT_LE(clustering->objective, last);
    last = clustering->objective;
  }
}

TEST(BalancedKMeans, RowsWithoutDirectionFillTheSmallestClusters) {
  RowMatrixF rows = points(31, 20, 8, 2);
  for (const Eigen::Index i : {0, 7, 13}) {
    rows.row(i).setZero();
  }
  const auto clustering =
      balanced_kmeans(*similarities(rows), {.clusters = 4, .seed = 5, .restarts = 2}, kGoOn);
  ASSERT_TRUE(clustering);
  for (const std::size_t size : sizes_of(*clustering, 4)) {
    EXPECT_LE(size, 5U);
  }
}

TEST(BalancedKMeans, RefusesMoreClustersThanPointsWithADirection) {
  RowMatrixF rows = points(41, 6, 8, 2);
  rows.bottomRows(4).setZero();
  const auto clustering = balanced_kmeans(*similarities(rows), {.clusters = 3}, kGoOn);
  ASSERT_FALSE(clustering);
  EXPECT_EQ(clustering.error().code, Code::kInvalid);
  EXPECT_NE(clustering.error().message.find("2 requests"), std::string::npos) << clustering.error().message;
}

TEST(BalancedKMeans, StopsWhenAsked) {
  const RowMatrixF rows = points(51, 20, 8, 2);
  const auto clustering = balanced_kmeans(*similarities(rows), {.clusters = 2, .restarts = 4},
                                          [](std::size_t done, std::size_t) { return done < 2; });
  ASSERT_FALSE(clustering);
  EXPECT_EQ(clustering.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace eldr::calibrator
