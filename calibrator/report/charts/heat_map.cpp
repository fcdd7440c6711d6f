// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/charts/heat_map.h"

#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/svg/axes.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

constexpr std::size_t kColumnsOfANarrowMap = 16;
constexpr std::size_t kSteps = 9;      ///< colours: classes h0 … h8
constexpr std::size_t kFirstDark = 5;  ///< from here on text in a cell is light
constexpr double kWideWidth = 1000;
constexpr double kTop = 30;  ///< for the colour scale
constexpr double kRowHeight = 24;
constexpr double kFontSize = 13.5;  ///< of names, on the narrowest screen
constexpr double kCellFontSize = 11;
constexpr std::size_t kLongestName = 20;     ///< characters
constexpr std::size_t kMostTooltips = 2000;  ///< cells: beyond, they would be most of the page

struct Layout {
  double width = 0;
  svg::Box cells;
  double column = 0;

  svg::Box cell(std::size_t row, std::size_t col) const {
    const double left = cells.left + column * static_cast<double>(col);
    const double top = cells.top + kRowHeight * static_cast<double>(row);
    const double gap = column > 8 ? 1 : 0;
    return {left, top, left + column - gap, top + kRowHeight - 1};
  }
};

Layout layout_of(const HeatMap& map) {
  double names = 20;
  for (const std::string& row : map.rows) {
    names = std::max(names, kFontSize * svg::text_width(svg::shortened(row, kLongestName)));
  }
  const double width = heat_map_is_wide(map.columns.size()) ? kWideWidth : svg::kChartWidth;
  Layout layout{
      width, {names + 12, kTop, width - 2, kTop + kRowHeight * static_cast<double>(map.rows.size())}, 0};
  layout.column = std::min(layout.cells.width() / static_cast<double>(map.columns.size()), 90.0);
  layout.cells.right = layout.cells.left + layout.column * static_cast<double>(map.columns.size());
  return layout;
}

std::size_t step_of(const HeatMap& map, double value) {
  const double share = map.high > map.low ? (value - map.low) / (map.high - map.low) : 1;
  return static_cast<std::size_t>(std::clamp(std::floor(share * kSteps), 0.0, kSteps - 1.0));
}

void draw_colours(svg::Drawing& drawing, const HeatMap& map, const Layout& layout) {
  constexpr double kSwatch = 13;
  drawing.text({layout.cells.left, 14}, svg::Anchor::kStart, "tick", map.low_text);
  const double begin = layout.cells.left + kFontSize * svg::text_width(map.low_text) + 6;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const double left = begin + kSwatch * static_cast<double>(step);
    drawing.rectangle({left, 4, left + kSwatch, 16}, fmt::format("scale h{}", step));
  }
  drawing.text({begin + kSwatch * kSteps + 6, 14}, svg::Anchor::kStart, "tick", map.high_text);
}

bool fits(std::string_view text, double width) { return kCellFontSize * svg::text_width(text) + 3 <= width; }

void draw_cells(svg::Drawing& drawing, const HeatMap& map, const Layout& layout) {
  const bool tooltips = map.rows.size() * map.columns.size() <= kMostTooltips;
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(column));
      const svg::Box box = layout.cell(row, column);
      const std::size_t step = std::isnan(value) ? 0 : step_of(map, value);
      drawing.rectangle(box, std::isnan(value) ? std::string("cell none") : fmt::format("cell h{}", step),
                        tooltips ? map.tooltip(row, column) : "", layout.column > 8 ? 2 : 0);
      const std::string text = map.cell_text(row, column);
      if (fits(text, layout.column)) {
        drawing.text({(box.left + box.right) / 2, (box.top + box.bottom) / 2 + 4}, svg::Anchor::kMiddle,
                     value == 0           ? "in-cell zero"
                     : step >= kFirstDark ? "in-cell light"
                                          : "in-cell",
                     text);
      }
    }
  }
}

void draw_names(svg::Drawing& drawing, const HeatMap& map, const Layout& layout) {
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const std::string name = svg::shortened(map.rows[row], kLongestName);
    drawing.text({layout.cells.left - 7, layout.cell(row, 0).top + kRowHeight / 2 + 4}, svg::Anchor::kEnd,
                 "row-name", name, name == map.rows[row] ? "" : map.rows[row]);
  }
  const bool named = std::all_of(map.columns.begin(), map.columns.end(),
                                 [&](const std::string& name) { return fits(name, layout.column); });
  for (std::size_t column = 0; named && column < map.columns.size(); ++column) {
    const svg::Box box = layout.cell(0, column);
    drawing.text({(box.left + box.right) / 2, layout.cells.bottom + 15}, svg::Anchor::kMiddle, "column-name",
                 map.columns[column]);
  }
  drawing.text({(layout.cells.left + layout.cells.right) / 2, layout.cells.bottom + (named ? 34 : 18)},
               svg::Anchor::kMiddle, "quantity", map.quantity);
}

}  // namespace

bool heat_map_is_wide(std::size_t columns) { return columns > kColumnsOfANarrowMap; }

std::string draw_heat_map(const HeatMap& map) {
  const Layout layout = layout_of(map);
  svg::Drawing drawing(map.id, layout.width, layout.cells.bottom + 42, map.title, map.description);
  draw_colours(drawing, map, layout);
  draw_cells(drawing, map, layout);
  draw_names(drawing, map, layout);
  return drawing.finish();
}

}  // namespace eldr::calibrator::charts
