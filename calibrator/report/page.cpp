// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/page.h"

#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/charts.h"
#include "calibrator/report/charts/words.h"
#include "calibrator/report/html.h"
#include "calibrator/report/style.h"
#include "calibrator/report/svg/markup.h"
#include "lib/base/version.h"

namespace eldr::calibrator {
namespace {

using charts::counted;
using svg::escaped;
using svg::fixed;
using svg::percent;

/// A figure that matters, large, with what it means under it.
struct Headline {
  std::string value;
  std::string name;
  std::string remark;
};

std::vector<Headline> headlines(const Analysis& analysis) {
  std::vector<Headline> lines = {
      {fixed(analysis.rho, 3), "rho",
       analysis.held_out_rho ? fixed(*analysis.held_out_rho, 3) + " on held-out requests"
                             : "held-out not measured"},
      {fmt::format("{} of {}", analysis.layers_kept.size(), analysis.model_layers), "layers in the signature",
       "transform " + analysis.transform}};
  if (!analysis.experts_by_batch.empty()) {
    const BatchExperts& largest = analysis.experts_by_batch.back();
    lines.push_back({percent(-largest.saving), "distinct experts",
                     fmt::format("one cluster against mixed, batch {}", largest.batch)});
  }
  lines.push_back({fixed(analysis.band.chosen.mean, 1), "centroids in the band",
                   fmt::format("mean of {} at tau {:g}", analysis.clusters(), analysis.band.chosen.tau)});
  const int decimals = analysis.nearest_share < 0.1 ? 1 : 0;
  lines.push_back({percent(analysis.nearest_share, decimals), "nearest to one centroid",
                   percent(1.0 / analysis.clusters(), decimals) + " would be even"});
  return lines;
}

std::string headline_markup(const Analysis& analysis) {
  std::string markup = "<section class=\"headlines\" aria-label=\"Headlines\">\n";
  for (const Headline& line : headlines(analysis)) {
    markup += fmt::format("<div><b>{}</b><span>{}</span><small>{}</small></div>\n", escaped(line.value),
                          escaped(line.name), escaped(line.remark));
  }
  return markup + "</section>\n";
}

std::string warning_markup(const std::vector<std::string>& warnings) {
  if (warnings.empty()) {
    return "<section class=\"warnings none\"><p>No warnings: sample, labels, clusters and layers are as they "
           "should be.</p></section>\n";
  }
  std::string markup = fmt::format("<section class=\"warnings\"><h2>{}</h2><ul>\n",
                                   escaped(counted(warnings.size(), "warning")));
  for (const std::string& warning : warnings) {
    markup += "<li>" + escaped(warning) + "</li>\n";
  }
  return markup + "</ul></section>\n";
}

html::Table facts(const Analysis& analysis) {
  html::Table table{"What was fitted", {"Fact", "Value"}, {}};
  const auto add = [&](std::string name, std::string value) {
    table.rows.push_back({std::move(name), std::move(value)});
  };
  add("Model", analysis.model);
  add("Experts", fmt::format("{} a layer, {} a token", analysis.experts, analysis.top_k));
  add("MoE layers", std::to_string(analysis.model_layers));
  add("Layers kept, in the order chosen", fmt::format("{}", fmt::join(analysis.layers_kept, ", ")));
  add("Transform", analysis.transform);
  add("Clusters", std::to_string(analysis.clusters()));
  add("Requests", svg::grouped(analysis.requests));
  add("Prompt tokens", svg::grouped(analysis.prompt_tokens));
  add("Decoded tokens", svg::grouped(analysis.decode_tokens));
  add("Rho", fixed(analysis.rho, 4));
  add("Rho with all layers", fixed(analysis.rho_all_layers, 4));
  if (analysis.held_out_rho) {
    add("Rho on held-out requests", fixed(*analysis.held_out_rho, 4));
  }
  if (analysis.selection && analysis.selection->held_out.size() > 1) {
    for (const HeldOutRho& measured : analysis.selection->held_out) {
      add("Held-out rho of " + measured.transform, fixed(measured.rho, 4));
    }
  }
  add("Spread of similarities", fixed(analysis.spread, 4));
  if (analysis.label_gap) {
    add("Label gap", fixed(*analysis.label_gap, 4));
  }
  add("Tau", fmt::format("{:g}", analysis.band.chosen.tau));
  add("Expert placement", analysis.placement ? "by cluster and layer" : "none");
  add("Seed", std::to_string(analysis.seed));
  if (!analysis.fit_hash.empty()) {
    add("Fit hash", analysis.fit_hash);
  }
  return table;
}

std::string source_markup(const std::vector<ReportSource>& sources) {
  std::string markup;
  for (const ReportSource& source : sources) {
    markup += fmt::format("<p>{} <bdi>{}</bdi><br><code>sha256 {}</code></p>\n", escaped(source.kind),
                          escaped(source.name), escaped(source.sha256));
  }
  return markup;
}

std::vector<html::Figure> figures(const Analysis& analysis) {
  std::vector<html::Figure> all = {charts::rho_figure(analysis), charts::experts_figure(analysis),
                                   charts::similarity_figure(analysis)};
  if (!analysis.labels.empty()) {
    all.push_back(charts::label_counts_figure(analysis));
    all.push_back(charts::label_map_figure(analysis));
  }
  for (const auto& figure :
       {charts::cluster_map_figure, charts::cluster_sizes_figure, charts::band_figure, charts::tau_figure}) {
    all.push_back(figure(analysis));
  }
  return all;
}

}  // namespace

std::string report_page(const Analysis& analysis, const std::vector<ReportSource>& sources) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>Calibration of {}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
      escaped(analysis.model), kReportStyle);
  page += fmt::format(
      "<header>\n<p class=\"kicker\">ELDR calibration</p>\n<h1><bdi>{}</bdi></h1>\n<p class=\"sub\">{} · {} "
      "· {}</p>\n</header>\n",
      escaped(analysis.model), counted(analysis.requests, "request"), counted(analysis.clusters(), "cluster"),
      fmt::format("{} layers of {} experts", analysis.model_layers, analysis.experts));
  page += headline_markup(analysis) + warning_markup(analysis.warnings) + "<div class=\"grid\">\n";
  for (const html::Figure& figure : figures(analysis)) {
    page += html::figure(figure);
  }
  page += "<section class=\"card facts\" id=\"facts\"><h2>Facts</h2>" + html::table(facts(analysis)) +
          "</section>\n</div>\n";
  page += fmt::format("<footer>\n{}<p>eldr-calibrate {}</p>\n</footer>\n</main>\n</body>\n</html>\n",
                      source_markup(sources), kVersion);
  return page;
}

}  // namespace eldr::calibrator
