// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/svg/axes.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

/// Bars that are so many need no gaps, and their numbers come from a scale.
constexpr std::uint32_t kNamedBars = 20;

std::string draw(const Analysis& analysis, const std::string& lead) {
  svg::Drawing drawing("chart-cluster-sizes", svg::kChartWidth, svg::kChartHeight, "Cluster sizes", lead);
  const svg::Box plot = svg::kPlot;
  const ClusterLoad& load = analysis.load;
  const std::uint32_t clusters = analysis.clusters();
  const std::uint32_t most =
      std::max({load.capacity, *std::max_element(load.assigned.begin(), load.assigned.end()),
                *std::max_element(load.nearest.begin(), load.nearest.end())});
  const svg::Extent extent = svg::rounded_out(0, most, 5);
  const svg::LinearScale y{0, extent.high, plot.bottom, plot.top};
  const svg::LinearScale middle{-0.5, clusters - 0.5, plot.left, plot.right};
  const double half = 0.5 * (plot.right - plot.left) / clusters * (clusters > 60 ? 0.92 : 0.7);

  svg::left_axis(drawing, plot, y, svg::whole_ticks(0, extent.high, 5), "requests");
  drawing.open_group("bars");
  for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
    drawing.rectangle(
        {middle(cluster) - half, y(load.assigned[cluster]), middle(cluster) + half, plot.bottom}, "bar",
        fmt::format("cluster {}: {} assigned, {} nearest", cluster,
                    counted(load.assigned[cluster], "request"), load.nearest[cluster]));
  }
  drawing.close_group();
  drawing.open_group("marks");
  for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
    const double at = y(load.nearest[cluster]);
    drawing.line({middle(cluster) - half * 1.15, at}, {middle(cluster) + half * 1.15, at}, "nearest");
  }
  drawing.close_group();
  drawing.line({plot.left, y(load.capacity)}, {plot.right, y(load.capacity)}, "capacity");
  if (clusters <= kNamedBars) {
    std::vector<svg::Place> places;
    for (std::uint32_t cluster = 0; cluster < clusters; ++cluster) {
      places.push_back({middle(cluster), std::to_string(cluster)});
    }
    svg::bottom_places(drawing, plot, places, "cluster");
  } else {
    svg::bottom_axis(drawing, plot, middle, svg::whole_ticks(0, clusters - 1, 8), "cluster");
  }
  return drawing.finish();
}

}  // namespace

html::Figure cluster_sizes_figure(const Analysis& analysis) {
  html::Figure figure{.id = "cluster-sizes", .heading = "Cluster sizes"};
  const ClusterLoad& load = analysis.load;
  figure.lead = fmt::format(
      "The fit gives no cluster more than {}. Online nothing balances: one centroid is nearest to {} of the "
      "requests, "
      "an even share is {}.",
      counted(load.capacity, "request"), svg::percent(analysis.nearest_share),
      svg::percent(1.0 / analysis.clusters()));
  figure.keys = {{"area bar", "assigned by the fit"},
                 {"line nearest", "nearest to this centroid"},
                 {"line capacity", "capacity " + svg::grouped(load.capacity)}};
  figure.svgs = {draw(analysis, figure.lead)};
  figure.numbers = {"Requests by cluster", {"Cluster", "Assigned", "Nearest"}, {}};
  for (std::uint32_t cluster = 0; cluster < analysis.clusters(); ++cluster) {
    figure.numbers.rows.push_back(
        {std::to_string(cluster), svg::grouped(load.assigned[cluster]), svg::grouped(load.nearest[cluster])});
  }
  return figure;
}

}  // namespace eldr::calibrator::charts
