// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/views.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "calibrator/report/charts/words.h"
#include "calibrator/report/rounded.h"
#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

/// Null for what is not a number.
json number(double value) { return std::isfinite(value) ? json(rounded(value)) : json(nullptr); }

template <class Matrix>
json rows_of(const Matrix& matrix) {
  json rows = json::array();
  for (Eigen::Index r = 0; r < matrix.rows(); ++r) {
    json row = json::array();
    for (Eigen::Index c = 0; c < matrix.cols(); ++c) {
      row.push_back(number(static_cast<double>(matrix(r, c))));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

json to_json(const SelectionRecord& selection) {
  json rhos = json::array();
  for (const double rho : selection.rhos) {
    rhos.push_back(number(rho));
  }
  json out = {{"layerOrder", selection.layers}, {"layerRhos", std::move(rhos)}};
  for (const HeldOutRho& measured : selection.held_out) {
    out["heldOutRhos"][measured.transform] = number(measured.rho);
  }
  return out;
}

json to_json(const BatchStatistics& statistics) {
  return {{"mean", number(statistics.mean)},
          {"p10", number(statistics.low)},
          {"p90", number(statistics.high)},
          {"standardError", number(statistics.error)}};
}

json to_json(const BatchExperts& at) {
  return {{"batch", at.batch},
          {"mixed", to_json(at.mixed)},
          {"oneCluster", to_json(at.local)},
          {"saving", number(at.saving)},
          {"savingStandardError", number(at.saving_error)}};
}

json to_json(const BandAtTau& at) {
  return {{"tau", number(at.tau)}, {"mean", number(at.mean)}, {"p10", at.low}, {"p90", at.high}};
}

json to_json(const BandWidths& bands) {
  json out = to_json(bands.chosen);
  out["requestsByWidth"] = bands.requests;
  out["byTau"] = json::array();
  for (const BandAtTau& at : bands.curve) {
    out["byTau"].push_back(to_json(at));
  }
  return out;
}

json to_json(const LabelSimilarity& similarity) {
  json names = json::array();
  for (std::size_t group = 0; group < similarity.labels.count(); ++group) {
    names.push_back(charts::is_folded(similarity.labels, group) ? json(nullptr)
                                                                : json(similarity.labels.names[group]));
  }
  return {{"labels", std::move(names)},
          {"requests", similarity.labels.sizes},
          {"foldedLabels", similarity.labels.folded},
          {"meanCosine", rows_of(similarity.cosine)},
          {"counts", rows_of(similarity.counts)},
          {"clusterOrder", similarity.cluster_order},
          {"mainLabelShare", number(similarity.main_label_share)}};
}

json to_json(const RequestMap& map) {
  return {{"varianceShares", {number(map.shares[0]), number(map.shares[1])}},
          {"requests", map.requests},
          {"points", rows_of(map.points)},
          {"centroids", rows_of(map.centroids)}};
}

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("{:<18}{}\n", name, value);
}

std::string experts_text(const Analysis& analysis) {
  std::string text = "\ndistinct experts a layer and step\n  batch    mixed   one cluster   change\n";
  for (const BatchExperts& at : analysis.experts_by_batch) {
    text += fmt::format("  {:>5}  {:>7.2f}  {:>12.2f}  {:>6.1f} % ± {:.1f} %\n", at.batch, at.mixed.mean,
                        at.local.mean, std::round(-1000 * at.saving) / 10 + 0.0, 200 * at.saving_error);
  }
  return text;
}

std::string band_text(const Analysis& analysis) {
  const BandWidths& bands = analysis.band;
  std::string text = fmt::format(
      "\nband at tau {:g}: {:.2f} of {} centroids on average, eight of ten requests {:g} to {:g}\n",
      bands.chosen.tau, bands.chosen.mean, analysis.clusters(), bands.chosen.low, bands.chosen.high);
  for (std::size_t i = 0; i < bands.requests.size(); ++i) {
    if (bands.requests[i] > 0) {
      text += fmt::format("  {:>3} in the band: {} requests\n", i + 1, bands.requests[i]);
    }
  }
  return text;
}

/// Names come from the data set: a terminal must not obey them.
std::string harmless(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return text;
}

std::string labels_text(const Analysis& analysis) {
  const LabelSimilarity& similarity = analysis.similarity;
  std::string text = "\nrequests by label, and the cluster that most of them are in\n";
  for (std::size_t group = 0; group < similarity.labels.count(); ++group) {
    Eigen::Index main = 0;
    const auto row = static_cast<Eigen::Index>(group);
    const int most = similarity.counts.row(row).maxCoeff(&main);
    text += fmt::format("  {}: {} requests, {} in cluster {} (mean cosine with its centroid {:.3f})\n",
                        harmless(charts::group_name(similarity.labels, group)),
                        similarity.labels.sizes[group], most, main, similarity.cosine(row, main));
  }
  return text;
}

}  // namespace

json to_json(const Analysis& analysis) {
  json out = {{"kind", "report"},
              {"model", analysis.model},
              {"experts", analysis.experts},
              {"topK", analysis.top_k},
              {"requests", analysis.requests},
              {"directionless", analysis.directionless},
              {"decodedRequests", analysis.decoded},
              {"promptTokens", analysis.prompt_tokens},
              {"decodeTokens", analysis.decode_tokens},
              {"modelLayers", analysis.model_layers},
              {"layers", analysis.layers_kept},
              {"clusters", analysis.clusters()},
              {"transform", analysis.transform},
              {"rho", number(analysis.rho)},
              {"rhoAllLayers", number(analysis.rho_all_layers)},
              {"spread", number(analysis.spread)},
              {"seed", analysis.seed},
              {"fitHash", analysis.fit_hash},
              {"placement", analysis.placement},
              {"nearestShare", number(analysis.nearest_share)},
              {"warnings", analysis.warnings}};
  if (analysis.held_out_rho) {
    out["heldOutRho"] = number(*analysis.held_out_rho);
  }
  if (analysis.label_gap) {
    out["labelGap"] = number(*analysis.label_gap);
  }
  if (analysis.selection) {
    out["selection"] = to_json(*analysis.selection);
  }
  out["clusterSizes"] = {{"assigned", analysis.load.assigned},
                         {"nearest", analysis.load.nearest},
                         {"capacity", analysis.load.capacity}};
  out["byLabel"] = to_json(analysis.similarity);
  out["map"] = to_json(analysis.map);
  out["distinctExperts"] = json::array();
  for (const BatchExperts& at : analysis.experts_by_batch) {
    out["distinctExperts"].push_back(to_json(at));
  }
  out["band"] = to_json(analysis.band);
  return out;
}

std::string text_of(const Analysis& analysis) {
  std::string text = line("model", fmt::format("{} (top {} of {} experts)", harmless(analysis.model),
                                               analysis.top_k, analysis.experts));
  text += line("requests", fmt::format("{}, {} prompt and {} decoded tokens", analysis.requests,
                                       analysis.prompt_tokens, analysis.decode_tokens));
  text += line("signature", fmt::format("{} of {} layers, {}", analysis.layers_kept.size(),
                                        analysis.model_layers, analysis.transform));
  text += line(
      "rho",
      fmt::format("{:.4f} at these layers, {:.4f} with all layers{}", analysis.rho, analysis.rho_all_layers,
                  analysis.held_out_rho ? fmt::format(", {:.4f} held out", *analysis.held_out_rho) : ""));
  text +=
      line("clusters",
           fmt::format("{}, at most {} requests each; {:.1f} % of the requests are nearest to one centroid",
                       analysis.clusters(), analysis.load.capacity, 100 * analysis.nearest_share));
  text += line("map", fmt::format("{:.1f} % and {:.1f} % of the variance", 100 * analysis.map.shares[0],
                                  100 * analysis.map.shares[1]));
  for (const std::string& warning : analysis.warnings) {
    text += line("warning", harmless(warning));
  }
  if (!analysis.labels.empty()) {
    text += labels_text(analysis);
  }
  return text + experts_text(analysis) + band_text(analysis);
}

}  // namespace eldr::calibrator
