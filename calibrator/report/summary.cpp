// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/summary.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "calibrator/fit/selection_record.h"
#include "calibrator/report/rounded.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

std::map<std::string, std::size_t> label_counts(const signature::Trace& trace) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& label : trace.labels) {
    ++counts[label];
  }
  return counts;
}

struct TokenSummary {
  std::uint64_t sum = 0;
  std::uint32_t smallest = 0;
  std::uint32_t median = 0;
  std::uint32_t largest = 0;
};

TokenSummary summarize(std::vector<std::uint32_t> tokens) {
  if (tokens.empty()) {
    return {};
  }
  std::sort(tokens.begin(), tokens.end());
  TokenSummary summary{0, tokens.front(), tokens[tokens.size() / 2], tokens.back()};
  for (const std::uint32_t count : tokens) {
    summary.sum += count;
  }
  return summary;
}

json to_json(const TokenSummary& tokens) {
  return {{"sum", tokens.sum}, {"min", tokens.smallest}, {"median", tokens.median}, {"max", tokens.largest}};
}

json to_json(const ExpertPlans& plans) {
  const FullestRank mean = plans.mean();
  return {{"ranks", plans.ranks},
          {"batch", plans.batch},
          {"fullestRank", rounded(mean.planned)},
          {"identity", rounded(mean.identity)},
          {"tokenBalanced", rounded(mean.token_balanced)},
          {"bound", rounded(mean.bound)}};
}

std::string text_of(const ExpertPlans& plans) {
  const FullestRank mean = plans.mean();
  return fmt::format(
      "active experts    {:.2f} on the fullest of {} ranks at {:g} tokens a step; {:.2f} in their own order, "
      "{:.2f} balanced by tokens, no plan below {:.2f}\n",
      mean.planned, plans.ranks, plans.batch, mean.identity, mean.token_balanced, mean.bound);
}

/// The rho curve, a few layers a line.
std::string text_of(const SelectionRecord& selection) {
  constexpr std::size_t kPerLine = 6;
  std::string text;
  for (std::size_t i = 0; i < selection.layers.size(); ++i) {
    text += i % kPerLine != 0 ? "   " : i == 0 ? "rho by layers     " : "\n                  ";
    text += fmt::format("+{:<3} {:.4f}", selection.layers[i], selection.rhos[i]);
  }
  return text + "\n";
}

}  // namespace

json summary_of(const signature::CentroidSet& set) {
  json summary = {{"rho", rounded(set.rho)},
                  {"rhoAllLayers", rounded(set.rho_all_layers)},
                  {"layersKept", set.spec.layers.size()},
                  {"maxClusterShare", rounded(set.max_cluster_share())},
                  {"requests", set.requests()},
                  {"clusters", set.clusters()},
                  {"transform", name_of(set.spec.transform)}};
  if (const auto held_out = set.extra.find("held_out_rho"); held_out != set.extra.end()) {
    summary["heldOutRho"] = std::strtod(held_out->second.c_str(), nullptr);
  }
  return summary;
}

json describe(const signature::CentroidSet& set) {
  json out = summary_of(set);
  out["kind"] = "centroids";
  out["model"] = set.model;
  out["layers"] = set.spec.layers;
  out["experts"] = set.spec.experts;
  out["topK"] = set.top_k;
  out["spread"] = rounded(set.spread);
  out["tau"] = set.tau;
  out["seed"] = set.seed;
  out["fitHash"] = set.fit_hash;
  out["clusterSizes"] = set.cluster_sizes();
  out["placement"] = !set.placement.empty();
  for (const auto& [name, value] : set.best_similarity_quantiles) {
    out["bestSimilarity"][name] = rounded(value);
  }
  if (const auto selection = selection_record_of(set).value_or(std::nullopt)) {
    out["layerOrder"] = selection->layers;
    out["layerRhos"] = selection->rhos;
    for (const HeldOutRho& measured : selection->held_out) {
      out["heldOutRhos"][measured.transform] = measured.rho;
    }
  }
  return out;
}

json report_of(const FitResult& result) {
  json out = describe(result.set);
  out["layerOrder"] = result.layer_order;
  out["layerRhos"] = json::array();
  for (const double rho : result.layer_rhos) {
    out["layerRhos"].push_back(rounded(rho));
  }
  out["heldOut"] = json::array();
  for (const TransformQuality& quality : result.held_out) {
    out["heldOut"].push_back({{"transform", name_of(quality.transform)},
                              {"rho", rounded(quality.held_out_rho)},
                              {"layers", quality.layers}});
  }
  out["meanDistance"] = rounded(result.objective / result.set.requests());
  out["nearestShare"] = rounded(result.nearest_share);
  if (result.label_gap) {
    out["labelGap"] = rounded(*result.label_gap);
  }
  if (result.expert_plans) {
    out["expertPlacement"] = to_json(*result.expert_plans);
  }
  out["warnings"] = result.warnings;
  for (const StageTime& time : result.times) {
    out["seconds"][time.stage] = time.seconds;
  }
  return out;
}

