// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/band_widths.h"

#include <gtest/gtest.h>

#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;

TEST(BandWidths, CountsCentroidsWithinTauOfTheBest) {
  RowMatrixF similarities(4, 3);
  similarities << 0.9F, 0.85F, 0.5F,  // two within 0.1
      0.3F, 0.9F, 0.2F,               // one
      0.5F, 0.45F, 0.41F,             // three
      0.1F, 0.7F, 0.65F;              // two
  const BandWidths bands = band_widths(similarities, 0.1);
  EXPECT_EQ(bands.requests, (std::vector<std::uint32_t>{1, 2, 1}));
  EXPECT_DOUBLE_EQ(bands.chosen.tau, 0.1);
  EXPECT_DOUBLE_EQ(bands.chosen.mean, 2);
  EXPECT_DOUBLE_EQ(bands.chosen.low, 1);
}

TEST(BandWidths, TheCurveRisesFromOneToThePool) {
  Random random(3, 0);
  const RowMatrixF similarities =
      RowMatrixF::NullaryExpr(200, 8, [&] { return static_cast<float>(random.uniform()); });
  const BandWidths bands = band_widths(similarities, 0.1);
  EXPECT_EQ(bands.curve.front().tau, 0);
  EXPECT_DOUBLE_EQ(bands.curve.front().mean, 1);
  for (std::size_t i = 1; i < bands.curve.size(); ++i) {
    EXPECT_GT(bands.curve[i].tau, bands.curve[i - 1].tau);
    EXPECT_GE(bands.curve[i].mean, bands.curve[i - 1].mean);
    // Plainly, without the router's code.
    double sum = 0;
    for (Eigen::Index r = 0; r < similarities.rows(); ++r) {
      const float least = similarities.row(r).maxCoeff() - static_cast<float>(bands.curve[i].tau);
      sum += static_cast<double>((similarities.row(r).array() >= least).count());
    }
    EXPECT_DOUBLE_EQ(bands.curve[i].mean, sum / 200);
  }
  EXPECT_GE(bands.curve.back().mean, 0.98 * 8);
  EXPECT_GT(bands.curve.back().tau, bands.chosen.tau);
}

TEST(BandWidths, AWideTauAndNoRequests) {
  const RowMatrixF far = RowMatrixF::Identity(3, 3);
  EXPECT_EQ(band_widths(far, 2).requests, (std::vector<std::uint32_t>{0, 0, 3}));
  EXPECT_GE(band_widths(far, 2).curve.back().tau, 2);
  const BandWidths none = band_widths(RowMatrixF(0, 3), 0.1);
  EXPECT_EQ(none.chosen.mean, 0);
  EXPECT_EQ(none.requests, (std::vector<std::uint32_t>{0, 0, 0}));
}

}  // namespace
}  // namespace eldr::calibrator
