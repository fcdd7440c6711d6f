// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/cpu/rho_bounds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "calibrator/fit/backend.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

using Keys = std::vector<std::uint32_t>;

cpu::RhoBounds bounds_of(const Keys& keys, const RankedTarget& target, std::uint32_t lowest,
                         std::uint32_t highest) {
  cpu::BucketedRanks buckets;
  buckets.begin(keys.size(), lowest, highest);
  // In two parts, as rows of pairs come.
  const std::size_t half = keys.size() / 2;
  buckets.add(std::span(keys).first(half), target.doubled_ranks.data());
  buckets.add(std::span(keys).subspan(half), target.doubled_ranks.data() + half);
  return buckets.bounds(target);
}

/// Keys that follow the target's more or less, with the distributions that bounds could be wrong for.
struct Sample {
  const char* name;
  std::function<std::uint32_t(std::mt19937_64&)> draw;
};
const Sample kSamples[] = {
    {"uniform", [](auto& engine) { return static_cast<std::uint32_t>(engine() & 0x7FFFFFFFU); }},
    {"few distinct", [](auto& engine) { return static_cast<std::uint32_t>(engine() % 3 * 700'000'000); }},
    {"crowded", [](auto& engine) { return static_cast<std::uint32_t>(1'000'000 + engine() % 50); }},
    {"skewed", [](auto& engine) {
       const double u = static_cast<double>(engine() >> 11U) / 9007199254740992.0;
       return static_cast<std::uint32_t>(std::pow(u, 8) * 2e9);
     }}};

TEST(RhoBounds, HoldTheExactValueWhateverTheKeys) {
  std::mt19937_64 engine(5);
  SpearmanSorter sorter;
  for (const Sample& sample : kSamples) {
    for (const std::size_t n : {2, 3, 50, 4000, 60000}) {
      for (const double follow : {-1.0, 0.0, 0.7, 1.0}) {
        Keys y(n);
        Keys x(n);
        for (std::size_t i = 0; i < n; ++i) {
          y[i] = sample.draw(engine);
          const bool same = static_cast<double>(engine() % 1000) < 1000 * std::abs(follow);
          x[i] = !same ? sample.draw(engine) : follow > 0 ? y[i] : 0x7FFFFFFFU - y[i];
        }
        const RankedTarget target = sorter.rank(y);
        const double exact = sorter.rho(x, target);
        const auto [lowest, highest] = std::minmax_element(x.begin(), x.end());
        const std::uint32_t middle = (*lowest + *highest) / 2;
        for (const auto& [from, to] : {std::pair{*lowest, *highest}, std::pair{0U, 0x7FFFFFFFU},
                                       std::pair{middle, *highest}, std::pair{middle, middle}}) {
          const cpu::RhoBounds bounds = bounds_of(x, target, from, to);
          EXPECT_LE(bounds.lower, exact) << sample.name << ", " << n << ", " << follow;
          EXPECT_GE(bounds.upper, exact) << sample.name << ", " << n << ", " << follow;
        }
      }
    }
  }
}

TEST(RhoBounds, AreNarrowOverManyPairs) {
  std::mt19937_64 engine(6);
  std::normal_distribution<double> normal;
  const std::size_t n = 500'000;
  Keys x(n);
  Keys y(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double common = normal(engine);
    x[i] = cosine_key(std::clamp(0.5 + 0.06 * (common + normal(engine)), 0.0, 1.0));
    y[i] = cosine_key(std::clamp(0.5 + 0.06 * (common + normal(engine)), 0.0, 1.0));
  }
  const RankedTarget target = SpearmanSorter().rank(y);
  const auto [lowest, highest] = std::minmax_element(x.begin(), x.end());
  const cpu::RhoBounds bounds = bounds_of(x, target, *lowest, *highest);
  EXPECT_LT(bounds.upper - bounds.lower, 2e-4);
}

/// Leaving layers out by bounds must never change which one is taken.
TEST(RhoBounds, TheBestLayerIsThatOfSortingAll) {
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    auto trace = samples::trace(seed, {.requests = 90, .layers = 12});
    const std::size_t row = std::size_t{12} * trace.experts;
    for (std::size_t r = 0; r < trace.requests(); ++r) {  // layers 2 and 9 are equal: a tie
      const auto from =
          trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>(r * row + 2 * trace.experts);
      std::copy(from, from + trace.experts,
                trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>(r * row + 9 * trace.experts));
    }
    std::vector<std::size_t> requests(trace.requests());
    std::iota(requests.begin(), requests.end(), std::size_t{0});
    std::vector<std::size_t> left(12);
    std::iota(left.begin(), left.end(), std::size_t{0});
    const auto transform = signature::Transform::kCount;
    auto scorer = make_cpu_backend(3)
                      ->layer_scorer(prefill_features(trace, requests, left, transform,
                                                      idf_of(trace, requests, transform)),
                                     decode_features(trace, requests))
                      .value();
    while (!left.empty()) {
      const auto rhos = scorer->score(left).value();
      const auto highest = std::max_element(rhos.begin(), rhos.end());
      const auto best = scorer->best(left).value();
      ASSERT_EQ(best.layer, left[static_cast<std::size_t>(highest - rhos.begin())]);
      ASSERT_EQ(best.rho, *highest);
      ASSERT_TRUE(scorer->add(best.layer));
      std::erase(left, best.layer);
    }
  }
}

}  // namespace
}  // namespace eldr::calibrator
