// SPDX-License-Identifier: Apache-2.0
// Each policy against the plainest statement of its rule.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "router/policies/load_only.h"
#include "router/policies/locality_band.h"
#include "router/policies/prefill.h"

namespace eldr::router {
namespace {

using signature::Candidate;

class RandomCandidates {
 public:
  std::vector<Candidate> next(bool all_similar) {
    std::vector<Candidate> candidates(1 + random_() % 12);
    for (auto& candidate : candidates) {
      candidate.in_flight = static_cast<std::uint32_t>(random_() % 6);
      if (all_similar || random_() % 4 != 0)
        candidate.similarity = static_cast<float>(random_() % 1000) / 1000.0F;
    }
    return candidates;
  }
  std::uint64_t draw() { return random_(); }

 private:
  std::mt19937_64 random_{5};
};

std::set<std::size_t> band_of(const std::vector<Candidate>& candidates, float tau) {
  float best = -2;
  for (const auto& candidate : candidates) best = std::max(best, candidate.similarity.value_or(-2));
  std::set<std::size_t> band;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (!candidates[i].similarity || *candidates[i].similarity >= best - tau) band.insert(i);
  return band;
}

TEST(LocalityBand, TakesTheLeastLoadedWithinTauOfTheBest) {
  RandomCandidates random;
  for (const float tau : {0.0F, 0.1F, 0.5F, 2.0F}) {
    const LocalityBand policy(tau);
    EXPECT_TRUE(policy.uses_signature());
    for (int i = 0; i < 2000; ++i) {
      const auto candidates = random.next(false);
      const auto choice = policy.choose(candidates, random.draw());
      const auto band = band_of(candidates, tau);
      ASSERT_TRUE(band.count(choice.index));
      EXPECT_EQ(choice.band, band.size());
      for (const auto index : band)
        ASSERT_LE(candidates[choice.index].in_flight, candidates[index].in_flight);
    }
  }
}

TEST(LoadAwareBand, MaximisesSimilarityMinusWeightedLoad) {
  RandomCandidates random;
  const LoadAwareBand policy(0.4F);
  for (int i = 0; i < 2000; ++i) {
    const auto candidates = random.next(true);
    const auto choice = policy.choose(candidates, random.draw());
    double mean = 0;
    for (const auto& candidate : candidates) mean += candidate.in_flight;
    mean /= static_cast<double>(candidates.size());
    const auto score = [&](const Candidate& candidate) {
      return *candidate.similarity - 0.4 * (candidate.in_flight - mean) / (mean + 1);
    };
    for (const auto& candidate : candidates)
      ASSERT_GE(score(candidates[choice.index]), score(candidate) - 1e-5);
  }
}

TEST(JoinShortestQueue, TakesAFewestAndSpreadsTies) {
  RandomCandidates random;
  const JoinShortestQueue policy;
  for (int i = 0; i < 2000; ++i) {
    const auto candidates = random.next(false);
    const auto choice = policy.choose(candidates, random.draw());
    for (const auto& candidate : candidates)
      ASSERT_LE(candidates[choice.index].in_flight, candidate.in_flight);
  }
  const std::vector<Candidate> ties = {{{}, 1}, {{}, 0}, {{}, 5}, {{}, 0}, {{}, 0}};
  std::map<std::size_t, int> times;
  for (int i = 0; i < 3000; ++i) ++times[policy.choose(ties, random.draw()).index];
  EXPECT_EQ(times.size(), 3U);
  for (const auto& [index, count] : times) EXPECT_NEAR(count, 1000, 150) << index;
}

TEST(PowerOfTwoChoices, TakesTheLessLoadedOfTwoDifferentWorkers) {
  RandomCandidates random;
  const PowerOfTwoChoices policy;
  const std::vector<Candidate> two = {{{}, 3}, {{}, 1}};
  for (int i = 0; i < 200; ++i) EXPECT_EQ(policy.choose(two, random.draw()).index, 1U);
  // Of n workers in order of load, the k-th best is taken when it is drawn with one of the worse.
  const std::vector<Candidate> four = {{{}, 0}, {{}, 1}, {{}, 2}, {{}, 3}};
  std::map<std::size_t, int> times;
  for (int i = 0; i < 60'000; ++i) ++times[policy.choose(four, random.draw()).index];
  EXPECT_NEAR(times[0], 30'000, 1000);
  EXPECT_NEAR(times[1], 20'000, 1000);
  EXPECT_NEAR(times[2], 10'000, 1000);
  EXPECT_EQ(times[3], 0);
  EXPECT_EQ(policy.choose({four.data(), 1}, 9).index, 0U);
}

TEST(RoundRobin, GoesRound) {
  const RoundRobin policy;
  const std::vector<Candidate> three(3);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(policy.choose(three, 77).index, i % 3);
}

TEST(RandomPolicy, IsEven) {
  RandomCandidates random;
  const Random policy;
  const std::vector<Candidate> four(4);
  std::map<std::size_t, int> times;
  for (int i = 0; i < 8000; ++i) ++times[policy.choose(four, random.draw()).index];
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(times[i], 2000, 250);
}

std::vector<PrefillCandidate> workers(std::size_t count) {
  std::vector<PrefillCandidate> candidates;
  for (std::size_t i = 0; i < count; ++i) candidates.push_back({mix(1000 + i), 0});
  return candidates;
}

TEST(PrefixHash, TheSameBeginningGoesToTheSameWorker) {
  const PrefixHash policy(16);
  const auto candidates = workers(8);
  std::map<std::size_t, int> times;
  for (int i = 0; i < 4000; ++i) {
    const std::string prefix = "prefix " + std::to_string(100000 + i) + "...";
    const auto chosen = policy.choose(candidates, prefix + "one ending", 1);
    EXPECT_EQ(policy.choose(candidates, prefix + "another", 2), chosen);
    ++times[chosen];
  }
  for (const auto& [index, count] : times) EXPECT_NEAR(count, 500, 120) << index;
  EXPECT_EQ(times.size(), 8U);
}

TEST(PrefixHash, ALeavingWorkerMovesOnlyItsOwnPrefixes) {
  const PrefixHash policy(64);
  const auto before = workers(8);
  auto after = before;
  after.erase(after.begin() + 3);
  for (int i = 0; i < 2000; ++i) {
    const std::string prompt = "prompt " + std::to_string(i);
    const auto first = policy.choose(before, prompt, 0);
    const auto second = policy.choose(after, prompt, 0);
    if (first == 3) continue;
    EXPECT_EQ(before[first].id_hash, after[second].id_hash) << prompt;
  }
}

TEST(PrefixHash, AWorkerOverItsShareIsPassedOver) {
  const PrefixHash policy(64);
  auto candidates = workers(4);
  const auto home = policy.choose(candidates, "popular", 0);
  candidates[home].in_flight = PrefixHash::kFloor - 1;
  EXPECT_EQ(policy.choose(candidates, "popular", 0), home);
  candidates[home].in_flight = PrefixHash::kFloor;
  const auto second = policy.choose(candidates, "popular", 0);
  EXPECT_NE(second, home);
  EXPECT_EQ(policy.choose(candidates, "popular", 99), second);  // the next is always the same one
  for (auto& candidate : candidates) candidate.in_flight = 1000;
  EXPECT_EQ(policy.choose(candidates, "popular", 0), home);  // all alike: nobody is over
}

TEST(MakePolicies, EveryNameHasItsClass) {
  RoutingConfig routing;
  for (const auto name : {DecodePolicyName::kLocalityBand, DecodePolicyName::kLoadAwareBand,
                          DecodePolicyName::kJoinShortestQueue, DecodePolicyName::kPowerOfTwoChoices,
                          DecodePolicyName::kRoundRobin, DecodePolicyName::kRandom}) {
    routing.policy = name;
    const auto policy = make_decode_policy(routing, 0.3);
    ASSERT_NE(policy, nullptr);
    const bool by_signature =
        name == DecodePolicyName::kLocalityBand || name == DecodePolicyName::kLoadAwareBand;
    EXPECT_EQ(policy->uses_signature(), by_signature);
  }
  for (const auto name :
       {PrefillPolicyName::kPrefixHash, PrefillPolicyName::kJoinShortestQueue,
        PrefillPolicyName::kPowerOfTwoChoices, PrefillPolicyName::kRoundRobin, PrefillPolicyName::kRandom}) {
    routing.prefill_policy = name;
    EXPECT_LT(make_prefill_policy(routing)->choose(workers(3), "p", 4), 3U);
  }
}

}  // namespace
}  // namespace eldr::router
