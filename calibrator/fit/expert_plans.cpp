// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/expert_plans.h"

#include <algorithm>

#include "calibrator/fit/parallel.h"
#include "calibrator/fit/placement.h"

namespace eldr::calibrator {

std::vector<double> expert_probabilities(const signature::Trace& trace,
                                         std::span<const std::uint32_t> assignment, std::uint32_t cluster,
                                         std::size_t layer) {
  std::vector<double> probability(trace.experts, 0.0);
  std::size_t members = 0;
  for (std::size_t request = 0; request < assignment.size(); ++request) {
    if (assignment[request] != cluster || trace.decode_tokens[request] == 0) {
      continue;
    }
    ++members;
    const auto counts = trace.decode(request).subspan(layer * trace.experts, trace.experts);
    for (std::size_t expert = 0; expert < counts.size(); ++expert) {
      probability[expert] += static_cast<double>(counts[expert]) / trace.decode_tokens[request];
    }
  }
  for (double& p : probability) {
    p /= static_cast<double>(std::max<std::size_t>(members, 1));
  }
  return probability;
}

Result<ExpertPlans> plan_experts(const signature::Trace& trace, std::span<const std::uint32_t> assignment,
                                 const ExpertPlanOptions& options) {
  if (const Status good = check_ranks(trace.experts, options.ranks); !good) {
    return failure(good.error());
  }
  ExpertPlans plans{.ranks = options.ranks,
                    .batch = options.batch,
                    .layers = trace.layers.size(),
                    .experts = trace.experts,
                    .rank_of = {},
                    .fullest = {}};
  plans.fullest.resize(options.clusters * plans.layers);
  plans.rank_of.resize(plans.fullest.size() * plans.experts);
  const auto identity = identity_placement(trace.experts, options.ranks);
  parallel_for(plans.fullest.size(), options.threads, [&](std::size_t task, unsigned) {
    const auto cluster = static_cast<std::uint32_t>(task / plans.layers);
    const auto tokens = expert_probabilities(trace, assignment, cluster, task % plans.layers);
    std::vector<double> active;
    for (const double probability : tokens) {
      active.push_back(activity(probability, options.batch));
    }
    const auto planned = place_experts(active, options.ranks).value();  // the ranks divide the experts
    const auto by_tokens = place_experts(tokens, options.ranks).value();
    std::copy(planned.begin(), planned.end(),
              plans.rank_of.begin() + static_cast<std::ptrdiff_t>(task * plans.experts));
    plans.fullest[task] = {.planned = fullest_rank(active, planned, options.ranks),
                           .identity = fullest_rank(active, identity, options.ranks),
                           .token_balanced = fullest_rank(active, by_tokens, options.ranks),
                           .bound = fullest_rank_bound(active, options.ranks)};
  });
  return plans;
}

std::span<const std::int16_t> ExpertPlans::plan(std::size_t cluster, std::size_t layer) const {
  return std::span(rank_of).subspan((cluster * layers + layer) * experts, experts);
}

FullestRank ExpertPlans::mean() const {
  FullestRank mean;
  const double weight = 1.0 / static_cast<double>(std::max<std::size_t>(fullest.size(), 1));
  for (const FullestRank& one : fullest) {
    mean.planned += weight * one.planned;
    mean.identity += weight * one.identity;
    mean.token_balanced += weight * one.token_balanced;
    mean.bound += weight * one.bound;
  }
  return mean;
}

}  // namespace eldr::calibrator
