// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/analysis.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "calibrator/fit/quality.h"
#include "calibrator/report/analysis/fitted_trace.h"

namespace eldr::calibrator {
namespace {

constexpr std::size_t kMostLabels = 24;

void describe_inputs(const FittedTrace& fitted, Analysis& analysis) {
  const signature::Trace& trace = fitted.trace;
  const signature::CentroidSet& set = fitted.set;
  analysis.model = trace.model;
  analysis.experts = trace.experts;
  analysis.top_k = trace.top_k;
  analysis.requests = trace.requests();
  analysis.directionless = trace.requests() - fitted.directed.size();
  analysis.decoded =
      static_cast<std::size_t>(std::count_if(trace.decode_tokens.begin(), trace.decode_tokens.end(),
                                             [](std::uint32_t tokens) { return tokens > 0; }));
  analysis.prompt_tokens =
      std::accumulate(trace.prompt_tokens.begin(), trace.prompt_tokens.end(), std::uint64_t{0});
  analysis.decode_tokens =
      std::accumulate(trace.decode_tokens.begin(), trace.decode_tokens.end(), std::uint64_t{0});
  analysis.model_layers = trace.layers.size();
  analysis.layers_kept = set.spec.layers;
  analysis.transform = name_of(set.spec.transform);
  analysis.rho = set.rho;
  analysis.rho_all_layers = set.rho_all_layers;
  analysis.spread = set.spread;
  analysis.seed = set.seed;
  analysis.fit_hash = set.fit_hash;
  analysis.placement = !set.placement.empty();
  analysis.assignment = set.assignment;
  analysis.labels = trace.labels;
}

/// The same judgement as at the fit, from what the files hold.
void judge(const FittedTrace& fitted, Analysis& analysis) {
  const SimilarityStatistics statistics = similarity_statistics(fitted.signatures, fitted.set.centroids);
  analysis.nearest_share = statistics.nearest_share;
  analysis.label_gap = label_gap(fitted.signatures, fitted.trace.labels);
  std::span<const double> rhos;
  if (analysis.selection) {
    rhos = analysis.selection->rhos;
  }
  analysis.warnings = calibration_warnings({.trace = fitted.trace,
                                            .cluster_sizes = analysis.load.assigned,
                                            .directionless = statistics.directionless,
                                            .nearest_share = statistics.nearest_share,
                                            .label_gap = analysis.label_gap,
                                            .rho = analysis.rho,
                                            .held_out_rho = analysis.held_out_rho,
                                            .layer_rhos = rhos});
}

}  // namespace

Result<Analysis> analyse(const signature::Trace& trace, const signature::CentroidSet& set) {
  auto selection = selection_record_of(set);
  if (!selection) {
    return failure(selection.error());
  }
  const auto fitted = match_trace(trace, set);
  if (!fitted) {
    return failure(fitted.error());
  }
  const auto held_out = held_out_rho_of(set);
  if (!held_out) {
    return failure(held_out.error());
  }
  Analysis analysis;
  analysis.held_out_rho = *held_out;
  describe_inputs(*fitted, analysis);
  analysis.selection = std::move(*selection);
  analysis.similarity = label_similarity(*fitted, kMostLabels);
  analysis.load = cluster_load(*fitted);
  analysis.map = map_requests(*fitted);
  analysis.sampling.seed = set.seed;
  analysis.experts_by_batch =
      resample_distinct_experts(trace, set.assignment, set.clusters(), analysis.sampling);
  const signature::RowMatrixF directed = fitted->similarities(fitted->directed, Eigen::all);
  analysis.band = band_widths(directed, set.tau);
  judge(*fitted, analysis);
  return analysis;
}

}  // namespace eldr::calibrator
