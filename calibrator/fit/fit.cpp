// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/fit.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "calibrator/fit/balanced_kmeans.h"
#include "calibrator/fit/placement.h"
#include "calibrator/fit/preparation.h"
#include "calibrator/fit/quality.h"
#include "calibrator/fit/renumber.h"
#include "calibrator/fit/selection_record.h"

namespace eldr::calibrator {
namespace {

using signature::CentroidSet;

Status check(const signature::Trace& trace, const FitOptions& options,
             std::span<const std::uint32_t> clusters) {
  const std::size_t n = trace.requests();
  for (const std::uint32_t k : clusters) {
    if (n >= 2 && (k == 0 || k > n)) {
      return failure(Code::kInvalid,
                     fmt::format("clusters: {}; must be from 1 to the number of requests, {}", k, n));
    }
  }
  return check_ranks(trace.experts, options.ep_ranks);
}

/// The rest of a fit, for one number of clusters; the result is filled in the order of run().
class Clusters {
 public:
  Clusters(const signature::Trace& trace, const FitOptions& options, const Preparation& prepared,
           std::uint32_t clusters, const Clock& clock, Steps& steps)
      : trace_(trace),
        options_(options),
        prepared_(prepared),
        clusters_(clusters),
        clock_(clock),
        steps_(steps),
        result_(prepared.result) {}

  Result<FitResult> run() {
    for (const auto& step : {&Clusters::cluster, &Clusters::place, &Clusters::describe}) {
      if (const Status status = (this->*step)(); !status) {
        return failure(status.error());
      }
    }
    return std::move(result_);
  }

 private:
  Status cluster() {
    return timed(clock_, result_.times, "clustering", [&]() -> Status {
      const KMeansOptions options{.clusters = clusters_,
                                  .seed = options_.seed,
                                  .restarts = options_.restarts,
                                  .threads = options_.threads};
      auto clustering = balanced_kmeans(*prepared_.similarities, options,
                                        [&](std::size_t, std::size_t) { return steps_.advance(); });
      if (!clustering) {
        return failure(clustering.error());
      }
      result_.objective = clustering->objective;
      make_set(std::move(clustering->assignment));
      return {};
    });
  }

  void make_set(std::vector<std::uint32_t> assignment) {
    CentroidSet& set = result_.set;
    set.model = trace_.model;
    set.top_k = trace_.top_k;
    // The L2-normalised mean of each cluster's signatures.
    set.centroids =
        cluster_sums(prepared_.signatures, assignment, clusters_).rowwise().normalized().cast<float>();
    set.assignment = std::move(assignment);
    set.spec = signature_spec();
    set.rho = prepared_.selection.rho();
    set.rho_all_layers = prepared_.selection.rhos.back();
    set.tau = options_.tau;
    set.fit_hash = options_.fit_hash;
    set.seed = options_.seed;
    if (options_.match != nullptr) {
      renumber(set, matched_numbers(set, *options_.match));
    }
  }

  signature::SignatureSpec signature_spec() const {
    const LayerSelection& selection = prepared_.selection;
    signature::SignatureSpec spec;
    spec.experts = trace_.experts;
    spec.transform = prepared_.transform;
    spec.idf.resize(static_cast<Eigen::Index>(selection.keep), trace_.experts);
    for (std::size_t s = 0; s < selection.keep; ++s) {
      spec.layers.push_back(trace_.layers[selection.order[s]]);
      spec.idf.row(static_cast<Eigen::Index>(s)) =
          prepared_.idf.row(static_cast<Eigen::Index>(selection.order[s]));
    }
    return spec;
  }

  Status place() {
    if (options_.ep_ranks == 1) {
      return {};
    }
    return timed(clock_, result_.times, "placement", [&]() -> Status {
      auto plans = plan_experts(trace_, result_.set.assignment,
                                {.clusters = clusters_,
                                 .ranks = options_.ep_ranks,
                                 .batch = options_.ep_batch,
                                 .threads = options_.threads});
      if (!plans) {
        return failure(plans.error());
      }
      for (std::uint32_t cluster = 0; cluster < clusters_; ++cluster) {
        for (const std::size_t layer : prepared_.selection.kept()) {
          const auto plan = plans->plan(cluster, layer);
          result_.set.placement.insert(result_.set.placement.end(), plan.begin(), plan.end());
        }
      }
      result_.expert_plans = std::move(*plans);
      return {};
    });
  }

  Status describe() {
    const SimilarityStatistics statistics =
        similarity_statistics(prepared_.signatures, result_.set.centroids);
    result_.set.spread = statistics.spread;
    result_.set.best_similarity_quantiles = statistics.best_quantiles;
    result_.nearest_share = statistics.nearest_share;
    result_.cluster_sizes = result_.set.cluster_sizes();
    if (const auto held_out = result_.held_out_rho()) {
      result_.set.extra["held_out_rho"] = fmt::format("{:.6f}", *held_out);
    }
    keep_selection_record(selection_record(), result_.set);
    for (std::string& warning : calibration_warnings({.trace = trace_,
                                .cluster_sizes = result_.cluster_sizes,
                                .directionless = statistics.directionless,
                                .nearest_share = statistics.nearest_share,
                                .label_gap = result_.label_gap,
                                .rho = result_.set.rho,
                                .held_out_rho = result_.held_out_rho(),
                                .layer_rhos = result_.layer_rhos})) {
      result_.warnings.push_back(std::move(warning));
    }
    return {};
  }

  SelectionRecord selection_record() const {
    SelectionRecord record{result_.layer_order, result_.layer_rhos, {}};
    for (const TransformQuality& quality : result_.held_out) {
      record.held_out.push_back({std::string(name_of(quality.transform)), quality.held_out_rho});
    }
    return record;
  }

  const signature::Trace& trace_;
  const FitOptions& options_;
  const Preparation& prepared_;
  std::uint32_t clusters_;
  const Clock& clock_;
  Steps& steps_;
  FitResult result_;
};

}  // namespace

std::optional<double> FitResult::held_out_rho() const {
  for (const TransformQuality& quality : held_out) {
    if (quality.transform == set.spec.transform) {
      return quality.held_out_rho;
    }
  }
  return std::nullopt;
}

Status fit_each(const signature::Trace& trace, const FitOptions& options,
                std::span<const std::uint32_t> clusters, FitBackend& backend, const Clock& clock,
                const FitProgress& progress, const std::function<Status(FitResult)>& take) {
  if (const Status good = check(trace, options, clusters); !good) {
    return good;
  }
  Steps steps(progress);
  const auto prepared = prepare_fit(trace, options, backend, clock, clusters.size(), steps);
  if (!prepared) {
    return failure(prepared.error());
  }
  for (const std::uint32_t k : clusters) {
    auto result = Clusters(trace, options, *prepared, k, clock, steps).run();
    if (!result) {
      return failure(result.error());
    }
    if (const Status taken = take(std::move(*result)); !taken) {
      return taken;
    }
  }
  return {};
}

Result<FitResult> fit_centroids(const signature::Trace& trace, const FitOptions& options, FitBackend& backend,
                                const Clock& clock, const FitProgress& progress) {
  FitResult only;
  const Status done = fit_each(trace, options, std::span(&options.clusters, 1), backend, clock, progress,
                               [&](FitResult result) -> Status {
                                 only = std::move(result);
                                 return {};
                               });
  if (!done) {
    return failure(done.error());
  }
  return only;
}

}  // namespace eldr::calibrator
