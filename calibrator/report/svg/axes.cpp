// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/svg/axes.h"

namespace eldr::calibrator::svg {
namespace {

constexpr double kGap = 7;             ///< between axis and tick label
constexpr double kBaseline = 4.5;      ///< from a label's middle to its baseline
constexpr double kTickLabelDrop = 17;  ///< from the bottom axis to its labels' baseline
constexpr double kQuantityDrop = 37;   ///< and to the quantity's

void bottom_frame(Drawing& drawing, const Box& plot, std::string_view quantity) {
  drawing.line({plot.left, plot.bottom}, {plot.right, plot.bottom}, "axis");
  drawing.text({(plot.left + plot.right) / 2, plot.bottom + kQuantityDrop}, Anchor::kMiddle, "quantity",
               quantity);
}

}  // namespace

void left_axis(Drawing& drawing, const Box& plot, const LinearScale& scale, const Ticks& ticks,
               std::string_view quantity) {
  for (const double value : ticks.values) {
    const double y = scale(value);
    drawing.line({plot.left, y}, {plot.right, y}, "rule");
    drawing.text({plot.left - kGap, y + kBaseline}, Anchor::kEnd, "tick", ticks.label(value));
  }
  drawing.text({2, 13}, Anchor::kStart, "quantity", quantity);
}

void bottom_axis(Drawing& drawing, const Box& plot, const LinearScale& scale, const Ticks& ticks,
                 std::string_view quantity) {
  bottom_frame(drawing, plot, quantity);
  for (const double value : ticks.values) {
    const double x = scale(value);
    drawing.line({x, plot.bottom}, {x, plot.bottom + 4}, "axis");
    drawing.text({x, plot.bottom + kTickLabelDrop}, Anchor::kMiddle, "tick", ticks.label(value));
  }
}

void bottom_places(Drawing& drawing, const Box& plot, const std::vector<Place>& places,
                   std::string_view quantity) {
  bottom_frame(drawing, plot, quantity);
  for (const Place& place : places) {
    drawing.text({place.x, plot.bottom + kTickLabelDrop}, Anchor::kMiddle, "tick", place.label);
  }
}

}  // namespace eldr::calibrator::svg
