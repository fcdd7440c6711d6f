// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/fitted_trace.h"

#include <gtest/gtest.h>

#include "calibrator/report/analysis/cluster_load.h"
#include "tests/calibrator/report/fits.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

signature::ExpertCounts counts_of(const signature::Trace& trace, std::size_t request) {
  signature::ExpertCounts counts;
  counts.layers = trace.layers;
  counts.experts = trace.experts;
  counts.counts.assign(trace.prefill(request).begin(), trace.prefill(request).end());
  return counts;
}

TEST(FittedTrace, SeesRequestsAsTheRouterDoes) {
  const auto trace = samples::trace(1, {.requests = 60});
  const auto set = samples::fitted(trace, 3);
  const auto fitted = match_trace(trace, set);
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_EQ(fitted->directed.size(), 60U);
  std::vector<std::uint32_t> nearest(3, 0);
  for (std::size_t r = 0; r < 60; ++r) {
    const auto signature = signature_of(set.spec, counts_of(trace, r));
    ASSERT_TRUE(signature && *signature);
    const Eigen::VectorXf expected = signature::similarities(set.centroids, **signature);
    Eigen::Index best = 0;
    expected.maxCoeff(&best);
    ++nearest[static_cast<std::size_t>(best)];
    EXPECT_LT(
        (fitted->similarities.row(static_cast<Eigen::Index>(r)).transpose() - expected).cwiseAbs().maxCoeff(),
        1e-5F);
  }
  const ClusterLoad load = cluster_load(*fitted);
  EXPECT_EQ(load.nearest, nearest);
  EXPECT_EQ(load.assigned, (std::vector<std::uint32_t>{20, 20, 20}));
  EXPECT_EQ(load.capacity, 20U);
}

TEST(FittedTrace, RequestsWithoutADirectionAreToldApart) {
  auto trace = samples::trace(2, {.requests = 60});
  const std::size_t row = trace.prefill_counts.size() / 60;
  std::fill_n(trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>(7 * row), row, 0U);
  const auto set = samples::fitted(trace, 3);
  const auto fitted = match_trace(trace, set);
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_EQ(fitted->directed.size(), 59U);
  EXPECT_EQ(fitted->directed[7], 8U);
  EXPECT_EQ(fitted->similarities.row(7).cwiseAbs().maxCoeff(), 0);
}

TEST(FittedTrace, RefusesCentroidsOfAnotherTrace) {
  const auto trace = samples::trace(3, {.requests = 60});
  const auto set = samples::fitted(trace, 3);
  const auto refused = [&](const signature::Trace& other, const std::string& reason) {
    const auto fitted = match_trace(other, set);
    ASSERT_FALSE(fitted) << reason;
    EXPECT_EQ(fitted.error().code, Code::kInvalid);
    EXPECT_NE(fitted.error().message.find(reason), std::string::npos) << fitted.error().message;
  };
  auto model = trace;
  model.model = "another";
  refused(model, "model is \"another\" in the trace and \"test-moe\" in the centroids");
  refused(samples::trace(3, {.requests = 60, .experts = 32}), "experts a layer is 32 in the trace and 16");
  refused(samples::trace(3, {.requests = 60, .top_k = 3}), "top_k is 3");
  refused(samples::trace(3, {.requests = 59}), "the number of requests is 59 in the trace and 60");
  auto layers = trace;
  for (std::int32_t& layer : layers.layers) {
    layer += 50;
  }
  refused(layers, "is kept and not in the trace");
  refused(samples::trace(4, {.requests = 60}), "with the mean of its requests");
}

}  // namespace
}  // namespace eldr::calibrator
