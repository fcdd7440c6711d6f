// SPDX-License-Identifier: Apache-2.0
// Choosing among decode workers by similarity and load: the paper's locality band and the load-aware band.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace eldr::signature {

/// One decode worker as a policy sees it.
struct Candidate {
  std::optional<float>
      similarity;  ///< cosine with its cluster's centroid; nullopt: no cluster, it is chosen by load alone
  std::uint32_t in_flight = 0;  ///< decode requests it has now
};

/// Indices of { k : sim_k >= max sim - tau }, and of every candidate without a similarity (it may be new:
/// load alone decides). With no similarity anywhere: all candidates. `tau` in [0, 2]: 0 is pure top-1, 1
/// nearly and 2 exactly join-shortest-queue.
std::vector<std::size_t> locality_band(std::span<const Candidate> candidates, float tau);

/// The index in `band` with the fewest in flight; ties: the higher similarity, then `tie_break` (any number)
/// spreads evenly. `band` must not be empty.
std::size_t least_loaded(std::span<const Candidate> candidates, std::span<const std::size_t> band,
                         std::uint64_t tie_break);

/// argmax_k [ sim_k - beta_sigma * (n_k - mean n) / (mean n + 1) ]; a candidate without a similarity counts
/// with the mean similarity of the others. `beta_sigma` = loadWeight * spread. `candidates` must not be
/// empty.
std::size_t load_aware_choice(std::span<const Candidate> candidates, float beta_sigma,
                              std::uint64_t tie_break);

/// beta of LoadAwareBand where the policy does not say: found by simulation, equals weight 1 at spread 0.35.
inline constexpr float kDefaultLoadWeight = 2.9F;

}  // namespace eldr::signature
