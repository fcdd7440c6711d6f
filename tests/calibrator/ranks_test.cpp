// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/ranks.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

std::vector<double> as_doubles(const std::vector<std::uint32_t>& keys) { return {keys.begin(), keys.end()}; }

TEST(Ranks, AverageOnTies) {
  const std::vector<std::uint32_t> keys = {30, 10, 20, 20, 5, 20};
  // sorted: 5 10 20 20 20 30; the twenties share (3 + 4 + 5) / 3 = 4
  EXPECT_EQ(SpearmanSorter().rank(keys).doubled_ranks, (std::vector<std::uint32_t>{12, 4, 8, 8, 2, 8}));
}

TEST(Ranks, RhoIsThatOfAPlainComputation) {
  std::mt19937_64 engine(7);
  SpearmanSorter sorter;
  for (const std::uint32_t distinct : {2U, 5U, 100U, 3000U, 0x7FFFFFFFU}) {
    for (const std::size_t n : {2, 3, 17, 1000, 5000}) {
      std::vector<std::uint32_t> x(n);
      std::vector<std::uint32_t> y(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = static_cast<std::uint32_t>(engine() % distinct);
        y[i] = i % 3 == 0 ? x[i] : static_cast<std::uint32_t>(engine() % distinct);
      }
      const RankedTarget target = sorter.rank(y);
      EXPECT_NEAR(sorter.rho(x, target), samples::spearman(as_doubles(x), as_doubles(y)), 1e-12)
          << n << " values of " << distinct;
    }
  }
}

TEST(Ranks, KeysThatLieCloseTogetherAreSortedToTheLastBit) {
  std::mt19937_64 engine(8);
  SpearmanSorter sorter;
  for (const std::uint32_t spread : {1U, 3U, 400U, 2000U, 100000U}) {  // many entries share their upper bits
    std::vector<std::uint32_t> x(4000);
    std::vector<std::uint32_t> y(4000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 2000000000U + static_cast<std::uint32_t>(engine() % spread);
      y[i] = x[i] + static_cast<std::uint32_t>(engine() % spread);
    }
    EXPECT_NEAR(sorter.rho(x, sorter.rank(y)), samples::spearman(as_doubles(x), as_doubles(y)), 1e-12)
        << spread;
  }
}

TEST(Ranks, PerfectAndReversedOrder) {
  SpearmanSorter sorter;
  const std::vector<std::uint32_t> up = {1, 5, 9, 2000000000, 2000000001};
  const std::vector<std::uint32_t> down = {9, 7, 5, 3, 1};
  EXPECT_DOUBLE_EQ(sorter.rho(up, sorter.rank(up)), 1.0);
  EXPECT_DOUBLE_EQ(sorter.rho(down, sorter.rank(up)), -1.0);
}

TEST(Ranks, NoSpreadIsNoCorrelation) {
  SpearmanSorter sorter;
  const std::vector<std::uint32_t> flat(10, 42);
  const std::vector<std::uint32_t> steep = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(sorter.rho(flat, sorter.rank(steep)), 0);
  EXPECT_EQ(sorter.rho(steep, sorter.rank(flat)), 0);
}

TEST(Ranks, CosinesThatDifferByRoundingAreATie) {
  EXPECT_EQ(cosine_key(0.7), cosine_key(0.7 + 1e-15));
  EXPECT_LT(cosine_key(0.7), cosine_key(0.7 + 1e-8));
  EXPECT_EQ(cosine_key(-1e-9), 0U);
  EXPECT_LT(cosine_key(1.0 + 1e-12), 0x80000000U);
}

}  // namespace
}  // namespace eldr::calibrator
