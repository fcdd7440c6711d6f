// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/svg/axes.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::charts {
namespace {

using svg::fixed;
using svg::percent;

constexpr double kHeight = svg::kChartHeight + 18;  ///< a second row under the axis: what is saved

std::string saving_text(const BatchExperts& at, int decimals) { return percent(-at.saving, decimals); }

std::string tooltip(const BatchExperts& at, const char* kind, const BatchStatistics& statistics) {
  return fmt::format("{} of {}: {} experts a layer and step, 8 of 10 batches {} to {}", kind,
                     counted(at.batch, "request"), fixed(statistics.mean, 2), fixed(statistics.low, 1),
                     fixed(statistics.high, 1));
}

void draw_series(svg::Drawing& drawing, const std::vector<BatchExperts>& batches, const svg::LinearScale& x,
                 const svg::LinearScale& y, BatchStatistics BatchExperts::*kind, const char* name,
                 const std::string& css) {
  std::vector<svg::Point> line;
  std::vector<svg::Point> band;
  for (const BatchExperts& at : batches) {
    const double across = x(std::log2(at.batch));
    line.push_back({across, y((at.*kind).mean)});
    band.push_back({across, y((at.*kind).high)});
  }
  for (auto at = batches.rbegin(); at != batches.rend(); ++at) {
    band.push_back({x(std::log2(at->batch)), y(((*at).*kind).low)});
  }
  drawing.polygon(band, "band " + css);
  drawing.polyline(line, "series " + css);
  for (std::size_t i = 0; i < line.size(); ++i) {
    drawing.circle(line[i], 3.4, "dot " + css, tooltip(batches[i], name, batches[i].*kind));
  }
}

std::string draw(const Analysis& analysis, const std::string& heading, const std::string& lead) {
  svg::Drawing drawing("chart-experts", svg::kChartWidth, kHeight, heading, lead);
  const std::vector<BatchExperts>& batches = analysis.experts_by_batch;
  const svg::Box plot = svg::kPlot;
  const svg::Extent extent = svg::rounded_out(0, batches.back().mixed.high, 5);
  const svg::LinearScale x{0, std::log2(batches.back().batch), plot.left + 22, plot.right - 22};
  const svg::LinearScale y{0, extent.high, plot.bottom, plot.top};
  svg::left_axis(drawing, plot, y, svg::round_ticks(0, extent.high, 5), "distinct experts a layer and step");
  draw_series(drawing, batches, x, y, &BatchExperts::mixed, "mixed batches", "s1");
  draw_series(drawing, batches, x, y, &BatchExperts::local, "batches of one cluster", "s0");
  drawing.line({plot.left, plot.bottom}, {plot.right, plot.bottom}, "axis");
  for (const BatchExperts& at : batches) {
    const double across = x(std::log2(at.batch));
    drawing.text({across, plot.bottom + 17}, svg::Anchor::kMiddle, "tick", std::to_string(at.batch));
    drawing.text({across, plot.bottom + 34}, svg::Anchor::kMiddle, "saving", saving_text(at, 1));
  }
  drawing.text({(plot.left + plot.right) / 2, plot.bottom + 54}, svg::Anchor::kMiddle, "quantity",
               "requests in a batch, and what locality changes");
  return drawing.finish();
}

}  // namespace

html::Figure experts_figure(const Analysis& analysis) {
  html::Figure figure{.id = "experts", .heading = "What locality saves"};
  const std::vector<BatchExperts>& batches = analysis.experts_by_batch;
  if (batches.empty()) {
    figure.lead = "No request decoded anything: nothing can be predicted.";
    return figure;
  }
  const BatchExperts& largest = batches.back();
  figure.lead = fmt::format(
      "In batches of {} requests a worker reads {} distinct experts a layer and step, {} when they are of "
      "one cluster: {} (±{}).",
      largest.batch, fixed(largest.mixed.mean, 1), fixed(largest.local.mean, 1), saving_text(largest, 1),
      percent(2 * largest.saving_error, 1));
  figure.keys = {
      {"line s1", "mixed batches"}, {"line s0", "batches of one cluster"}, {"area band", "8 of 10 batches"}};
  figure.svgs = {draw(analysis, figure.heading, figure.lead)};
  figure.notes = {fmt::format(
      "Expected number of experts that at least one of a batch's requests uses: the sum over experts of "
      "1 − Π(1 − p), where p is the share of a request's decoded tokens that used the expert; exact for a "
      "given batch, "
      "averaged over all {} of the model and over {} batches of each kind and size, drawn from the "
      "calibration "
      "requests. ± is two standard errors of these draws.",
      counted(analysis.model_layers, "layer"), analysis.sampling.draws)};
  if (largest.batch < analysis.sampling.largest_batch) {
    figure.notes.push_back(fmt::format("Larger batches need larger clusters than {} in {} give.",
                                       counted(analysis.decoded, "request"),
                                       counted(analysis.clusters(), "cluster")));
  }
  figure.numbers = {
      "Distinct experts a layer and step", {"Batch", "Mixed", "One cluster", "Change", "± "}, {}};
  for (const BatchExperts& at : batches) {
    figure.numbers.rows.push_back({std::to_string(at.batch), fixed(at.mixed.mean, 2), fixed(at.local.mean, 2),
                                   saving_text(at, 1), percent(2 * at.saving_error, 1)});
  }
  return figure;
}

}  // namespace eldr::calibrator::charts
