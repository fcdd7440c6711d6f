// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/fit.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "lib/signature/centroids.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

using signature::Transform;

const FitProgress kGoOn = [](std::size_t, std::size_t) { return true; };

Result<FitResult> fit(const signature::Trace& trace, const FitOptions& options) {
  const auto backend = make_cpu_backend(options.threads);
  return fit_centroids(trace, options, *backend, RealClock(), kGoOn);
}

TEST(Fit, CentroidsAreNormalisedMeansOfTheirRequests) {
  const auto trace = samples::trace(1, {.requests = 60});
  const auto result = fit(trace, {.clusters = 3});
  ASSERT_TRUE(result) << result.error().message;
  const signature::CentroidSet& set = result->set;
  ASSERT_EQ(set.clusters(), 3U);
  ASSERT_EQ(set.assignment.size(), 60U);
  Eigen::MatrixXf means = Eigen::MatrixXf::Zero(3, set.centroids.cols());
  for (std::size_t r = 0; r < trace.requests(); ++r) {
    signature::ExpertCounts counts;
    counts.layers = trace.layers;
    counts.experts = trace.experts;
    counts.counts.assign(trace.prefill(r).begin(), trace.prefill(r).end());
    const auto signature = signature_of(set.spec, counts);  // as the router computes it
    ASSERT_TRUE(signature && *signature);
    means.row(set.assignment[r]) += (**signature).transpose();
  }
  means.rowwise().normalize();
  EXPECT_LT((means - set.centroids).cwiseAbs().maxCoeff(), 1e-5F);
}

TEST(Fit, ClustersFollowTheDomains) {
  const auto trace = samples::trace(2, {.requests = 90});
  const auto result = fit(trace, {.clusters = 3});
  ASSERT_TRUE(result);
  for (std::size_t r = 3; r < trace.requests(); ++r) {
    EXPECT_EQ(result->set.assignment[r], result->set.assignment[r % 3]) << r;
  }
  EXPECT_GT(*result->label_gap, 0.1);
  EXPECT_GT(result->set.spread, 0.05);
  ASSERT_TRUE(result->held_out_rho());
  EXPECT_GT(*result->held_out_rho(), 0.4);
  EXPECT_GT(result->set.best_similarity_quantiles.at("p50"), result->set.best_similarity_quantiles.at("p01"));
}

TEST(Fit, SameBytesOnAnyNumberOfThreads) {
  const auto trace = samples::trace(3, {.requests = 130, .layers = 6});
  FitOptions options{.clusters = 7, .ep_ranks = 4, .seed = 5, .transform = std::nullopt};
  const auto bytes = [&](unsigned threads) {
    options.threads = threads;
    return signature::serialize_centroids(fit(trace, options).value().set).value();
  };
  const auto one = bytes(1);
  EXPECT_EQ(bytes(2), one);
  EXPECT_EQ(bytes(7), one);
}

TEST(Fit, AutoTakesTheBestHeldOut) {
  const auto trace = samples::trace(4, {.requests = 80, .prompt_tokens = 200});
  const auto result = fit(trace, {.clusters = 4, .transform = std::nullopt});
  ASSERT_TRUE(result);
  ASSERT_EQ(result->held_out.size(), 4U);
  for (const TransformQuality& quality : result->held_out) {
    EXPECT_LE(quality.held_out_rho, *result->held_out_rho()) << name_of(quality.transform);
  }
}

TEST(Fit, PlacementCoversEveryClusterAndKeptLayer) {
  const auto trace = samples::trace(5, {.requests = 40, .experts = 12});
  const auto result = fit(trace, {.clusters = 2, .ep_ranks = 3});
  ASSERT_TRUE(result);
  const std::size_t kept = result->set.spec.layers.size();
  ASSERT_EQ(result->set.placement.size(), 2 * kept * 12);
  for (std::size_t plan = 0; plan < 2 * kept; ++plan) {
    for (std::int16_t rank = 0; rank < 3; ++rank) {
      const auto start = result->set.placement.begin() + static_cast<std::ptrdiff_t>(plan * 12);
      EXPECT_EQ(std::count(start, start + 12, rank), 4);
    }
  }
}

TEST(Fit, RequestsWithoutDecodeTokensStayButDoNotCountInRho) {
  auto trace = samples::trace(6, {.requests = 50});
  const auto row = trace.layers.size() * trace.experts;
  for (std::size_t r = 40; r < 50; ++r) {
    trace.decode_tokens[r] = 0;
    std::fill_n(trace.decode_counts.begin() + static_cast<std::ptrdiff_t>(r * row), row, 0);
  }
  const auto result = fit(trace, {.clusters = 3});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->set.assignment.size(), 50U);
}

