// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/fit.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include <spdlog/fmt/fmt.h>

#include "calibrator/fit/balanced_kmeans.h"
#include "calibrator/fit/holdout.h"
#include "calibrator/fit/quality.h"

namespace eldr::calibrator {
namespace {

using signature::CentroidSet;
using signature::RowMatrixF;
using signature::Transform;

constexpr Transform kAllTransforms[] = {Transform::kCountIdf, Transform::kCount, Transform::kSqrtCount,
                                        Transform::kBinary};
/// Halves of fewer are noise.
constexpr std::size_t kFewestForHeldOut = 20;

/// One fit, step by step; fields are filled in the order of run().
class Fit {
 public:
  Fit(const signature::Trace& trace, const FitOptions& options, FitBackend& backend, const Clock& clock,
      const FitProgress& progress)
      : trace_(trace), options_(options), backend_(backend), clock_(clock), progress_(progress) {}

  Result<FitResult> run() {
    for (const auto& step : {&Fit::check, &Fit::measure_held_out, &Fit::select, &Fit::cluster,
                             &Fit::make_centroids, &Fit::place, &Fit::describe}) {
      if (const Status status = (this->*step)(); !status) {
        return failure(status.error());
      }
    }
    return std::move(result_);
  }

 private:
  Status check() {
    const std::size_t n = trace_.requests();
    if (n < 2) {
      return failure(Code::kInvalid, fmt::format("trace: {} requests; at least 2 are needed", n));
    }
    if (options_.clusters == 0 || options_.clusters > n) {
      return failure(Code::kInvalid, fmt::format("clusters: {}; must be from 1 to the number of requests, {}",
                                                 options_.clusters, n));
    }
    if (options_.ep_ranks == 0 || trace_.experts % options_.ep_ranks != 0) {
      return failure(Code::kInvalid,
                     fmt::format("expert-parallel ranks: {}; must divide the number of experts, {}",
                                 options_.ep_ranks, trace_.experts));
    }
    requests_.resize(n);
    std::iota(requests_.begin(), requests_.end(), std::size_t{0});
    for (const std::size_t request : requests_) {
      if (trace_.decode_tokens[request] > 0) {
        decoded_.push_back(request);
      }
    }
    if (decoded_.size() < 2) {
      return failure(Code::kInvalid,
                     fmt::format("trace: {} of {} requests have decode tokens; at least 2 are needed",
                                 decoded_.size(), n));
    }
    layers_.resize(trace_.layers.size());
    std::iota(layers_.begin(), layers_.end(), std::size_t{0});
    plan_steps();
    return {};
  }

  /// The unit of progress is one layer added in one greedy selection; clustering counts as some.
  void plan_steps() {
    const bool measured = decoded_.size() >= kFewestForHeldOut;
    const std::size_t transforms = !measured             ? 0
                                   : !options_.transform ? std::size(kAllTransforms)
                                   : options_.held_out   ? 1
                                                         : 0;
    total_steps_ = layers_.size() * (2 * transforms + 1) + options_.restarts;
  }

  bool advance() { return progress_(std::min(done_steps_.fetch_add(1) + 1, total_steps_), total_steps_); }

  template <class Body>
  Status timed(const char* stage, Body body) {
    const auto start = clock_.steady();
    const Status status = body();
    result_.times.push_back({stage, std::chrono::duration<double>(clock_.steady() - start).count()});
    return status;
  }

  Status measure_held_out() {
    transform_ = options_.transform.value_or(Transform::kCountIdf);
    if (decoded_.size() < kFewestForHeldOut) {
      result_.warnings.push_back(fmt::format(
          "{} requests are too few to measure held-out quality ({} are needed); the transform is {}",
          decoded_.size(), kFewestForHeldOut, name_of(transform_)));
      return {};
    }
    return timed("held-out", [&]() -> Status {
      const Halves halves = split_in_halves(trace_, decoded_, options_.seed);
      for (const Transform transform : kAllTransforms) {
        const bool wanted = options_.transform ? options_.held_out && transform == *options_.transform : true;
        if (!wanted) {
          continue;
        }
        const auto quality =
            held_out_rho(backend_, trace_, halves, transform, options_.max_layers, [&] { return advance(); });
        if (!quality) {
          return failure(quality.error());
        }
        result_.held_out.push_back({transform, quality->rho, quality->layers});
      }
      if (!options_.transform) {
        // The best held-out; ties go to fewer layers on the wire, then to the earlier in the list.
        transform_ = std::min_element(result_.held_out.begin(), result_.held_out.end(),
                                      [](const TransformQuality& a, const TransformQuality& b) {
                                        return a.held_out_rho != b.held_out_rho
                                                   ? a.held_out_rho > b.held_out_rho
                                                   : a.layers < b.layers;
                                      })
                         ->transform;
      }
      return {};
    });
  }

  /// Weights from every request; rho over the pairs of those that decoded something.
  Status select() {
    return timed("selection", [&]() -> Status {
      idf_ = idf_of(trace_, requests_, transform_);
      auto scorer = backend_.layer_scorer(prefill_features(trace_, decoded_, layers_, transform_, idf_),
                                          decode_features(trace_, decoded_));
      if (!scorer) {
        return failure(scorer.error());
      }
      auto selection = select_layers(**scorer, layers_.size(), options_.max_layers,
                                     [&](std::size_t, std::size_t) { return advance(); });
      if (!selection) {
        return failure(selection.error());
      }
      selection_ = std::move(*selection);
      for (const std::size_t layer : selection_.order) {
        result_.layer_order.push_back(trace_.layers[layer]);
      }
      result_.layer_rhos = selection_.rhos;
      return {};
    });
  }

