// SPDX-License-Identifier: Apache-2.0
// Axes in one manner for all charts: light horizontal rules, values beside them, the quantity's name above
// the left axis and under the bottom one, both written level.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrator/report/svg/drawing.h"
#include "calibrator/report/svg/scale.h"

namespace eldr::calibrator::svg {

/// Size of every chart, in user units; on a wide page about one pixel each.
inline constexpr double kChartWidth = 480;
inline constexpr double kChartHeight = 290;
/// Where the data go: room is left for an axis at the left and one below.
inline constexpr Box kPlot{46, 30, 468, 246};

void left_axis(Drawing& drawing, const Box& plot, const LinearScale& scale, const Ticks& ticks,
               std::string_view quantity);
void bottom_axis(Drawing& drawing, const Box& plot, const LinearScale& scale, const Ticks& ticks,
                 std::string_view quantity);

/// Named places instead of a scale: the label of each at its x.
struct Place {
  double x = 0;
  std::string label;
};
void bottom_places(Drawing& drawing, const Box& plot, const std::vector<Place>& places,
                   std::string_view quantity);

}  // namespace eldr::calibrator::svg
