// SPDX-License-Identifier: Apache-2.0
// Which expert lives on which expert-parallel rank, one plan for each cluster and layer.
//
// A decode step waits for its slowest rank, and a rank's time follows the number of *distinct* experts that
// are active on it, not the tokens. An expert that a token of this cluster uses with probability p is active
// in a batch of B tokens with probability 1 - (1 - p)^B, so a rank's expected number of active experts is the
// sum of those. The plan gives each rank E / R experts and keeps the largest sum small.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/status.h"

namespace eldr::calibrator {

/// Probability that an expert with token probability p is active in a batch of that many tokens.
double activity(double probability, double batch);

/// Rank of each expert. Experts from the most active down go to the rank with the least activity and a free
/// slot (Graham's LPT rule with equal slots); then pairs of experts are swapped between the fullest rank and
/// others while that lowers the fullest. `ranks` divides the number of experts (kInvalid otherwise).
/// Deterministic.
Result<std::vector<std::int16_t>> place_experts(std::span<const double> activities, std::uint32_t ranks);

/// Largest sum of activities on a rank.
double fullest_rank(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                    std::uint32_t ranks);

}  // namespace eldr::calibrator
