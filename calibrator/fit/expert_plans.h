// SPDX-License-Identifier: Apache-2.0
// Placements of the experts of every layer for every cluster, and what they are worth.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/status.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

struct ExpertPlanOptions {
  std::uint32_t clusters = 1;
  std::uint32_t ranks = 1;
  double batch = 32;  ///< tokens of a decode step
  unsigned threads = 1;
};

/// Largest expected number of active experts on a rank, by placement of one layer for one cluster.
struct FullestRank {
  double planned = 0;
  double identity = 0;        ///< experts in their own order
  double token_balanced = 0;  ///< the same search with tokens instead of active experts
  double bound = 0;           ///< nothing is below
};

struct ExpertPlans {
  std::uint32_t ranks = 1;
  double batch = 0;
  std::size_t layers = 0;             ///< L: all of the trace
  std::size_t experts = 0;            ///< E
  std::vector<std::int16_t> rank_of;  ///< [K][L][E]
  std::vector<FullestRank> fullest;   ///< [K][L]

  std::size_t clusters() const { return fullest.size() / layers; }
  std::span<const std::int16_t> plan(std::size_t cluster, std::size_t layer) const;  ///< [E]
  /// Mean over clusters and layers: a step goes through all layers.
  FullestRank mean() const;
};

/// For a decode batch of each cluster's requests: every request weighs the same, however much it decoded, and
/// gives one token at a time. `assignment` [N] is each request's cluster; requests without decode tokens say
/// nothing. kInvalid: ranks that do not divide the experts. Deterministic on any number of threads.
Result<ExpertPlans> plan_experts(const signature::Trace& trace, std::span<const std::uint32_t> assignment,
                                 const ExpertPlanOptions& options);

/// Probability that a decode token of one cluster's requests uses each expert of a layer [E].
std::vector<double> expert_probabilities(const signature::Trace& trace,
                                         std::span<const std::uint32_t> assignment, std::uint32_t cluster,
                                         std::size_t layer);

}  // namespace eldr::calibrator
