// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/distinct_experts.h"

#include <set>

#include <gtest/gtest.h>

#include "calibrator/fit/random.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

constexpr std::uint32_t kLayers = 2;
constexpr std::uint32_t kExperts = 6;
constexpr std::uint32_t kTopK = 2;
constexpr std::uint32_t kTokens = 3;

/// The experts of each decode token, from which the trace's counts are made: [request][token][layer].
using Tokens = std::vector<std::vector<std::vector<std::set<std::uint32_t>>>>;

Tokens random_tokens(std::size_t requests) {
  Random random(5, 0);
  Tokens tokens(requests);
  for (auto& request : tokens) {
    request.assign(kTokens, std::vector<std::set<std::uint32_t>>(kLayers));
    for (auto& token : request) {
      for (std::set<std::uint32_t>& experts : token) {
        while (experts.size() < kTopK) {
          experts.insert(static_cast<std::uint32_t>(random.below(kExperts)));
        }
      }
    }
  }
  return tokens;
}

signature::Trace trace_of(const Tokens& tokens) {
  signature::Trace trace;
  trace.layers = {0, 1};
  trace.experts = kExperts;
  trace.top_k = kTopK;
  trace.prompt_tokens.assign(tokens.size(), 1);
  trace.decode_tokens.assign(tokens.size(), kTokens);
  trace.prefill_counts.assign(tokens.size() * kLayers * kExperts, 0);
  trace.decode_counts.assign(tokens.size() * kLayers * kExperts, 0);
  for (std::size_t r = 0; r < tokens.size(); ++r) {
    for (const auto& token : tokens[r]) {
      for (std::size_t l = 0; l < kLayers; ++l) {
        for (const std::uint32_t e : token[l]) {
          ++trace.decode_counts[(r * kLayers + l) * kExperts + e];
        }
      }
    }
  }
  return trace;
}

/// Mean over every way in which the three requests can each contribute one of their tokens.
double by_enumeration(const Tokens& tokens) {
  double sum = 0;
  for (std::uint32_t way = 0; way < kTokens * kTokens * kTokens; ++way) {
    const std::uint32_t of_request[] = {way % kTokens, way / kTokens % kTokens, way / kTokens / kTokens};
    for (std::size_t l = 0; l < kLayers; ++l) {
      std::set<std::uint32_t> distinct;
      for (std::size_t r = 0; r < 3; ++r) {
        distinct.insert(tokens[r][of_request[r]][l].begin(), tokens[r][of_request[r]][l].end());
      }
      sum += static_cast<double>(distinct.size()) / kLayers;
    }
  }
  return sum / (kTokens * kTokens * kTokens);
}

std::vector<std::uint32_t> domains(std::size_t requests, std::uint32_t count) {
  std::vector<std::uint32_t> cluster_of;
  for (std::size_t r = 0; r < requests; ++r) {
    cluster_of.push_back(static_cast<std::uint32_t>(r % count));
  }
  return cluster_of;
}

TEST(DistinctExperts, TheExpectationIsTheMeanOverAllTokens) {
  const Tokens tokens = random_tokens(3);
  const std::size_t batch[] = {0, 1, 2};
  EXPECT_NEAR(expected_distinct_experts(trace_of(tokens), batch), by_enumeration(tokens), 1e-6);
}

TEST(DistinctExperts, DrawsEstimateTheMeanOverAllPairs) {
  const auto trace = samples::trace(7, {.requests = 30});
  const auto cluster_of = domains(30, 3);
  double mixed = 0;
  double mixed_pairs = 0;
  double local = 0;
  double local_pairs = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    for (std::size_t j = i + 1; j < 30; ++j) {
      const std::size_t pair[] = {i, j};
      const double experts = expected_distinct_experts(trace, pair);
      mixed += experts;
      ++mixed_pairs;
      local += cluster_of[i] == cluster_of[j] ? experts : 0;
      local_pairs += cluster_of[i] == cluster_of[j] ? 1 : 0;
    }
  }
  const auto results = resample_distinct_experts(trace, cluster_of, 3, {.draws = 3000});
  ASSERT_GE(results.size(), 2U);
  const BatchExperts& pairs = results[1];
  ASSERT_EQ(pairs.batch, 2U);
  EXPECT_NEAR(pairs.mixed.mean, mixed / mixed_pairs, 4 * pairs.mixed.error);
  EXPECT_NEAR(pairs.local.mean, local / local_pairs, 4 * pairs.local.error);
  EXPECT_GT(pairs.mixed.error, 0);
  EXPECT_NEAR(pairs.saving, 1 - (local / local_pairs) / (mixed / mixed_pairs), 4 * pairs.saving_error);
}

TEST(DistinctExperts, SizesEndWithTheClusters) {
  const auto trace = samples::trace(8, {.requests = 60});
  const auto results = resample_distinct_experts(trace, domains(60, 3), 3, {.draws = 50});
  std::vector<std::uint32_t> sizes;
  for (const BatchExperts& at : results) {
    sizes.push_back(at.batch);
    EXPECT_LE(at.mixed.low, at.mixed.mean);
    EXPECT_GE(at.mixed.high, at.mixed.mean);
  }
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{1, 2, 4, 8, 16}));  // clusters have 20 requests
  EXPECT_NEAR(results[0].mixed.mean, trace.top_k, 1e-5);
  EXPECT_NEAR(results[0].local.mean, trace.top_k, 1e-5);
  EXPECT_EQ(results[0].saving, 0);
  EXPECT_GT(results[3].saving, 0.1);  // the domains prefer other experts
}

TEST(DistinctExperts, OneClusterSavesNothing) {
  const auto trace = samples::trace(9, {.requests = 60});
  const auto results = resample_distinct_experts(trace, domains(60, 1), 1, {.draws = 400});
  ASSERT_EQ(results.size(), 6U);
  EXPECT_NEAR(results.back().saving, 0, 4 * results.back().saving_error + 1e-9);
}

TEST(DistinctExperts, OnlyRequestsThatDecodedCount) {
  auto trace = samples::trace(10, {.requests = 60});
  for (std::size_t r = 0; r < 60; r += 2) {
    trace.decode_tokens[r] = 0;
    const auto row = static_cast<std::ptrdiff_t>(trace.decode_counts.size() / 60);
    std::fill_n(trace.decode_counts.begin() + static_cast<std::ptrdiff_t>(r) * row, row, 0U);
  }
  const auto results = resample_distinct_experts(trace, domains(60, 3), 3, {.draws = 50});
  ASSERT_EQ(results.size(), 4U);  // ten of each cluster are left
  EXPECT_NEAR(results[0].mixed.mean, trace.top_k, 1e-5);
  std::fill(trace.decode_tokens.begin(), trace.decode_tokens.end(), 0U);
  EXPECT_TRUE(resample_distinct_experts(trace, domains(60, 3), 3, {}).empty());
}

TEST(DistinctExperts, TheSeedDecides) {
  const auto trace = samples::trace(11, {.requests = 60});
  const auto mean = [&](std::uint64_t seed) {
    return resample_distinct_experts(trace, domains(60, 3), 3, {.draws = 50, .seed = seed})[2].mixed.mean;
  };
  EXPECT_EQ(mean(1), mean(1));
  EXPECT_NE(mean(1), mean(2));
}

}  // namespace
}  // namespace eldr::calibrator
