// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "calibrator/report/analysis/label_similarity.h"
#include "tests/calibrator/report/fits.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

using Names = std::vector<std::string>;

TEST(LabelGroups, TheMostFrequentFirst) {
  const Names labels = {"b", "a", "c", "c", "", "c", "a", "b"};
  const LabelGroups groups = group_labels(labels, 8, 10);
  EXPECT_EQ(groups.names, (Names{"c", "a", "b", ""}));
  EXPECT_EQ(groups.sizes, (std::vector<std::uint32_t>{3, 2, 2, 1}));
  EXPECT_EQ(groups.of_request, (std::vector<std::uint32_t>{2, 1, 0, 0, 3, 0, 1, 2}));
  EXPECT_EQ(groups.folded, 0U);
}

TEST(LabelGroups, RareLabelsShareTheLast) {
  const Names labels = {"b", "a", "c", "c", "d", "c", "a", "b"};
  const LabelGroups groups = group_labels(labels, 8, 3);
  EXPECT_EQ(groups.names, (Names{"c", "a", ""}));
  EXPECT_EQ(groups.sizes, (std::vector<std::uint32_t>{3, 2, 3}));
  EXPECT_EQ(groups.of_request, (std::vector<std::uint32_t>{2, 1, 0, 0, 2, 0, 1, 2}));
  EXPECT_EQ(groups.folded, 2U);
}

TEST(LabelGroups, WithoutLabelsAllAreOne) {
  const LabelGroups groups = group_labels({}, 3, 8);
  EXPECT_EQ(groups.count(), 1U);
  EXPECT_EQ(groups.sizes, (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(groups.of_request, (std::vector<std::uint32_t>{0, 0, 0}));
}

TEST(LabelSimilarity, MeansAndCountsOfEachLabel) {
  auto trace = samples::trace(5, {.requests = 60});
  const auto set = samples::fitted(trace, 3);
  const auto fitted = match_trace(trace, set);
  ASSERT_TRUE(fitted);
  const LabelSimilarity result = label_similarity(*fitted, 24);
  ASSERT_EQ(result.labels.names, (Names{"d0", "d1", "d2"}));
  for (Eigen::Index label = 0; label < 3; ++label) {
    for (Eigen::Index cluster = 0; cluster < 3; ++cluster) {
      double sum = 0;
      int members = 0;
      for (std::size_t r = static_cast<std::size_t>(label); r < 60; r += 3) {
        sum += fitted->similarities(static_cast<Eigen::Index>(r), cluster);
        members += set.assignment[r] == cluster ? 1 : 0;
      }
      EXPECT_NEAR(result.cosine(label, cluster), sum / 20, 1e-6);
      EXPECT_EQ(result.counts(label, cluster), members);
    }
  }
  EXPECT_EQ(result.main_label_share, 1);  // the domains are far apart
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.counts(static_cast<Eigen::Index>(i), result.cluster_order[i]), 20);
  }
}

TEST(LabelSimilarity, FoldedLabelsCountForThemselves) {
  auto trace = samples::trace(6, {.requests = 60});
  for (std::size_t r = 0; r < 60; ++r) {
    trace.labels[r] = "own " + std::to_string(r);
  }
  const auto set = samples::fitted(trace, 3);
  const auto fitted = match_trace(trace, set);
  ASSERT_TRUE(fitted);
  const LabelSimilarity result = label_similarity(*fitted, 5);
  EXPECT_EQ(result.labels.count(), 5U);
  EXPECT_EQ(result.labels.folded, 56U);
  EXPECT_DOUBLE_EQ(result.main_label_share, 3.0 / 60);
}

}  // namespace
}  // namespace eldr::calibrator
