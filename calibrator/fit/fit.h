// SPDX-License-Identifier: Apache-2.0
// From a trace to centroids: weights, layers, clusters, and an honest account of how good they are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrator/fit/backend.h"
#include "calibrator/fit/expert_plans.h"
#include "calibrator/fit/layer_selection.h"
#include "calibrator/fit/steps.h"
#include "lib/base/clock.h"
#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

struct FitOptions {
  std::uint32_t clusters = 1;
  std::uint32_t ep_ranks = 1;
  double ep_batch = 32;  ///< tokens in a decode step that the placement is made for
  std::uint64_t seed = 0;
  std::optional<signature::Transform> transform =
      signature::Transform::kCountIdf;  ///< nullopt: the best held-out
  std::size_t max_layers = 0;           ///< 0: no limit
  bool held_out = true;                 ///< measure held-out rho also where the transform is given
  std::uint32_t restarts = 8;
  unsigned threads = 1;
  double tau = 0.1;
  std::string fit_hash = {};
  const signature::CentroidSet* match = nullptr;  ///< clusters keep the numbers that they had here
};

struct TransformQuality {
  signature::Transform transform = signature::Transform::kCountIdf;
  double held_out_rho = 0;
  double layers = 0;  ///< mean number of layers kept
};

struct FitResult {
  signature::CentroidSet set;
  std::vector<std::int32_t> layer_order;   ///< model layer numbers in the greedy order, all of them
  std::vector<double> layer_rhos;          ///< rho after each
  std::vector<TransformQuality> held_out;  ///< of each transform that was measured; empty: too few requests
  double objective = 0;                    ///< sum over requests of 1 - cosine with their own centroid
  std::vector<std::uint32_t> cluster_sizes;
  double nearest_share =
      0;  ///< largest share of requests that one centroid is nearest to: online, nothing balances
  std::optional<double>
      label_gap;  ///< mean cosine of two requests of one label minus that of two of different ones
  std::optional<ExpertPlans> expert_plans;  ///< of all layers, with ep_ranks above 1; `set` has the kept ones
  std::vector<std::string> warnings;
  std::vector<StageTime> times;

  std::optional<double> held_out_rho() const;  ///< of the transform used
};

/// Deterministic: the same trace and options (threads apart) give the same set. kInvalid: the trace cannot
/// carry the fit (too few requests, clusters, ranks); kCancelled; kResourceExhausted.
Result<FitResult> fit_centroids(const signature::Trace& trace, const FitOptions& options, FitBackend& backend,
                                const Clock& clock, const FitProgress& progress);

/// The same for each number of clusters in turn (options.clusters is not looked at); what does not depend on
/// it is done once. Each result goes to `take`, whose failure ends it all.
Status fit_each(const signature::Trace& trace, const FitOptions& options,
                std::span<const std::uint32_t> clusters, FitBackend& backend, const Clock& clock,
                const FitProgress& progress, const std::function<Status(FitResult)>& take);

}  // namespace eldr::calibrator
