// SPDX-License-Identifier: Apache-2.0
// Which expert lives on which expert-parallel rank of a decode worker.
//
// A decode step waits for its slowest rank, and a rank's time follows the number of *distinct* experts that
// are active on it, not the tokens. An expert that a token of this cluster uses with probability p is active
// in a batch of B tokens with probability 1 - (1 - p)^B, so a rank's expected number of active experts is the
// sum of those. A plan gives each of R ranks E / R experts and keeps the largest sum small: number
// partitioning into R sets of equal size, which is NP-hard, so it is solved nearly always and bounded always.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/status.h"

namespace eldr::calibrator {

/// Probability that an expert with token probability p is active in a batch of that many tokens.
double activity(double probability, double batch);

/// kInvalid: the ranks do not divide the experts, or are none or too many to be told apart.
Status check_ranks(std::size_t experts, std::uint32_t ranks);

/// Rank of each expert [E]. Greedy, then swaps; then, until the bound below is met within 0.1 %, the best
/// splits of two ranks at a time and branch and bound with a limit on its work. Fails as
/// check_ranks does. Deterministic.
Result<std::vector<std::int16_t>> place_experts(std::span<const double> activities, std::uint32_t ranks);

/// As engines do without a plan: the first E / R experts on rank 0, the next on rank 1 …
std::vector<std::int16_t> identity_placement(std::size_t experts, std::uint32_t ranks);

/// Largest sum of activities on a rank.
double fullest_rank(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                    std::uint32_t ranks);

/// No plan has a fullest rank below this. The largest of: an even share; and, for each k, what some rank must
/// hold because it holds k + 1 of the k R + 1 most active experts (pigeonhole) and E / R in all.
double fullest_rank_bound(std::span<const double> activities, std::uint32_t ranks);

}  // namespace eldr::calibrator
