// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/svg/axes.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

using svg::fixed;
using svg::percent;

constexpr std::uint32_t kNamedBars = 20;

/// The whole pool where that is few, else as many as any request has.
std::uint32_t widest_shown(const std::vector<std::uint32_t>& requests) {
  std::size_t widest = requests.size();
  while (widest > kNamedBars && requests[widest - 1] == 0) {
    --widest;
  }
  return static_cast<std::uint32_t>(widest);
}

std::string tau_text(double tau) { return fmt::format("{:g}", tau); }

double share_of(const Analysis& analysis, std::uint32_t requests) {
  return static_cast<double>(requests) /
         static_cast<double>(std::max<std::size_t>(analysis.map.requests.size(), 1));
}

std::string draw_widths(const Analysis& analysis, const std::string& heading, const std::string& lead) {
  svg::Drawing drawing("chart-band", svg::kChartWidth, svg::kChartHeight, heading, lead);
  const svg::Box plot = svg::kPlot;
  const std::vector<std::uint32_t>& requests = analysis.band.requests;
  const std::uint32_t widest = widest_shown(requests);
  const double most = 100 * share_of(analysis, *std::max_element(requests.begin(), requests.end()));
  const svg::Extent extent = svg::rounded_out(0, std::max(most, 1.0), 5);
  const svg::LinearScale y{0, extent.high, plot.bottom, plot.top};
  const svg::LinearScale middle{0.5, widest + 0.5, plot.left, plot.right};
  const double half = 0.5 * (plot.right - plot.left) / widest * (widest > 60 ? 0.92 : 0.7);
  svg::left_axis(drawing, plot, y, svg::round_ticks(0, extent.high, 5), "% of the requests");
  drawing.open_group("bars");
  for (std::uint32_t width = 1; width <= widest; ++width) {
    const double share = share_of(analysis, requests[width - 1]);
    drawing.rectangle({middle(width) - half, y(100 * share), middle(width) + half, plot.bottom}, "bar",
                      fmt::format("{} in the band: {}, {}", counted(width, "centroid"),
                                  counted(requests[width - 1], "request"), percent(share)));
  }
  drawing.close_group();
  const double mean = std::clamp(middle(analysis.band.chosen.mean), plot.left, plot.right);
  drawing.line({mean, plot.top}, {mean, plot.bottom}, "chosen");
  if (widest <= kNamedBars) {
    std::vector<svg::Place> places;
    for (std::uint32_t width = 1; width <= widest; ++width) {
      places.push_back({middle(width), std::to_string(width)});
    }
    svg::bottom_places(drawing, plot, places, "centroids in the band");
  } else {
    svg::bottom_axis(drawing, plot, middle, svg::whole_ticks(1, widest, 8), "centroids in the band");
  }
  return drawing.finish();
}

std::string draw_curve(const Analysis& analysis, const std::string& heading, const std::string& lead) {
  svg::Drawing drawing("chart-tau", svg::kChartWidth, svg::kChartHeight, heading, lead);
  const svg::Box plot = svg::kPlot;
  const std::vector<BandAtTau>& curve = analysis.band.curve;
  const svg::Extent extent = svg::rounded_out(0, analysis.clusters(), 5);
  const svg::LinearScale x{0, curve.back().tau, plot.left + 14, plot.right - 10};
  const svg::LinearScale y{0, extent.high, plot.bottom, plot.top};
  svg::left_axis(drawing, plot, y, svg::whole_ticks(0, extent.high, 5), "centroids in the band");
  std::vector<svg::Point> line;
  std::vector<svg::Point> band;
  for (const BandAtTau& at : curve) {
    line.push_back({x(at.tau), y(at.mean)});
    band.push_back({x(at.tau), y(at.high)});
  }
  for (auto at = curve.rbegin(); at != curve.rend(); ++at) {
    band.push_back({x(at->tau), y(at->low)});
  }
  drawing.polygon(band, "band s0");
  drawing.line({x(analysis.band.chosen.tau), plot.top}, {x(analysis.band.chosen.tau), plot.bottom}, "chosen");
  drawing.polyline(line, "series s0");
  drawing.circle({x(analysis.band.chosen.tau), y(analysis.band.chosen.mean)}, 5, "dot s0 best",
                 fmt::format("tau {}: {} centroids", tau_text(analysis.band.chosen.tau),
                             fixed(analysis.band.chosen.mean, 2)));
  svg::bottom_axis(drawing, plot, x, svg::round_ticks(0, curve.back().tau, 6), "tau");
  return drawing.finish();
}

}  // namespace

html::Figure band_figure(const Analysis& analysis) {
  const BandWidths& bands = analysis.band;
  html::Figure figure{.id = "band",
                      .heading = fmt::format("Choice within the band, tau {}", tau_text(bands.chosen.tau))};
  figure.lead = analysis.clusters() == 1
                    ? "There is one centroid: nothing to choose from."
                    : fmt::format(
                          "A request may go to {} of {} on average; {} of the requests have no choice, {} "
                          "the whole pool.",
                          fixed(bands.chosen.mean, 1), counted(analysis.clusters(), "centroid"),
                          percent(share_of(analysis, bands.requests.front()), 0),
                          percent(share_of(analysis, bands.requests.back()), 0));
  figure.keys = {{"area bar", "requests"}, {"line chosen", "mean " + fixed(bands.chosen.mean, 1)}};
  figure.svgs = {draw_widths(analysis, figure.heading, figure.lead)};
  figure.notes = {
      "LocalityBand sends a request to the least loaded worker among those whose centroid's cosine is within "
      "tau of the best. "
      "Few centroids keep locality, many leave room to balance load."};
  figure.numbers = {"Requests by centroids in the band", {"Centroids", "Requests", "Share"}, {}};
  for (std::size_t i = 0; i < bands.requests.size(); ++i) {
    figure.numbers.rows.push_back({std::to_string(i + 1), svg::grouped(bands.requests[i]),
                                   percent(share_of(analysis, bands.requests[i]))});
  }
  return figure;
}

html::Figure tau_figure(const Analysis& analysis) {
  const BandWidths& bands = analysis.band;
  html::Figure figure{.id = "tau", .heading = "How tau widens the band"};
  const std::string widths = bands.chosen.low == bands.chosen.high
                                 ? fixed(bands.chosen.low, 0)
                                 : fixed(bands.chosen.low, 0) + " to " + fixed(bands.chosen.high, 0);
  figure.lead = fmt::format("At tau {} eight of ten requests have {} of {} in their band.",
                            tau_text(bands.chosen.tau), widths, counted(analysis.clusters(), "centroid"));
  figure.keys = {{"line s0", "mean"},
                 {"area band", "8 of 10 requests"},
                 {"line chosen", "tau of this fit, " + tau_text(bands.chosen.tau)}};
  figure.svgs = {draw_curve(analysis, figure.heading, figure.lead)};
  figure.numbers = {
      "Centroids in the band by tau", {"Tau", "Mean", "10th percentile", "90th percentile"}, {}};
  for (const BandAtTau& at : bands.curve) {
    figure.numbers.rows.push_back(
        {fmt::format("{:.4g}", at.tau), fixed(at.mean, 2), fixed(at.low, 0), fixed(at.high, 0)});
  }
  return figure;
}

}  // namespace eldr::calibrator::charts
