// SPDX-License-Identifier: Apache-2.0
// The page as text: what is on it, what is not, how large it is.
#include "calibrator/report/page.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "calibrator/report/views.h"
#include "tests/calibrator/report/fits.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

const std::vector<ReportSource> kSources = {{"trace", "t.safetensors", std::string(64, 'a')}};

Analysis analysis_of(const signature::Trace& trace, std::uint32_t clusters) {
  return analyse(trace, samples::fitted(trace, clusters)).value();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

/// The picture of that name.
std::string svg_of(const std::string& page, const std::string& id) {
  const std::size_t begin = page.find("<svg id=\"" + id + "\"");
  return begin == std::string::npos ? "" : page.substr(begin, page.find("</svg>", begin) - begin);
}

/// Many requests, clusters and labels without a fit: centroids are made from an assignment by number.
struct Large {
  signature::Trace trace;
  signature::CentroidSet set;
};
Large large(std::size_t requests, std::uint32_t clusters, std::size_t labels) {
  Large made;
  signature::Trace& trace = made.trace;
  trace.model = "large";
  trace.layers = {0, 1};
  trace.experts = 512;
  trace.top_k = 1;
  trace.prompt_tokens.assign(requests, 4);
  trace.decode_tokens.assign(requests, 4);
  trace.prefill_counts.assign(requests * 1024, 0);
  trace.decode_counts.assign(requests * 1024, 0);
  for (std::size_t r = 0; r < requests; ++r) {
    const std::size_t cluster = r % clusters;
    trace.labels.push_back("label number " + std::to_string(r % labels) + " with a long name");
    for (std::size_t token = 0; token < 4; ++token) {
      for (std::size_t layer = 0; layer < 2; ++layer) {
        const std::size_t expert = token < 3 ? 2 * cluster : r / clusters * 7 % 512;
        ++trace.prefill_counts[r * 1024 + layer * 512 + expert];
        ++trace.decode_counts[r * 1024 + layer * 512 + expert];
      }
    }
  }
  signature::CentroidSet& set = made.set;
  set.model = "large";
  set.top_k = 1;
  set.spec.layers = {1};
  set.spec.experts = 512;
  set.spec.transform = signature::Transform::kCount;
  set.spec.idf = signature::RowMatrixF::Ones(1, 512);
  set.centroids = signature::RowMatrixF::Zero(clusters, 512);
  for (std::size_t r = 0; r < requests; ++r) {
    set.assignment.push_back(static_cast<std::uint32_t>(r % clusters));
    Eigen::RowVectorXf signature(512);
    for (Eigen::Index e = 0; e < 512; ++e) {
      signature[e] = static_cast<float>(trace.prefill(r)[static_cast<std::size_t>(512 + e)]);
    }
    set.centroids.row(static_cast<Eigen::Index>(r % clusters)) += signature.normalized();
  }
  set.centroids.rowwise().normalize();
  return made;
}

TEST(ReportPage, EveryChartHasItsMarks) {
  const std::string page = report_page(analysis_of(samples::trace(1, {.requests = 90}), 3), kSources);
  EXPECT_EQ(count(svg_of(page, "chart-rho"), "class=\"dot "), 5U);
  EXPECT_EQ(count(svg_of(page, "chart-rho"), "class=\"chosen\""), 1U);
  EXPECT_EQ(count(svg_of(page, "chart-rho"), "class=\"held-out\""), 1U);
  EXPECT_EQ(count(svg_of(page, "chart-rho"), "class=\"all-layers\""), 1U);
  EXPECT_EQ(count(svg_of(page, "chart-similarity"), "class=\"cell "), 9U);
  EXPECT_EQ(count(svg_of(page, "chart-label-counts"), "class=\"cell "), 9U);
  EXPECT_EQ(count(svg_of(page, "chart-label-map"), "<title>request "), 90U);
  EXPECT_EQ(count(svg_of(page, "chart-cluster-map"), "<title>request "), 90U);
  EXPECT_EQ(count(svg_of(page, "chart-cluster-map"), "class=\"badge "), 3U);
  EXPECT_EQ(count(svg_of(page, "chart-cluster-sizes"), "class=\"bar\""), 3U);
  EXPECT_EQ(count(svg_of(page, "chart-cluster-sizes"), "class=\"capacity\""), 1U);
  EXPECT_EQ(count(svg_of(page, "chart-experts"), "class=\"dot "), 10U);  // 1 to 16, two kinds
  EXPECT_EQ(count(svg_of(page, "chart-band"), "class=\"bar\""), 3U);
  EXPECT_EQ(count(svg_of(page, "chart-tau"), "class=\"chosen\""), 1U);
  EXPECT_EQ(count(page, "<svg "), 9U);
  EXPECT_EQ(count(page, "role=\"img\""), 9U);
  EXPECT_EQ(count(page, "<table>"), 10U);
  EXPECT_NE(page.find(std::string(64, 'a')), std::string::npos);
}

TEST(ReportPage, NamesAreText) {
  auto trace = samples::trace(2, {.requests = 60});
  trace.model = "m</title><script>alert(0)</script>";
  for (std::string& label : trace.labels) {
    label = label == "d0" ? "</svg><script>alert(1)</script>" : label == "d1" ? "\" onload=\"alert(2)" : "";
  }
  const std::string page = report_page(analysis_of(trace, 3), {{"trace", "<img src=x>", "<b>"}});
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("\" onload"), std::string::npos);
  EXPECT_NE(page.find("&lt;/svg&gt;&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_NE(page.find("(no label)"), std::string::npos);
}

TEST(ReportPage, NeedsNothingElse) {
  const std::string page = report_page(analysis_of(samples::trace(3, {.requests = 60}), 3), kSources);
  for (const char* foreign : {"http:", "https:", "//", "@import", "url(", " src=", "<script", "<iframe"}) {
    EXPECT_EQ(page.find(foreign), std::string::npos) << foreign;
  }
}

TEST(ReportPage, SameInputsSameBytes) {
  const auto trace = samples::trace(4, {.requests = 60});
  EXPECT_EQ(report_page(analysis_of(trace, 3), kSources), report_page(analysis_of(trace, 3), kSources));
}

TEST(ReportPage, UnusualInputs) {
  auto bare = samples::trace(5, {.requests = 60});
  bare.labels.clear();
  const std::string without_labels = report_page(analysis_of(bare, 3), kSources);
  EXPECT_EQ(svg_of(without_labels, "chart-label-map"), "");
  EXPECT_EQ(count(svg_of(without_labels, "chart-similarity"), "class=\"cell "), 3U);

  const std::string one = report_page(analysis_of(samples::trace(6, {.requests = 60}), 1), kSources);
  EXPECT_NE(one.find("There is one centroid"), std::string::npos);

  auto quiet = samples::trace(7, {.requests = 60});
  const std::size_t row = quiet.prefill_counts.size() / 60;
  std::fill_n(quiet.prefill_counts.begin(), 3 * row, 0U);
  const std::string directionless = report_page(analysis_of(quiet, 3), kSources);
  EXPECT_EQ(count(svg_of(directionless, "chart-cluster-map"), "<title>request "), 57U);
  EXPECT_NE(directionless.find("3 requests without a signature left out"), std::string::npos);
  EXPECT_NE(directionless.find("3 of 60 requests have a zero signature"), std::string::npos);
  for (const std::string& page : {without_labels, one, directionless}) {
    EXPECT_EQ(page.find("nan"), std::string::npos);
    EXPECT_EQ(page.find("inf\""), std::string::npos);
  }
}

TEST(ReportPage, AFileWithoutTheCurveSaysSo) {
  const auto trace = samples::trace(8, {.requests = 60});
  auto set = samples::fitted(trace, 3);
  set.extra.clear();
  const std::string page = report_page(analyse(trace, set).value(), kSources);
  EXPECT_EQ(svg_of(page, "chart-rho"), "");
  EXPECT_NE(page.find("does not hold the curve"), std::string::npos);
}

TEST(ReportPage, StaysSmallAndSaysWhatIsLeftOut) {
  const Large made = large(4000, 256, 100);
  const auto analysis = analyse(made.trace, made.set);
  ASSERT_TRUE(analysis) << analysis.error().message;
  const std::string page = report_page(*analysis, kSources);
  EXPECT_LT(page.size(), 2'000'000U);
  EXPECT_NE(page.find("1,500 of 4,000 requests are drawn"), std::string::npos);
  EXPECT_NE(page.find("77 other labels"), std::string::npos);
  EXPECT_EQ(count(svg_of(page, "chart-label-map"), "<title>request "), 1500U);
  EXPECT_EQ(count(svg_of(page, "chart-similarity"), "class=\"cell "), 24U * 256U);
}

TEST(ReportViews, SayTheSameAsThePage) {
  const Analysis analysis = analysis_of(samples::trace(9, {.requests = 60}), 3);
  const nlohmann::json out = to_json(analysis);
  EXPECT_EQ(out["requests"], 60);
  EXPECT_EQ(out["selection"]["layerRhos"].size(), 5U);
  EXPECT_EQ(out["map"]["points"].size(), 60U);
  EXPECT_EQ(out["byLabel"]["counts"].size(), 3U);
  EXPECT_EQ(out["band"]["requestsByWidth"].size(), 3U);
  const BatchExperts& largest = analysis.experts_by_batch.back();
  EXPECT_NEAR(out["distinctExperts"].back()["saving"], largest.saving, 1e-6);
  const std::string text = text_of(analysis);
  EXPECT_NE(text.find("d2: 20 requests"), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(largest.batch)), std::string::npos);
}

TEST(ReportViews, ATerminalIsNotObeyed) {
  auto trace = samples::trace(10, {.requests = 60});
  for (std::string& label : trace.labels) {
    label = "\x1b]0;owned\x07" + label;
  }
  EXPECT_EQ(text_of(analysis_of(trace, 3)).find('\x1b'), std::string::npos);
}

/// The recorded trace of a real model: the paper's rule keeps two layers, and locality saves.
TEST(ReportOnRealData, DeepSeekV2Lite) {
  const auto folder = samples::real_data();
  if (!folder) {
    GTEST_SKIP() << "ELDR_REAL_DATA is not set";
  }
  const auto trace = signature::load_trace(*folder + "/esft-dsv2lite/esft.safetensors");
  ASSERT_TRUE(trace) << trace.error().message;
  const Analysis analysis = analysis_of(*trace, 4);
  ASSERT_TRUE(analysis.selection);
  EXPECT_EQ(analysis.selection->rhos.size(), 26U);
  EXPECT_NEAR(analysis.selection->rhos[1], 0.4989, 5e-5);
  EXPECT_NEAR(analysis.selection->rhos[25], 0.3319, 5e-5);
  ASSERT_GE(analysis.experts_by_batch.size(), 4U);
  EXPECT_NEAR(analysis.experts_by_batch[0].mixed.mean, 6, 1e-4);
  EXPECT_GT(analysis.experts_by_batch[3].saving, 4 * analysis.experts_by_batch[3].saving_error);
}

}  // namespace
}  // namespace eldr::calibrator
