// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "calibrator/fit/random.h"
#include "calibrator/report/charts/map_layout.h"

namespace eldr::calibrator::charts {
namespace {

constexpr svg::Box kBox{0, 0, 460, 360};
constexpr double kRadius = 9;

double distance(const svg::Point& a, const svg::Point& b) { return std::hypot(a.x - b.x, a.y - b.y); }

void expect_apart(const std::vector<svg::Point>& centres) {
  for (std::size_t i = 0; i < centres.size(); ++i) {
    EXPECT_GE(centres[i].x, kBox.left + kRadius - 1e-9);
    EXPECT_LE(centres[i].y, kBox.bottom - kRadius + 1e-9);
    for (std::size_t j = i + 1; j < centres.size(); ++j) {
      EXPECT_GE(distance(centres[i], centres[j]), 2 * kRadius - 0.1) << i << " and " << j;
    }
  }
}

TEST(MapLayout, DiscsDoNotOverlap) {
  Random random(1, 0);
  std::vector<svg::Point> crowded;
  for (int i = 0; i < 32; ++i) {
    crowded.push_back({200 + 40 * random.uniform(), 150 + 40 * random.uniform()});
  }
  expect_apart(spread_apart(crowded, kRadius, kBox));
  expect_apart(
      spread_apart(std::vector<svg::Point>(12, {0, 0}), kRadius, kBox));  // in a corner, all in one place
}

TEST(MapLayout, DiscsWithRoomStay) {
  const std::vector<svg::Point> apart = {{50, 50}, {100, 50}, {50, 100}};
  const std::vector<svg::Point> after = spread_apart(apart, kRadius, kBox);
  for (std::size_t i = 0; i < apart.size(); ++i) {
    EXPECT_LT(distance(apart[i], after[i]), 1e-9);
  }
}

TEST(MapLayout, NearPointsDifferInColour) {
  const std::vector<svg::Point> few = {{0, 0}, {1, 0}, {2, 0}};
  EXPECT_EQ(differing_colours(few, 8), (std::vector<std::size_t>{0, 1, 2}));
  std::vector<svg::Point> line;
  for (int i = 0; i < 24; ++i) {
    line.push_back({10.0 * i, 0});
  }
  const std::vector<std::size_t> colours = differing_colours(line, 8);
  for (std::size_t i = 1; i < line.size(); ++i) {
    EXPECT_NE(colours[i], colours[i - 1]);
  }
}

}  // namespace
}  // namespace eldr::calibrator::charts
