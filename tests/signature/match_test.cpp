// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/signature/centroids.h"
#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::int32_t>;

CentroidSet set_of(std::uint64_t seed, Eigen::Index clusters) {
  return samples::centroids(seed, {.clusters = clusters});
}

/// `set` with row i taken from row order[i], every entry moved a little.
CentroidSet permuted(const CentroidSet& set, const std::vector<Eigen::Index>& order, float noise = 0.01F) {
  CentroidSet out = set;
  out.centroids.resize(static_cast<Eigen::Index>(order.size()), set.centroids.cols());
  for (std::size_t i = 0; i < order.size(); ++i) {
    out.centroids.row(static_cast<Eigen::Index>(i)) =
        set.centroids.row(order[i]).array() +
        noise * static_cast<float>(i + 1) * set.centroids.row(0).array();
  }
  out.centroids.rowwise().normalize();
  out.assignment.clear();
  return out;
}

CentroidSet rows_of(const CentroidSet& set, const std::vector<Eigen::Index>& order) {
  return permuted(set, order, 0);
}

TEST(MatchClusterIds, PermutedRowsKeepTheirIds) {
  const auto previous = set_of(1, 4);
  const Ids ids = {7, 2, 0, 5};
  EXPECT_THAT(match_cluster_ids(permuted(previous, {2, 0, 3, 1}), previous, ids, ids),
              ElementsAre(0, 7, 5, 2));
  EXPECT_THAT(match_cluster_ids(previous, previous, ids, ids), ElementsAre(7, 2, 0, 5));
}

TEST(MatchClusterIds, ScalingUpKeepsTheOldIdsAndAddsTheSmallestFreeNumbers) {
  const auto wide = set_of(2, 6);
  const auto previous = rows_of(wide, {4, 1, 5, 0});
  const Ids ids = {0, 2, 3, 5};
  EXPECT_THAT(match_cluster_ids(wide, previous, ids, ids), ElementsAre(5, 2, 1, 4, 0, 3));
}

TEST(MatchClusterIds, ScalingDownHandsOnOnlyLiveIds) {
  const auto previous = set_of(3, 6);
  const Ids ids = {0, 1, 2, 3, 4, 5};
  const Ids live = {1, 2, 4, 5};
  // The new rows look like the rows of four ids, two of which are gone.
  const auto next = rows_of(previous, {0, 2, 3, 4});
  const auto matched = match_cluster_ids(next, previous, ids, live);
  EXPECT_EQ(matched[1], 2);
  EXPECT_EQ(matched[3], 4);
  EXPECT_EQ((std::set<std::int32_t>{matched.begin(), matched.end()}), (std::set<std::int32_t>{1, 2, 4, 5}));
}

TEST(MatchClusterIds, ScalingDownWithEveryPodStillThereTakesTheMostSimilar) {
  const auto previous = set_of(4, 6);
  const Ids ids = {10, 11, 12, 13, 14, 15};
  EXPECT_THAT(match_cluster_ids(permuted(previous, {5, 0, 2, 3}), previous, ids, ids),
              ElementsAre(15, 10, 12, 13));
}

TEST(MatchClusterIds, AnIdThatIsNotLiveIsFreeAgain) {
  const auto previous = set_of(5, 3);
  EXPECT_THAT(match_cluster_ids(previous, previous, Ids{0, 1, 2}, Ids{0, 2}), ElementsAre(0, 1, 2));
  EXPECT_THAT(match_cluster_ids(previous, previous, Ids{4, 5, 6}, Ids{4, 6}), ElementsAre(4, 0, 6));
}

