// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace eldr::calibrator {
namespace {

/// The smallest possible fullest rank, by trying every way.
double best_of_all(const std::vector<double>& activities, std::uint32_t ranks) {
  std::vector<std::int16_t> plan;
  for (std::size_t e = 0; e < activities.size(); ++e) {
    plan.push_back(static_cast<std::int16_t>(e * ranks / activities.size()));
  }
  double best = 1e9;
  do {
    best = std::min(best, fullest_rank(activities, plan, ranks));
  } while (std::next_permutation(plan.begin(), plan.end()));
  return best;
}

TEST(Placement, EqualSlots) {
  std::mt19937_64 engine(1);
  std::vector<double> activities(128);
  for (double& value : activities) {
    value = std::uniform_real_distribution<double>(0, 1)(engine);
  }
  const auto plan = place_experts(activities, 4);
  ASSERT_TRUE(plan);
  for (std::int16_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(std::count(plan->begin(), plan->end(), rank), 32);
  }
  const double even = std::accumulate(activities.begin(), activities.end(), 0.0) / 4;
  EXPECT_LT(fullest_rank(activities, *plan, 4), even * 1.01);
}

TEST(Placement, NearTheBestOfAllOnSmallCases) {
  std::mt19937_64 engine(2);
  for (int round = 0; round < 30; ++round) {
    std::vector<double> activities(8);
    for (double& value : activities) {
      value = std::pow(std::uniform_real_distribution<double>(0, 1)(engine), 3);
    }
    const std::uint32_t ranks = round % 2 == 0 ? 2 : 4;
    const auto plan = place_experts(activities, ranks);
    ASSERT_TRUE(plan);
    const double exact = best_of_all(activities, ranks);
    EXPECT_GE(fullest_rank(activities, *plan, ranks), exact - 1e-12);
    EXPECT_LE(fullest_rank(activities, *plan, ranks), exact * 1.1 + 1e-12) << round;
  }
}

TEST(Placement, NeverWorseThanIdentityOnHotBlocks) {
  std::vector<double> activities(64, 0.1);
  std::fill_n(activities.begin(), 16, 1.0);  // all hot experts on rank 0 of 4
  std::vector<std::int16_t> identity(64);
  for (std::size_t e = 0; e < 64; ++e) {
    identity[e] = static_cast<std::int16_t>(e / 16);
  }
  const auto plan = place_experts(activities, 4);
  EXPECT_NEAR(fullest_rank(activities, identity, 4), 16.0, 1e-9);
  EXPECT_NEAR(fullest_rank(activities, *plan, 4), 4 * 1.0 + 12 * 0.1, 1e-9);
}

TEST(Placement, ActivityIsThatOfABatch) {
  EXPECT_DOUBLE_EQ(activity(0, 32), 0);
  EXPECT_DOUBLE_EQ(activity(1, 32), 1);
  EXPECT_NEAR(activity(0.25, 2), 1 - 0.75 * 0.75, 1e-12);
  EXPECT_DOUBLE_EQ(activity(1.5, 8), 1);  // rounding may leave a probability above 1
}

TEST(Placement, RanksMustDivideTheExperts) {
  const std::vector<double> activities(10, 0.5);
  for (const std::uint32_t ranks : {0U, 3U, 4U, 11U}) {
    const auto plan = place_experts(activities, ranks);
    ASSERT_FALSE(plan) << ranks;
    EXPECT_NE(plan.error().message.find("must divide"), std::string::npos);
  }
  EXPECT_TRUE(place_experts(activities, 5));
}

}  // namespace
}  // namespace eldr::calibrator