std::string text_of(const signature::CentroidSet& set) {
  std::string text;
  text +=
      fmt::format("model             {} (top {} of {} experts)\n", set.model, set.top_k, set.spec.experts);
  text += fmt::format("requests          {}\n", set.requests());
  text += fmt::format("transform         {}\n", name_of(set.spec.transform));
  text += fmt::format("layers kept       {}: {}\n", set.spec.layers.size(), fmt::join(set.spec.layers, ", "));
  text += fmt::format("rho               {:.4f} at these layers, {:.4f} with all layers", set.rho,
                      set.rho_all_layers);
  if (const auto held_out = set.extra.find("held_out_rho"); held_out != set.extra.end()) {
    text += fmt::format(", {:.4f} held out", std::strtod(held_out->second.c_str(), nullptr));
  }
  text += "\n";
  if (const auto selection = selection_record_of(set).value_or(std::nullopt)) {
    text += text_of(*selection);
  }
  text +=
      fmt::format("clusters          {}, sizes {}\n", set.clusters(), fmt::join(set.cluster_sizes(), " "));
  text += fmt::format("best similarity   ");
  for (const auto& [name, value] : set.best_similarity_quantiles) {
    text += fmt::format("{} {:.3f}  ", name, value);
  }
  text += fmt::format("\nspread            {:.4f} (best minus mean similarity)\n", set.spread);
  text += fmt::format("expert placement  {}\n", set.placement.empty() ? "none" : "by cluster and layer");
  return text;
}

std::string text_of(const FitResult& result) {
  std::string text = text_of(result.set);
  if (result.held_out.size() > 1) {
    text += "held-out rho      ";
    for (const TransformQuality& quality : result.held_out) {
      text += fmt::format("{} {:.4f} ({:g} layers)  ", name_of(quality.transform), quality.held_out_rho,
                          quality.layers);
    }
    text += "\n";
  }
  text += fmt::format("nearest share     {:.1f} % of the requests are nearest to one centroid\n",
                      100 * result.nearest_share);
  if (result.label_gap) {
    text += fmt::format("label gap         {:.4f} (cosine within labels minus between)\n", *result.label_gap);
  }
  if (result.expert_plans) {
    text += text_of(*result.expert_plans);
  }
  text += "seconds           ";
  for (const StageTime& time : result.times) {
    text += fmt::format("{} {:.2f}  ", time.stage, time.seconds);
  }
  text += "\n";
  return text;
}

std::string comparison_header() {
  return "clusters  mean distance  p10 similarity  spread  nearest share  file\n";
}

std::string comparison_row(const FitResult& result, const std::string& file) {
  return fmt::format("{:>8}  {:>13.4f}  {:>14.4f}  {:>6.4f}  {:>11.1f} %  {}\n", result.set.clusters(),
                     result.objective / result.set.requests(), result.set.best_similarity_quantiles.at("p10"),
                     result.set.spread, 100 * result.nearest_share, file);
}

json describe(const signature::Trace& trace) {
  json out = {{"kind", "trace"},
              {"model", trace.model},
              {"requests", trace.requests()},
              {"layers", trace.layers},
              {"experts", trace.experts},
              {"topK", trace.top_k},
              {"promptTokens", to_json(summarize(trace.prompt_tokens))},
              {"decodeTokens", to_json(summarize(trace.decode_tokens))},
              {"decodeExperts", !trace.decode_experts.empty()}};
  if (!trace.labels.empty()) {
    out["labels"] = label_counts(trace);
  }
  return out;
}

std::string text_of(const signature::Trace& trace) {
  const TokenSummary prompt = summarize(trace.prompt_tokens);
  const TokenSummary decode = summarize(trace.decode_tokens);
  std::string text;
  text +=
      fmt::format("model             {} (top {} of {} experts)\n", trace.model, trace.top_k, trace.experts);
  text += fmt::format("requests          {}\n", trace.requests());
  text += fmt::format("layers            {}: {}\n", trace.layers.size(), fmt::join(trace.layers, ", "));
  text += fmt::format("prompt tokens     {} (per request {} … {} … {})\n", prompt.sum, prompt.smallest,
                      prompt.median, prompt.largest);
  text += fmt::format("decode tokens     {} (per request {} … {} … {})\n", decode.sum, decode.smallest,
                      decode.median, decode.largest);
  text += fmt::format("token by token    {}\n", trace.decode_experts.empty() ? "no" : "yes");
  if (!trace.labels.empty()) {
    text += "labels            ";
    for (const auto& [label, count] : label_counts(trace)) {
      text += fmt::format("{} {}  ", label, count);
    }
    text += "\n";
  }
  return text;
}

}  // namespace eldr::calibrator