TEST(MatchClusterIds, ThereAndBackAgainKeepsEveryId) {
  std::mt19937_64 random(6);
  for (int instance = 0; instance < 100; ++instance) {
    const auto a = set_of(random(), 2 + static_cast<Eigen::Index>(random() % 6));
    const auto b = set_of(random(), 2 + static_cast<Eigen::Index>(random() % 6));
    Ids ids(a.clusters());
    std::iota(ids.begin(), ids.end(), 3);
    const Ids ids_b = match_cluster_ids(b, a, ids, ids);
    Ids live = ids_b;  // pods of A's other ids are still there when the pool grew back
    for (const std::int32_t id : ids) {
      if (std::find(live.begin(), live.end(), id) == live.end()) live.push_back(id);
    }
    const Ids back = match_cluster_ids(a, b, ids_b, live);
    EXPECT_EQ((std::set<std::int32_t>{back.begin(), back.end()}).size(), ids.size());
    if (a.clusters() <= b.clusters()) {
      EXPECT_EQ(back, ids);
    }
  }
}

TEST(MatchClusterIds, TotalCosineIsTheLargestPossible) {
  std::mt19937_64 random(7);
  for (int instance = 0; instance < 50; ++instance) {
    const auto previous = set_of(random(), 5);
    const auto next = set_of(random(), 5);
    const Ids ids = {0, 1, 2, 3, 4};
    const Eigen::MatrixXf cosine = next.centroids * previous.centroids.transpose();
    const auto total = [&](const Ids& columns) {
      double sum = 0;
      for (Eigen::Index i = 0; i < 5; ++i) sum += cosine(i, columns[static_cast<std::size_t>(i)]);
      return sum;
    };
    Ids columns = ids;
    double best = -10;
    do best = std::max(best, total(columns));
    while (std::next_permutation(columns.begin(), columns.end()));
    EXPECT_NEAR(total(match_cluster_ids(next, previous, ids, ids)), best, 1e-5);
  }
}

TEST(MatchClusterIds, OtherLayersAreMatchedOnThoseThatBothHave) {
  const auto previous = set_of(8, 4);  // layers 6, 4, 2
  auto next = permuted(previous, {3, 1, 0, 2}, 0);
  // The same rows with layer 2 first, layer 6 replaced by layer 9.
  CentroidSet other = next;
  other.spec.layers = {2, 9, 4};
  const Eigen::Index width = 16;
  other.centroids.middleCols(0, width) = next.centroids.middleCols(2 * width, width);
  other.centroids.middleCols(width, width).setConstant(0.3F);
  other.centroids.middleCols(2 * width, width) = next.centroids.middleCols(width, width);
  other.centroids.rowwise().normalize();
  EXPECT_THAT(match_cluster_ids(other, previous, Ids{0, 1, 2, 3}, Ids{0, 1, 2, 3}), ElementsAre(3, 1, 0, 2));
}

TEST(MatchClusterIds, WithNothingInCommonIdsAreGivenInOrder) {
  const auto previous = set_of(9, 3);
  auto next = permuted(previous, {2, 1, 0});
  next.spec.layers = {11, 13, 15};
  EXPECT_THAT(match_cluster_ids(next, previous, Ids{4, 8, 6}, Ids{4, 8, 6}), ElementsAre(4, 8, 6));
  const auto other_model = samples::centroids(10, {.clusters = 5, .layers = 3, .experts = 8});
  EXPECT_THAT(match_cluster_ids(other_model, previous, Ids{4, 8, 6}, Ids{4, 6}), ElementsAre(4, 6, 0, 1, 2));
}

TEST(MatchClusterIds, TheFirstConfigTakesTheIdsThatWorkersHaveThenNewOnes) {
  const CentroidSet none;
  EXPECT_THAT(match_cluster_ids(set_of(11, 3), none, {}, {}), ElementsAre(0, 1, 2));
  EXPECT_THAT(match_cluster_ids(set_of(11, 4), none, {}, Ids{5, 0, -3}), ElementsAre(0, 5, 1, 2));
}

TEST(MatchClusterIds, BadIdsAreIgnored) {
  const auto previous = set_of(12, 3);
  // Twice the same id, a negative one, and fewer ids than rows.
  EXPECT_THAT(match_cluster_ids(previous, previous, Ids{1, 1}, Ids{1, -1}), ElementsAre(1, 0, 2));
  EXPECT_THAT(match_cluster_ids(previous, previous, Ids{-1, 2, 9, 4}, Ids{-1, 2, 9, 4}),
              ElementsAre(4, 2, 9));
}

}  // namespace
}  // namespace eldr::signature
