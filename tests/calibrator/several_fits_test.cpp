// SPDX-License-Identifier: Apache-2.0
// Fits of several numbers of clusters in one run, and clusters that keep their numbers.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "calibrator/fit/fit.h"
#include "calibrator/fit/renumber.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

const auto kGoOn = [](std::size_t, std::size_t) { return true; };

FitResult fit(const signature::Trace& trace, const FitOptions& options) {
  return fit_centroids(trace, options, *make_cpu_backend(2), RealClock(), kGoOn).value();
}

std::vector<FitResult> fits(const signature::Trace& trace, const FitOptions& options,
                            const std::vector<std::uint32_t>& clusters) {
  std::vector<FitResult> results;
  const Status done = fit_each(trace, options, clusters, *make_cpu_backend(2), RealClock(), kGoOn,
                               [&](FitResult result) -> Status {
                                 results.push_back(std::move(result));
                                 return {};
                               });
  EXPECT_TRUE(done) << done.error().message;
  return results;
}

TEST(SeveralFits, AreThoseOfOneRunEach) {
  const auto trace = samples::trace(1, {.requests = 50});
  const std::vector<std::uint32_t> clusters = {1, 2, 7, 50};
  FitOptions options{.ep_ranks = 2, .seed = 3};
  const auto all = fits(trace, options, clusters);
  ASSERT_EQ(all.size(), clusters.size());
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    options.clusters = clusters[i];
    const FitResult one = fit(trace, options);
    EXPECT_EQ(signature::serialize_centroids(all[i].set).value(),
              signature::serialize_centroids(one.set).value())
        << clusters[i];
    EXPECT_EQ(all[i].warnings, one.warnings);
  }
}

TEST(SeveralFits, MoreClustersAreNoFurtherFromTheirRequests) {
  const auto trace = samples::trace(2, {.requests = 60});
  const auto all = fits(trace, {.restarts = 20}, {1, 2, 4, 60});
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(all[i].objective, all[i - 1].objective);
  }
  EXPECT_NEAR(all.back().objective, 0, 1e-5);  // each request is its own centroid
}

TEST(SeveralFits, EndWhenTheTakerFails) {
  const auto trace = samples::trace(3, {.requests = 30});
  int taken = 0;
  const std::vector<std::uint32_t> clusters = {2, 3, 4};
  const Status done = fit_each(trace, {}, clusters, *make_cpu_backend(1), RealClock(), kGoOn,
                               [&](const FitResult&) -> Status {
                                 return ++taken == 2 ? failure(Code::kUnavailable, "disk full") : Status();
                               });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "disk full");
  EXPECT_EQ(taken, 2);
}

TEST(SeveralFits, RefuseANumberThatCannotBeBeforeAnyWork) {
  const auto trace = samples::trace(4, {.requests = 10});
  const std::vector<std::uint32_t> clusters = {2, 11};
  bool worked = false;
  const Status done = fit_each(
      trace, {}, clusters, *make_cpu_backend(1), RealClock(),
      [&](std::size_t, std::size_t) { return worked = true; },
      [&](const FitResult&) -> Status {
        worked = true;
        return {};
      });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kInvalid);
  EXPECT_FALSE(worked);
}

/// Share of the requests that are in the cluster of the same number in both.
double kept_share(const signature::CentroidSet& before, const signature::CentroidSet& now) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < before.assignment.size(); ++i) {
    same += before.assignment[i] == now.assignment[i] ? 1 : 0;
  }
  return static_cast<double>(same) / static_cast<double>(before.assignment.size());
}

TEST(MatchedFit, KeepsTheNumbersOfAnOlderOne) {
  const auto trace = samples::trace(5, {.requests = 90, .domains = 6, .prompt_tokens = 200});
  FitOptions options{.clusters = 6, .seed = 1};
  const FitResult before = fit(trace, options);
  options.seed = 2;  // other starts: the same groups under other numbers
  const FitResult unmatched = fit(trace, options);
  ASSERT_LT(kept_share(before.set, unmatched.set), 0.7);
  options.match = &before.set;
  const FitResult matched = fit(trace, options);
  EXPECT_GT(kept_share(before.set, matched.set), 0.9);
  EXPECT_EQ(matched.objective, unmatched.objective);
  for (Eigen::Index k = 0; k < 6; ++k) {
    Eigen::Index nearest = -1;
    (before.set.centroids * matched.set.centroids.row(k).transpose()).maxCoeff(&nearest);
    EXPECT_EQ(nearest, k);
  }
  for (std::uint32_t k = 0; k < 6; ++k) {
    EXPECT_EQ(matched.cluster_sizes[k],
              std::count(matched.set.assignment.begin(), matched.set.assignment.end(), k));
  }
}

TEST(MatchedFit, HandsOutEachNumberOnceWhenClustersComeAndGo) {
  const auto trace = samples::trace(6, {.requests = 80, .domains = 4});
  const FitResult before = fit(trace, {.clusters = 5, .seed = 1});
  for (const std::uint32_t clusters : {1U, 3U, 5U, 8U}) {
    const FitResult now = fit(trace, {.clusters = clusters, .seed = 4, .match = &before.set});
    std::vector<std::uint32_t> numbers = matched_numbers(now.set, before.set);
    std::vector<std::uint32_t> own(clusters);
    std::iota(own.begin(), own.end(), 0U);
    EXPECT_EQ(numbers, own) << "a matched fit is matched already";
    EXPECT_EQ(*std::max_element(now.set.assignment.begin(), now.set.assignment.end()), clusters - 1);
  }
}

TEST(MatchedFit, RenumberMovesRowsAndRequestsTogether) {
  signature::CentroidSet set;
  set.centroids = signature::RowMatrixF::Identity(3, 3);
  set.assignment = {0, 1, 2, 0};
  renumber(set, {2, 0, 1});
  EXPECT_EQ(set.assignment, (std::vector<std::uint32_t>{2, 0, 1, 2}));
  signature::RowMatrixF expected(3, 3);
  expected << 0, 1, 0, 0, 0, 1, 1, 0, 0;
  EXPECT_EQ(set.centroids, expected);
}

}  // namespace
}  // namespace eldr::calibrator