TEST(Fit, RefusesWhatCannotBe) {
  const auto trace = samples::trace(7, {.requests = 10});
  for (const auto& [options, part] :
       {std::pair<FitOptions, std::string>{{.clusters = 11}, "clusters: 11; must be from 1 to"},
        {{.clusters = 0}, "clusters: 0; must be"},
        {{.clusters = 2, .ep_ranks = 3}, "must divide the number of experts, 16"}}) {
    const auto result = fit(trace, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  }
  auto silent = trace;
  std::fill(silent.decode_tokens.begin(), silent.decode_tokens.end(), 0);
  EXPECT_NE(fit(silent, {.clusters = 2}).error().message.find("decode tokens"), std::string::npos);
}

TEST(Fit, StopsWhenAsked) {
  const auto trace = samples::trace(8, {.requests = 60});
  const auto backend = make_cpu_backend(1);
  for (const std::size_t steps :
       {1, 7, 13}) {  // in the held-out selections, in the selection, in the clustering
    const auto result = fit_centroids(trace, {.clusters = 3}, *backend, RealClock(),
                                      [&](std::size_t done, std::size_t) { return done < steps; });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kCancelled);
  }
}

TEST(Fit, WarnsOfWhatAPersonShouldKnow) {
  const auto has = [](const FitResult& result, const std::string& part) {
    return std::any_of(result.warnings.begin(), result.warnings.end(),
                       [&](const std::string& text) { return text.find(part) != std::string::npos; });
  };
  auto few = samples::trace(9, {.requests = 12, .decode_tokens = 4});
  const auto poor = fit(few, {.clusters = 4});
  ASSERT_TRUE(poor);
  EXPECT_TRUE(has(*poor, "are few"));
  EXPECT_TRUE(has(*poor, "decoded 4 tokens or fewer"));
  EXPECT_TRUE(has(*poor, "too few to measure held-out"));
  auto mislabelled = samples::trace(10, {.requests = 60});
  std::rotate(mislabelled.labels.begin(), mislabelled.labels.begin() + 20, mislabelled.labels.end());
  for (std::size_t i = 0; i < mislabelled.labels.size(); ++i) {
    mislabelled.labels[i] = i % 2 == 0 ? "a" : "b";
  }
  EXPECT_TRUE(has(*fit(mislabelled, {.clusters = 3}), "labels are not separated"));
  EXPECT_TRUE(has(*fit(few, {.clusters = 1}), "for 1 cluster are few"));
}

TEST(Fit, WarnsOfALimitThatGivesUpMuch) {
  const auto given_up = [](const FitResult& result) {
    return std::count_if(result.warnings.begin(), result.warnings.end(), [](const std::string& text) {
      return text.find("that max-layers allows") != std::string::npos;
    });
  };
  const auto trace =
      samples::trace(11, {.requests = 90, .layers = 8, .experts = 64, .domains = 9, .prompt_tokens = 6});
  const auto all = fit(trace, {.clusters = 3});
  const auto one = fit(trace, {.clusters = 3, .max_layers = 1});
  ASSERT_TRUE(all && one);
  ASSERT_GT(all->set.rho - one->set.rho, 0.05);
  EXPECT_EQ(given_up(*all), 0);
  EXPECT_EQ(given_up(*one), 1);
}

/// DeepSeek-V2-Lite, 213 requests of four tasks; the figures are those of an independent computation.
class RecordedTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = samples::real_data();
    if (!folder) {
      GTEST_SKIP() << "ELDR_REAL_DATA is not set: the recorded trace is not here";
    }
    auto loaded = signature::load_trace(*folder + "/esft-dsv2lite/esft.safetensors");
    ASSERT_TRUE(loaded) << loaded.error().message;
    trace_ = std::move(*loaded);
  }
  signature::Trace trace_;
};

TEST_F(RecordedTrace, GreedySelectionGivesTheKnownFigures) {
  const auto result = fit(trace_, {.clusters = 4, .threads = 2});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NEAR(result->set.rho_all_layers, 0.3319, 0.00005);
  EXPECT_NEAR(result->set.rho, 0.4989, 0.00005);
  EXPECT_EQ(result->set.spec.layers, (std::vector<std::int32_t>{23, 4}));
  EXPECT_EQ(result->layer_order.size(), 26U);
}

TEST_F(RecordedTrace, EveryTransformGivesTheFiguresOfNumpy) {
  struct Figures {
    Transform transform;
    double all;
    double best;
    std::vector<std::int32_t> layers;
  };
  for (const Figures& known : {Figures{Transform::kCount, 0.771630, 0.824681, {10, 17}},
                               Figures{Transform::kSqrtCount, 0.766278, 0.800352, {22, 10, 20}},
                               Figures{Transform::kBinary, 0.420055, 0.550596, {11, 24, 21}}}) {
    const auto result = fit(trace_, {.clusters = 4, .transform = known.transform, .held_out = false});
    ASSERT_TRUE(result);
    EXPECT_NEAR(result->set.rho_all_layers, known.all, 5e-6) << name_of(known.transform);
    EXPECT_NEAR(result->set.rho, known.best, 5e-6) << name_of(known.transform);
    EXPECT_EQ(result->set.spec.layers, known.layers) << name_of(known.transform);
  }
}

TEST_F(RecordedTrace, PlainCountsHoldOutBest) {
  const auto result = fit(trace_, {.clusters = 4, .transform = std::nullopt, .threads = 2});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->set.spec.transform, Transform::kCount);
  EXPECT_GT(*result->held_out_rho(), 0.75);
  EXPECT_LE(result->set.max_cluster_share(), 54.0 / 213.0 + 1e-9);
}

}  // namespace
}  // namespace eldr::calibrator
