// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/band.h"

#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eldr::signature {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Candidate with(float similarity, std::uint32_t in_flight) { return {similarity, in_flight}; }
Candidate without(std::uint32_t in_flight) { return {std::nullopt, in_flight}; }

std::vector<Candidate> random_candidates(std::mt19937_64& random, bool every_one_similar) {
  std::vector<Candidate> candidates(1 + random() % 12);
  for (Candidate& candidate : candidates) {
    if (every_one_similar || random() % 4 != 0) candidate.similarity = static_cast<float>(random() % 20) / 20;
    candidate.in_flight = static_cast<std::uint32_t>(random() % 5);
  }
  return candidates;
}

TEST(LocalityBand, HoldsTheCandidatesNotWorseThanTheBestByMoreThanTau) {
  const std::vector<Candidate> candidates = {with(0.50F, 0), with(0.90F, 0), with(0.85F, 0), with(0.79F, 0)};
  EXPECT_THAT(locality_band(candidates, 0.0F), ElementsAre(1));
  EXPECT_THAT(locality_band(candidates, 0.1F), ElementsAre(1, 2));
  EXPECT_THAT(locality_band(candidates, 0.2F), ElementsAre(1, 2, 3));
  EXPECT_THAT(locality_band(candidates, 1.0F), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(locality_band({}, 0.1F), IsEmpty());
}

TEST(LocalityBand, AdmitsEveryCandidateWithoutACluster) {
  const std::vector<Candidate> candidates = {with(0.1F, 0), without(9), with(0.9F, 0)};
  EXPECT_THAT(locality_band(candidates, 0.0F), ElementsAre(1, 2));
  const std::vector<Candidate> unknown = {without(1), without(2)};
  EXPECT_THAT(locality_band(unknown, 0.0F), ElementsAre(0, 1));
}

TEST(LocalityBand, TauOfTwoIsEveryCandidateEvenWhereRoundingLeavesTheRange) {
  const std::vector<Candidate> candidates = {with(1.0000002F, 0), with(-1.0000002F, 0)};
  EXPECT_THAT(locality_band(candidates, 2.0F), ElementsAre(0, 1));
}

TEST(LocalityBand, AgreesWithItsDefinition) {
  std::mt19937_64 random(1);
  for (int instance = 0; instance < 2000; ++instance) {
    const auto candidates = random_candidates(random, false);
    const float tau = static_cast<float>(random() % 21) / 20;
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const bool beaten = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
        return candidates[i].similarity && other.similarity &&
               *candidates[i].similarity < *other.similarity - tau;
      });
      if (!beaten) expected.push_back(i);
    }
    EXPECT_EQ(locality_band(candidates, tau), expected);
  }
}

TEST(LeastLoaded, TakesTheFewestInFlightThenTheHigherSimilarity) {
  const std::vector<Candidate> candidates = {with(0.9F, 3), with(0.8F, 1), with(0.85F, 1), without(1),
                                             with(0.1F, 0)};
  const std::vector<std::size_t> band = {0, 1, 2, 3};
  for (std::uint64_t tie_break = 0; tie_break < 10; ++tie_break)
    EXPECT_EQ(least_loaded(candidates, band, tie_break), 2U);
  const std::vector<std::size_t> everybody = {0, 1, 2, 3, 4};
  EXPECT_EQ(least_loaded(candidates, everybody, 0), 4U);
}

TEST(LeastLoaded, SpreadsTiesEvenly) {
  const std::vector<Candidate> candidates = {without(2), without(1), without(5), without(1), without(1)};
  const std::vector<std::size_t> band = {0, 1, 2, 3, 4};
  std::map<std::size_t, int> chosen;
  for (std::uint64_t tie_break = 0; tie_break < 300; ++tie_break)
    ++chosen[least_loaded(candidates, band, tie_break)];
  EXPECT_EQ(chosen, (std::map<std::size_t, int>{{1, 100}, {3, 100}, {4, 100}}));
}

TEST(LeastLoaded, ChoosesInsideTheBandAndNobodyThereIsBetter) {
  std::mt19937_64 random(2);
  for (int instance = 0; instance < 2000; ++instance) {
    const auto candidates = random_candidates(random, false);
    const auto band = locality_band(candidates, 0.2F);
    const std::size_t choice = least_loaded(candidates, band, random());
    ASSERT_NE(std::find(band.begin(), band.end(), choice), band.end());
    for (const std::size_t other : band) EXPECT_LE(candidates[choice].in_flight, candidates[other].in_flight);
  }
}

TEST(LoadAwareChoice, FollowsTheFormula) {
  std::mt19937_64 random(3);
  for (int instance = 0; instance < 2000; ++instance) {
    const auto candidates = random_candidates(random, true);
    const float weight = static_cast<float>(random() % 30) / 10;
    double mean = 0;
    for (const auto& c : candidates) mean += c.in_flight / static_cast<double>(candidates.size());
    const auto score = [&](const Candidate& c) {
      return *c.similarity - weight * (c.in_flight - mean) / (mean + 1);
    };
    const Candidate& choice = candidates[load_aware_choice(candidates, weight, random())];
    for (const auto& other : candidates) EXPECT_GE(score(choice), score(other) - 1e-9);
  }
}

TEST(LoadAwareChoice, WithoutLoadOrWeightTakesTheMostSimilar) {
  const std::vector<Candidate> idle = {with(0.5F, 0), with(0.9F, 0), with(0.8F, 0)};
  EXPECT_EQ(load_aware_choice(idle, 1.0F, 7), 1U);
  const std::vector<Candidate> busy = {with(0.5F, 0), with(0.9F, 100), with(0.8F, 0)};
  EXPECT_EQ(load_aware_choice(busy, 0.0F, 7), 1U);
  EXPECT_EQ(load_aware_choice(busy, 1.0F, 7), 2U);
}

TEST(LoadAwareChoice, GivesACandidateWithoutAClusterTheMeanSimilarity) {
  // Mean similarity 0.7: with equal load the better of the others wins, with less load the new one.
  const std::vector<Candidate> equal = {with(0.6F, 4), with(0.8F, 4), without(4)};
  EXPECT_EQ(load_aware_choice(equal, 1.0F, 0), 1U);
  const std::vector<Candidate> fresh = {with(0.6F, 4), with(0.8F, 4), without(0)};
  EXPECT_EQ(load_aware_choice(fresh, 1.0F, 0), 2U);
}

TEST(LoadAwareChoice, WithNoClusterAnywhereIsTheLeastLoadedAndSpreadsTies) {
  const std::vector<Candidate> candidates = {without(3), without(1), without(1)};
  std::map<std::size_t, int> chosen;
  for (std::uint64_t tie_break = 0; tie_break < 100; ++tie_break)
    ++chosen[load_aware_choice(candidates, 1.0F, tie_break)];
  EXPECT_EQ(chosen, (std::map<std::size_t, int>{{1, 50}, {2, 50}}));
}

}  // namespace
}  // namespace eldr::signature
