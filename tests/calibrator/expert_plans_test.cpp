// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/expert_plans.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "calibrator/fit/placement.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

struct Case {
  signature::Trace trace = samples::trace(7, {.requests = 60, .experts = 16, .decode_tokens = 80});
  std::vector<std::uint32_t> assignment;
  Case() {
    for (std::size_t request = 0; request < trace.requests(); ++request) {
      assignment.push_back(static_cast<std::uint32_t>(request % 3));  // the domain
    }
  }
};

/// Distinct experts on each rank in batches made as a server makes them: requests of the cluster, each with a
/// token of its own. Experts of a token are drawn by the request's counts, top_k of them and distinct ones.
double resampled_fullest(const Case& c, std::uint32_t cluster, std::size_t layer,
                         std::span<const std::int16_t> rank_of, std::uint32_t ranks, int batch) {
  std::mt19937_64 engine(8);
  std::vector<std::size_t> members;
  for (std::size_t request = 0; request < c.trace.requests(); ++request) {
    if (c.assignment[request] == cluster) {
      members.push_back(request);
    }
  }
  constexpr int kBatches = 4000;
  std::vector<double> active(ranks, 0.0);
  for (int round = 0; round < kBatches; ++round) {
    std::set<std::size_t> used;
    for (int token = 0; token < batch; ++token) {
      const std::size_t request = members[engine() % members.size()];
      const auto counts = c.trace.decode(request).subspan(layer * c.trace.experts, c.trace.experts);
      for (std::size_t expert = 0; expert < counts.size(); ++expert) {
        if (engine() % c.trace.decode_tokens[request] < counts[expert]) {
          used.insert(expert);
        }
      }
    }
    for (const std::size_t expert : used) {
      active[static_cast<std::size_t>(rank_of[expert])] += 1.0 / kBatches;
    }
  }
  return *std::max_element(active.begin(), active.end());
}

TEST(ExpertPlans, WhatIsExpectedIsWhatResampledBatchesShow) {
  const Case c;
  const auto plans = plan_experts(c.trace, c.assignment, {.clusters = 3, .ranks = 4, .batch = 8});
  ASSERT_TRUE(plans) << plans.error().message;
  const auto identity = identity_placement(16, 4);
  for (std::uint32_t cluster = 0; cluster < 3; ++cluster) {
    for (std::size_t layer = 0; layer < c.trace.layers.size(); ++layer) {
      const FullestRank& said = plans->fullest[cluster * plans->layers + layer];
      EXPECT_NEAR(resampled_fullest(c, cluster, layer, plans->plan(cluster, layer), 4, 8), said.planned,
                  0.06);
      EXPECT_NEAR(resampled_fullest(c, cluster, layer, identity, 4, 8), said.identity, 0.06);
    }
  }
}

TEST(ExpertPlans, BeatsTheOrderOfTheExpertsAndTheBalanceOfTokens) {
  const Case c;
  const auto plans = plan_experts(c.trace, c.assignment, {.clusters = 3, .ranks = 4, .batch = 16});
  ASSERT_TRUE(plans);
  for (const FullestRank& one : plans->fullest) {
    EXPECT_LE(one.planned, one.identity + 1e-9);
    EXPECT_LE(one.planned, 1.001 * one.token_balanced);
    EXPECT_GE(one.planned, one.bound - 1e-9);
  }
  const FullestRank mean = plans->mean();
  EXPECT_LT(mean.planned, 0.98 * mean.identity);
  EXPECT_LT(mean.planned, mean.token_balanced);
}

TEST(ExpertPlans, SameOnAnyNumberOfThreads) {
  const Case c;
  const auto one = plan_experts(c.trace, c.assignment, {.clusters = 3, .ranks = 8, .threads = 1});
  const auto four = plan_experts(c.trace, c.assignment, {.clusters = 3, .ranks = 8, .threads = 4});
  EXPECT_EQ(one->rank_of, four->rank_of);
}

TEST(ExpertPlans, ARequestWeighsTheSameHoweverMuchItDecoded) {
  signature::Trace trace;
  trace.layers = {0};
  trace.experts = 2;
  trace.prompt_tokens = {1, 1, 1};
  trace.decode_tokens = {1, 9, 0};
  trace.decode_counts = {1, 0, 0, 9, 0, 0};
  const std::vector<std::uint32_t> assignment = {0, 0, 0};
  EXPECT_EQ(expert_probabilities(trace, assignment, 0, 0), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(expert_probabilities(trace, assignment, 1, 0), (std::vector<double>{0, 0})) << "an empty cluster";
}

TEST(ExpertPlans, RanksMustDivideTheExperts) {
  const Case c;
  for (const std::uint32_t ranks : {0U, 3U, 32U}) {
    EXPECT_FALSE(plan_experts(c.trace, c.assignment, {.clusters = 3, .ranks = ranks})) << ranks;
  }
}

}  // namespace
}  // namespace eldr::calibrator
