// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/svg/axes.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

using svg::fixed;

struct Levels {
  double lowest = 0;
  double highest = 0;
};

Levels levels_of(const SelectionRecord& selection, const std::optional<double>& held_out) {
  std::vector<double> all = selection.rhos;
  if (held_out) {
    all.push_back(*held_out);
  }
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, *high};
}

std::string layer_list(const std::vector<std::int32_t>& layers) {
  constexpr std::size_t kMost = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(layers.size(), kMost); ++i) {
    list += (i == 0 ? "" : ", ") + std::to_string(layers[i]);
  }
  return layers.size() > kMost ? list + " …" : list;
}

std::string draw(const Analysis& analysis, const SelectionRecord& selection, const std::string& lead) {
  svg::Drawing drawing("chart-rho", svg::kChartWidth, svg::kChartHeight, "Rho over the layers", lead);
  const svg::Box plot = svg::kPlot;
  const auto layers = static_cast<double>(selection.rhos.size());
  const Levels levels = levels_of(selection, analysis.held_out_rho);
  const svg::Extent extent = svg::rounded_out(levels.lowest, levels.highest, 5);
  const svg::LinearScale x{1, layers, plot.left + 8, plot.right - 8};
  const svg::LinearScale y{extent.low, extent.high, plot.bottom, plot.top};
  const auto kept = static_cast<double>(analysis.layers_kept.size());

  drawing.rectangle({plot.left, plot.top, x(kept), plot.bottom}, "kept");
  svg::left_axis(drawing, plot, y, svg::round_ticks(extent.low, extent.high, 5), "rho");
  svg::bottom_axis(drawing, plot, x, svg::whole_ticks(1, layers, 8), "layers, in the order chosen");
  drawing.line({x(kept), plot.top}, {x(kept), plot.bottom}, "chosen");
  const double all_layers = y(analysis.rho_all_layers);
  if (all_layers >= plot.top && all_layers <= plot.bottom) {
    drawing.line({plot.left, all_layers}, {plot.right, all_layers}, "all-layers");
  }
  if (analysis.held_out_rho) {
    drawing.line({plot.left, y(*analysis.held_out_rho)}, {plot.right, y(*analysis.held_out_rho)}, "held-out");
  }
  std::vector<svg::Point> points;
  for (std::size_t i = 0; i < selection.rhos.size(); ++i) {
    points.push_back({x(static_cast<double>(i + 1)), y(selection.rhos[i])});
  }
  drawing.polyline(points, "series s0");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool chosen = i + 1 == analysis.layers_kept.size();
    drawing.circle(points[i],
                   chosen        ? 5
                   : layers > 60 ? 1.8
                                 : 2.8,
                   chosen ? "dot s0 best" : "dot s0",
                   fmt::format("{}: layer {} added, rho {}", counted(i + 1, "layer"), selection.layers[i],
                               fixed(selection.rhos[i], 4)));
  }
  return drawing.finish();
}

}  // namespace

html::Figure rho_figure(const Analysis& analysis) {
  html::Figure figure{.id = "rho", .heading = "How many layers the signature needs"};
  const std::size_t kept = analysis.layers_kept.size();
  figure.lead = fmt::format("{} of {} kept ({}): rho {}, with all layers {}.", counted(kept, "layer"),
                            analysis.model_layers, layer_list(analysis.layers_kept), fixed(analysis.rho, 4),
                            fixed(analysis.rho_all_layers, 4));
  if (!analysis.selection) {
    figure.notes = {
        "The centroid file does not hold the curve over the layers: it was written without it. Fit again to "
        "see it."};
    return figure;
  }
  figure.keys = {{"line s0", "layers up to this one"}, {"area kept", "layers kept"}};
  figure.keys.push_back({"line all-layers", "all layers " + fixed(analysis.rho_all_layers, 4)});
  if (analysis.held_out_rho) {
    figure.keys.push_back({"line held-out", "on held-out requests " + fixed(*analysis.held_out_rho, 4)});
  }
  figure.svgs = {draw(analysis, *analysis.selection, figure.lead)};
  figure.notes = {
      "Rho is Spearman's rank correlation, over all pairs of requests, of how alike their prompts' "
      "signatures are and "
      "how alike their decoding uses experts. Each step adds the layer that raises it the most. The held-out "
      "value "
      "comes from layers chosen on one half of the requests and measured on the other."};
  if (!analysis.held_out_rho) {
    figure.notes.emplace_back("Rho on held-out requests was not measured.");
  }
  figure.numbers = {"Rho by number of layers", {"Layers", "Layer added", "Rho"}, {}};
  for (std::size_t i = 0; i < analysis.selection->rhos.size(); ++i) {
    figure.numbers.rows.push_back({std::to_string(i + 1), std::to_string(analysis.selection->layers[i]),
                                   fixed(analysis.selection->rhos[i], 4)});
  }
  return figure;
}

}  // namespace eldr::calibrator::charts
