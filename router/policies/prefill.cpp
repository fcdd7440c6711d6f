// SPDX-License-Identifier: Apache-2.0
#include "router/policies/prefill.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <xxhash.h>

namespace eldr::router {

std::size_t PrefixHash::choose(std::span<const PrefillCandidate> candidates, std::string_view prompt,
                               std::uint64_t) const {
  const auto key = XXH3_64bits(prompt.data(), std::min(prompt.size(), prefix_bytes_));
  std::uint64_t total = 0;
  for (const auto& candidate : candidates) total += candidate.in_flight;
  const double mean = static_cast<double>(total + 1) / static_cast<double>(candidates.size());
  const auto share = std::max<std::uint64_t>(kFloor, static_cast<std::uint64_t>(std::ceil(kSlack * mean)));
  // The least loaded worker is never over its share, so one is always found.
  std::size_t best = candidates.size();
  std::uint64_t best_weight = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].in_flight >= share) continue;
    const auto weight = mix(key ^ candidates[i].id_hash);
    if (best == candidates.size() || weight > best_weight) {
      best = i;
      best_weight = weight;
    }
  }
  return best == candidates.size() ? 0 : best;
}

std::size_t PrefillByLoad::choose(std::span<const PrefillCandidate> candidates, std::string_view,
                                  std::uint64_t draw) const {
  std::vector<signature::Candidate> loads;
  loads.reserve(candidates.size());
  for (const auto& candidate : candidates) loads.push_back({std::nullopt, candidate.in_flight});
  return policy_->choose(loads, draw).index;
}

}  // namespace eldr::router