  Status cluster() {
    return timed("clustering", [&]() -> Status {
      signatures_ = unit_signatures(prefill_features(trace_, requests_, selection_.kept(), transform_, idf_));
      const auto similarities = backend_.similarities(signatures_);
      if (!similarities) {
        return failure(similarities.error());
      }
      const KMeansOptions options{.clusters = options_.clusters,
                                  .seed = options_.seed,
                                  .restarts = options_.restarts,
                                  .threads = options_.threads};
      auto clustering =
          balanced_kmeans(**similarities, options, [&](std::size_t, std::size_t) { return advance(); });
      if (!clustering) {
        return failure(clustering.error());
      }
      assignment_ = std::move(clustering->assignment);
      result_.label_gap = label_gap(signatures_, trace_.labels);
      return {};
    });
  }

  /// The L2-normalised mean of each cluster's signatures.
  Status make_centroids() {
    Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(options_.clusters, signatures_.cols());
    for (std::size_t request = 0; request < assignment_.size(); ++request) {
      sums.row(assignment_[request]) += signatures_.row(static_cast<Eigen::Index>(request)).cast<double>();
    }
    CentroidSet& set = result_.set;
    set.centroids = sums.rowwise().normalized().cast<float>();
    set.model = trace_.model;
    set.top_k = trace_.top_k;
    set.assignment = assignment_;
    set.spec.experts = trace_.experts;
    set.spec.transform = transform_;
    set.spec.idf.resize(static_cast<Eigen::Index>(selection_.keep), trace_.experts);
    for (std::size_t s = 0; s < selection_.keep; ++s) {
      set.spec.layers.push_back(trace_.layers[selection_.order[s]]);
      set.spec.idf.row(static_cast<Eigen::Index>(s)) =
          idf_.row(static_cast<Eigen::Index>(selection_.order[s]));
    }
    set.rho = selection_.rho();
    set.rho_all_layers = selection_.rhos.back();
    set.tau = options_.tau;
    set.fit_hash = options_.fit_hash;
    set.seed = options_.seed;
    return {};
  }

  Status place() {
    if (options_.ep_ranks == 1) {
      return {};
    }
    return timed("placement", [&]() -> Status {
      auto plans = plan_experts(trace_, assignment_,
                                {.clusters = options_.clusters,
                                 .ranks = options_.ep_ranks,
                                 .batch = options_.ep_batch,
                                 .threads = options_.threads});
      if (!plans) {
        return failure(plans.error());
      }
      for (std::uint32_t cluster = 0; cluster < options_.clusters; ++cluster) {
        for (const std::size_t layer : selection_.kept()) {
          const auto plan = plans->plan(cluster, layer);
          result_.set.placement.insert(result_.set.placement.end(), plan.begin(), plan.end());
        }
      }
      result_.expert_plans = std::move(*plans);
      return {};
    });
  }

  Status describe() {
    const SimilarityStatistics statistics = similarity_statistics(signatures_, result_.set.centroids);
    result_.set.spread = statistics.spread;
    result_.set.best_similarity_quantiles = statistics.best_quantiles;
    result_.nearest_share = statistics.nearest_share;
    result_.cluster_sizes.assign(options_.clusters, 0);
    for (const std::uint32_t cluster : assignment_) {
      ++result_.cluster_sizes[cluster];
    }
    if (const auto held_out = result_.held_out_rho()) {
      result_.set.extra["held_out_rho"] = fmt::format("{:.6f}", *held_out);
    }
    for (std::string& warning : calibration_warnings({.trace = trace_,
                                .cluster_sizes = result_.cluster_sizes,
                                .directionless = statistics.directionless,
                                .nearest_share = statistics.nearest_share,
                                .label_gap = result_.label_gap,
                                .rho = result_.set.rho,
                                .held_out_rho = result_.held_out_rho()})) {
      result_.warnings.push_back(std::move(warning));
    }
    return {};
  }

  const signature::Trace& trace_;
  const FitOptions& options_;
  FitBackend& backend_;
  const Clock& clock_;
  const FitProgress& progress_;

  std::vector<std::size_t> requests_;  ///< all
  std::vector<std::size_t> decoded_;   ///< those with decode tokens: the others have no p to compare with
  std::vector<std::size_t> layers_;    ///< all
  Transform transform_ = Transform::kCountIdf;
  RowMatrixF idf_;  ///< [L][E]
  LayerSelection selection_;
  RowMatrixF signatures_;  ///< [N][S * E]
  std::vector<std::uint32_t> assignment_;
  FitResult result_;
  std::size_t total_steps_ = 0;
  std::atomic<std::size_t> done_steps_{0};
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

Result<FitResult> fit_centroids(const signature::Trace& trace, const FitOptions& options, FitBackend& backend,
                                const Clock& clock, const FitProgress& progress) {
  return Fit(trace, options, backend, clock, progress).run();
}

}  // namespace eldr::calibrator
