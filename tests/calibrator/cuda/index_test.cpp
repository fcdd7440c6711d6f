// SPDX-License-Identifier: Apache-2.0
// The kernels' index arithmetic, up to sizes whose products leave 32 bits.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "calibrator/cuda/kernels.h"

namespace eldr::calibrator::cuda {
namespace {

constexpr std::uint64_t kMost = 65536;  // requests: 2,147,450,880 pairs, over 2^30 and under 2^31

void expect_pair(std::uint64_t n, std::uint64_t i, std::uint64_t j) {
  const std::uint64_t index = index_of_pair(n, i, j);
  const Pair pair = pair_at(n, index);
  ASSERT_EQ(pair.i, i) << "n " << n << ", j " << j;
  ASSERT_EQ(pair.j, j) << "n " << n << ", i " << i;
}

TEST(PairIndex, NumbersAllPairsOfSmallSets) {
  for (std::uint64_t n = 2; n <= 130; ++n) {
    std::uint64_t index = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::uint64_t j = i + 1; j < n; ++j, ++index) {
        ASSERT_EQ(index_of_pair(n, i, j), index);
        expect_pair(n, i, j);
      }
    }
    ASSERT_EQ(index, pair_count(n));
  }
}

TEST(PairIndex, HoldsAtBothEndsOfEveryRow) {
  for (const std::uint64_t n : {std::uint64_t{8000}, std::uint64_t{46341}, kMost}) {
    for (std::uint64_t i = 0; i + 1 < n; ++i) {
      expect_pair(n, i, i + 1);
      expect_pair(n, i, n - 1);
    }
  }
  EXPECT_EQ(pair_count(8000), 31'996'000U);
  EXPECT_EQ(pair_count(kMost), 2'147'450'880U);
  EXPECT_EQ(pair_at(kMost, pair_count(kMost) - 1).i, kMost - 2);
}

TEST(PairIndex, HoldsBeyond32Bits) {
  std::mt19937_64 random(1);
  const std::uint64_t n = std::uint64_t{1} << 26U;  // 2^51 pairs
  for (int trial = 0; trial < 20000; ++trial) {
    const std::uint64_t i = random() % (n - 1);
    expect_pair(n, i, i + 1 + random() % (n - i - 1));
  }
  expect_pair(n, 0, 1);
  expect_pair(n, n - 2, n - 1);
}

TEST(GramBlock, NamesItsEntriesBeyond32Bits) {
  const GramBlock block{60000, 5000, 100, kMost};
  const std::uint64_t entry = 4999 * kMost + 65535;
  EXPECT_EQ(block.size(), 327'680'000U);
  EXPECT_EQ(block.row_of(entry), 64999U);
  EXPECT_EQ(block.column_of(entry), 65635U);
  const GramBlock whole{0, kMost, 0, kMost};
  EXPECT_EQ(whole.size(), std::uint64_t{1} << 32U);
  EXPECT_EQ(whole.row_of(whole.size() - 1), kMost - 1);
  EXPECT_EQ(whole.column_of(whole.size() - 1), kMost - 1);
}

void expect_runs(const std::vector<std::uint32_t>& keys) {
  for (std::size_t place = 0; place < keys.size(); ++place) {
    const auto [first, last] = std::equal_range(keys.begin(), keys.end(), keys[place]);
    const TieRun run = tie_run(keys.data(), keys.size(), place);
    ASSERT_EQ(run.first, static_cast<std::uint64_t>(first - keys.begin())) << "place " << place;
    ASSERT_EQ(run.end, static_cast<std::uint64_t>(last - keys.begin())) << "place " << place;
  }
}

TEST(TieRun, FindsTheBoundsFromEveryPlace) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::uint32_t> keys(1 + random() % 200);
    const std::uint32_t distinct = 1 + static_cast<std::uint32_t>(random() % 40);
    for (std::uint32_t& key : keys) {
      key = static_cast<std::uint32_t>(random()) % distinct;
    }
    std::sort(keys.begin(), keys.end());
    expect_runs(keys);
  }
  // One run before, one behind, of every length that the doubling steps see.
  for (std::size_t length = 1; length < 70; ++length) {
    std::vector<std::uint32_t> keys(length, 5);
    expect_runs(keys);
    keys.insert(keys.begin(), 3);
    keys.push_back(7);
    expect_runs(keys);
  }
}

TEST(TieRun, DoublesRanksThatFill32Bits) {
  // All pairs of the largest set in one tie: ranks 1 … P.
  const std::uint64_t pairs = pair_count(kMost);
  EXPECT_EQ((TieRun{0, pairs}.doubled_rank()), pairs + 1);
  // The last alone: the largest doubled rank there is, and its square fits 64 bits.
  const std::uint64_t largest = TieRun{pairs - 1, pairs}.doubled_rank();
  EXPECT_EQ(largest, 2 * pairs);
  EXPECT_LT(largest, std::uint64_t{1} << 32U);
  EXPECT_EQ(static_cast<Wide>(largest) * largest, static_cast<Wide>(largest * largest));
}

TEST(RankSums, OfTheLargestSetDoNotWrap) {
  // No ties, the same order on both sides: sums of (2 r)^2 over r = 1 … P, by the formula, need 94 bits.
  const std::uint64_t pairs = pair_count(kMost);
  const Wide squares = static_cast<Wide>(2) * pairs * (pairs + 1) / 3 * (2 * static_cast<Wide>(pairs) + 1);
  EXPECT_GT(squares, static_cast<Wide>(1) << 93U);
  const RankSums halves =
      RankSums{squares / 2, squares / 2} + RankSums{squares - squares / 2, squares - squares / 2};
  EXPECT_NEAR(spearman_rho(halves, pairs, about_the_mean(squares, pairs)), 1.0, 1e-12);
}

TEST(ClusterSums, AddsMembersInOrderWhateverTheBlocks) {
  const std::uint64_t n = 37;
  const std::uint64_t clusters = 4;
  std::mt19937_64 random(3);
  std::vector<float> gram(n * n);
  for (float& value : gram) {
    value = static_cast<float>(random() % 1000) / 999.0F;
  }
  std::vector<std::vector<std::uint32_t>> lists(clusters);  // cluster 2 has none
  for (std::uint32_t i = 0; i < n; ++i) {
    lists[std::vector<std::size_t>{0, 1, 3}[random() % 3]].push_back(i);
  }
  std::vector<std::uint32_t> members;
  std::vector<std::uint32_t> begins{0};
  for (const auto& list : lists) {
    members.insert(members.end(), list.begin(), list.end());
    begins.push_back(static_cast<std::uint32_t>(members.size()));
  }
  for (const std::uint64_t height : {n, std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{36}}) {
    std::vector<double> sums(clusters * n, 0.0);
    for (std::uint64_t first = 0; first < n; first += height) {
      const ClusterSums body{
          gram.data() + first * n, first,      std::min(first + height, n), n, members.data(),
          begins.data(),           sums.data()};
      for (std::uint64_t entry = sums.size(); entry-- > 0;) {
        body(entry);
      }
    }
    for (std::uint64_t k = 0; k < clusters; ++k) {
      for (std::uint64_t i = 0; i < n; ++i) {
        double expected = 0;
        for (const std::uint32_t j : lists[k]) {
          expected += gram[j * n + i];
        }
        ASSERT_EQ(sums[k * n + i], expected) << "height " << height;
      }
    }
  }
}

}  // namespace
}  // namespace eldr::calibrator::cuda
