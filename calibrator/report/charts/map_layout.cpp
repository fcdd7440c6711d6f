// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/charts/map_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace eldr::calibrator::charts {
namespace {

constexpr int kMostSteps = 500;

/// Where two discs have one centre, they part in a direction that depends on their numbers alone.
svg::Point direction(const svg::Point& from, const svg::Point& to, std::size_t number) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (length < 1e-9) {
    return {std::cos(static_cast<double>(number)), std::sin(static_cast<double>(number))};
  }
  return {(to.x - from.x) / length, (to.y - from.y) / length};
}

}  // namespace

std::vector<svg::Point> spread_apart(std::vector<svg::Point> centres, double radius, const svg::Box& box) {
  for (int step = 0; step < kMostSteps; ++step) {
    bool moved = false;
    for (std::size_t i = 0; i < centres.size(); ++i) {
      for (std::size_t j = i + 1; j < centres.size(); ++j) {
        const double overlap =
            2 * radius - std::hypot(centres[j].x - centres[i].x, centres[j].y - centres[i].y);
        if (overlap <= 1e-3) {
          continue;
        }
        const svg::Point away = direction(centres[i], centres[j], i + j);
        centres[i] = {centres[i].x - away.x * overlap / 2, centres[i].y - away.y * overlap / 2};
        centres[j] = {centres[j].x + away.x * overlap / 2, centres[j].y + away.y * overlap / 2};
        moved = true;
      }
    }
    for (svg::Point& centre : centres) {
      centre.x = std::clamp(centre.x, box.left + radius, box.right - radius);
      centre.y = std::clamp(centre.y, box.top + radius, box.bottom - radius);
    }
    if (!moved) {
      break;
    }
  }
  return centres;
}

std::vector<std::size_t> differing_colours(const std::vector<svg::Point>& points, std::size_t colours) {
  std::vector<std::size_t> chosen;
  for (const svg::Point& point : points) {
    std::vector<double> nearest(colours, std::numeric_limits<double>::infinity());
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      double& distance = nearest[chosen[j]];
      distance = std::min(distance, std::hypot(point.x - points[j].x, point.y - points[j].y));
    }
    chosen.push_back(
        static_cast<std::size_t>(std::max_element(nearest.begin(), nearest.end()) - nearest.begin()));
  }
  return chosen;
}

}  // namespace eldr::calibrator::charts
