// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/memory_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "calibrator/fit/pairs.h"

namespace eldr::calibrator::cuda {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
constexpr ScorerShape kBig{8000, 48, 128};

/// Places are in order, apart, aligned, and inside.
void expect_apart(const ScorerPlan& plan, const ScorerShape& shape, std::uint64_t scratch) {
  const std::uint64_t n = shape.requests;
  const std::uint64_t pairs = pair_count(n);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places = {{plan.upload, n * shape.columns * 4},
                                                                 {plan.rows, n * shape.columns * 8},
                                                                 {plan.tile, plan.tile_rows * n * 8},
                                                                 {plan.diagonal, n * 8},
                                                                 {plan.inverse, n * 8},
                                                                 {plan.sums, pairs * 8},
                                                                 {plan.ranks, pairs * 4},
                                                                 {plan.sort[0], pairs * 4},
                                                                 {plan.sort[1], pairs * 4},
                                                                 {plan.sort[2], pairs * 4},
                                                                 {plan.sort[3], pairs * 4},
                                                                 {plan.scratch, scratch}};
  for (std::uint64_t layer = 0; layer < plan.kept_layers; ++layer) {
    places.emplace_back(plan.kept + layer * plan.layer_pairs_bytes, pairs * 4);
  }
  if (plan.kept_layers < shape.layers) {
    places.emplace_back(plan.shared, pairs * 4);
  }
  for (std::uint64_t layer = plan.kept_layers; layer < shape.layers; ++layer) {
    places.emplace_back(plan.features + (layer - plan.kept_layers) * plan.layer_features_bytes,
                        n * shape.columns * 4);
  }
  std::uint64_t end = 0;
  for (const auto& [offset, bytes] : places) {
    EXPECT_EQ(offset % 256, 0U);
    EXPECT_GE(offset, end);
    end = offset + bytes;
  }
  EXPECT_LE(end, plan.bytes);
}

TEST(ScorerPlan, HasTheFiguresOfTheReference) {
  // The table of docs/reference/calibrator.md: N, MiB at least, MiB for every layer.
  constexpr std::uint64_t kScratch = 64 * kMiB;
  struct Row {
    std::uint64_t requests;
    std::uint64_t least;
    std::uint64_t all;
  };
  for (const auto& [requests, least, all] :
       {Row{1000, 112, 178}, Row{4000, 435, 1865}, Row{8000, 1323, 7045}, Row{65536, 67488, 451'000}}) {
    const ScorerShape shape{requests, 48, 128};
    const auto fits = [&](std::uint64_t mebibytes) {
      return plan_scorer(shape, kScratch, mebibytes * kMiB) &&
             plan_similarities(requests, 48 * 128, mebibytes * kMiB);
    };
    EXPECT_TRUE(fits(least)) << requests;
    EXPECT_FALSE(fits(least - 1)) << requests;
    const auto roomy = plan_scorer(shape, kScratch, all * kMiB);
    ASSERT_TRUE(roomy);
    EXPECT_EQ(roomy->kept_layers, 48U);
    EXPECT_NEAR(static_cast<double>(roomy->bytes) / static_cast<double>(all * kMiB), 1.0, 0.01);
    expect_apart(*roomy, shape, kScratch);
  }
  const auto some = plan_scorer(kBig, kScratch, 4 * kGiB);
  ASSERT_TRUE(some);
  EXPECT_GT(some->kept_layers, 15U);
  EXPECT_LT(some->kept_layers, 30U);
  EXPECT_LE(some->bytes, 4 * kGiB);
  expect_apart(*some, kBig, kScratch);
}

TEST(ScorerPlan, FitsEveryLimitOrSaysWhatIsNeeded) {
  for (const ScorerShape& shape :
       {kBig, ScorerShape{2, 1, 1}, ScorerShape{60, 5, 16}, ScorerShape{65536, 94, 128}}) {
    std::uint64_t kept_before = 0;
    for (std::uint64_t available = 1024; available < 2000 * kGiB; available += available / 7 + 1) {
      const auto plan = plan_scorer(shape, 1000, available);
      if (!plan) {
        EXPECT_EQ(plan.error().code, Code::kResourceExhausted);
        EXPECT_EQ(kept_before, 0U);
        continue;
      }
      ASSERT_LE(plan->bytes, available);
      ASSERT_GE(plan->tile_rows, 1U);
      ASSERT_LE(plan->tile_rows, shape.requests);
      expect_apart(*plan, shape, 1000);
      kept_before = std::max(kept_before, plan->kept_layers);
    }
    EXPECT_EQ(kept_before, shape.layers);
  }
  const auto none = plan_scorer(kBig, 0, 512 * kMiB);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("8000 requests"), std::string::npos) << none.error().message;
  EXPECT_NE(none.error().message.find("512 MiB may be used"), std::string::npos) << none.error().message;
}

TEST(SimilarityPlan, KeepsTheMatrixWhereItFits) {
  const auto roomy = plan_similarities(8000, 48 * 128, 8 * kGiB);
  ASSERT_TRUE(roomy);
  EXPECT_TRUE(roomy->kept);
  EXPECT_EQ(roomy->gram_bytes, 256'000'000U);
  EXPECT_LE(roomy->work_bytes + roomy->gram_bytes, 8 * kGiB);

  const auto tight = plan_similarities(8000, 48 * 128, 500 * kMiB);
  ASSERT_TRUE(tight);
  EXPECT_FALSE(tight->kept);
  EXPECT_LE(tight->work_bytes, 500 * kMiB);
  EXPECT_GE(tight->narrow, tight->tile + tight->tile_rows * 8000 * 8);

  EXPECT_FALSE(plan_similarities(8000, 48 * 128, 300 * kMiB));
  const auto largest = plan_similarities(65536, 128, 64 * kGiB);
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->gram_bytes, std::uint64_t{1} << 34U);
}

}  // namespace
}  // namespace eldr::calibrator::cuda
