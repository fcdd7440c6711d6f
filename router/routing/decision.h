// SPDX-License-Identifier: Apache-2.0
// From a prefill answer to a decode worker: counts -> signature -> similarities -> policy. Whatever is wrong
// with the counts, there is a decision: by load, with the reason.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/signature/counts.h"
#include "router/routing/reason.h"
#include "router/routing/routing.h"
#include "router/workers/registry.h"

namespace eldr::router {

/// What is known of a request when its decode worker is chosen.
struct Signal {
  Reason reason = Reason::kNoCounts;
  Eigen::VectorXf similarities;  ///< with each centroid row; empty unless reason is kSignature
  std::string problem;           ///< for people, where the counts were refused
};

/// `eldr` is the raw bytes of the answer's key, if it had one.
Signal read_signal(const Routing& routing, const std::optional<std::string>& eldr);
/// The same from counts already decoded.
Signal signal_of(const Routing& routing, const signature::ExpertCounts& counts);

/// A chosen worker and what to tell about the choice.
struct Decision {
  WorkerPtr worker;  ///< null: there is none left to try
  std::optional<std::int32_t> cluster;
  std::optional<float> similarity;  ///< of the chosen worker
  std::optional<float> best;        ///< the best of the candidates
  std::size_t band = 0;
  std::size_t candidates = 0;
  bool failed_open = false;  ///< every worker was ejected: chosen among all of them
};

/// One row of what choose_decode saw, for people who ask why.
struct CandidateView {
  std::string worker;
  std::optional<std::int32_t> cluster;
  std::optional<float> similarity;
  std::uint32_t in_flight = 0;
};

/// `tried` are not chosen again. `seen`, if given, receives the candidates in order.
Decision choose_decode(const Routing& routing, const WorkerSet& workers, const Signal& signal,
                       std::span<const WorkerPtr> tried, Clock::Steady now, std::uint64_t draw,
                       std::vector<CandidateView>* seen = nullptr);

struct PrefillDecision {
  WorkerPtr worker;
  bool failed_open = false;
};
PrefillDecision choose_prefill(const Routing& routing, const WorkerSet& workers, std::string_view prompt,
                               std::span<const WorkerPtr> tried, Clock::Steady now, std::uint64_t draw);

}  // namespace eldr::router
