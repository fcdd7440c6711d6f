// SPDX-License-Identifier: Apache-2.0
// From a trace to centroids: weights, layers, clusters, and an honest account of how good they are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrator/fit/backend.h"
#include "calibrator/fit/expert_plans.h"
#include "calibrator/fit/layer_selection.h"
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
};

struct TransformQuality {
  signature::Transform transform = signature::Transform::kCountIdf;
  double held_out_rho = 0;
  double layers = 0;  ///< mean number of layers kept
};

struct StageTime {
  std::string stage;
  double seconds = 0;
};

struct FitResult {
  signature::CentroidSet set;
  std::vector<std::int32_t> layer_order;   ///< model layer numbers in the greedy order, all of them
  std::vector<double> layer_rhos;          ///< rho after each
  std::vector<TransformQuality> held_out;  ///< of each transform that was measured; empty: too few requests
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

/// Called with what is being done and how far it is; returns false to stop. From any thread.
using FitProgress = std::function<bool(std::size_t done, std::size_t total)>;

/// Deterministic: the same trace and options (threads apart) give the same set. kInvalid: the trace cannot
/// carry the fit (too few requests, clusters, ranks); kCancelled; kResourceExhausted.
Result<FitResult> fit_centroids(const signature::Trace& trace, const FitOptions& options, FitBackend& backend,
                                const Clock& clock, const FitProgress& progress);

}  // namespace eldr::calibrator
