// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/placement.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace eldr::calibrator {
namespace {

std::vector<double> rank_sums(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                              std::uint32_t ranks) {
  std::vector<double> sums(ranks, 0.0);
  for (std::size_t e = 0; e < activities.size(); ++e) {
    sums[static_cast<std::size_t>(rank_of[e])] += activities[e];
  }
  return sums;
}

/// The swap of an expert of the fullest rank with one elsewhere that leaves the lower maximum of the two.
/// False: none helps.
bool improve_by_swap(std::span<const double> activities, std::vector<std::int16_t>& rank_of,
                     std::vector<double>& sums) {
  constexpr double kSmallestGain = 1e-12;
  const auto fullest = static_cast<std::int16_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
  double best = sums[static_cast<std::size_t>(fullest)] - kSmallestGain;
  std::size_t give = activities.size();
  std::size_t take = activities.size();
  for (std::size_t a = 0; a < activities.size(); ++a) {
    if (rank_of[a] != fullest) {
      continue;
    }
    for (std::size_t b = 0; b < activities.size(); ++b) {
      if (rank_of[b] == fullest || activities[b] >= activities[a]) {
        continue;
      }
      const double moved = activities[a] - activities[b];
      const double after = std::max(sums[static_cast<std::size_t>(fullest)] - moved,
                                    sums[static_cast<std::size_t>(rank_of[b])] + moved);
      if (after < best) {
        best = after;
        give = a;
        take = b;
      }
    }
  }
  if (give == activities.size()) {
    return false;
  }
  const double moved = activities[give] - activities[take];
  sums[static_cast<std::size_t>(rank_of[give])] -= moved;
  sums[static_cast<std::size_t>(rank_of[take])] += moved;
  std::swap(rank_of[give], rank_of[take]);
  return true;
}

}  // namespace

double activity(double probability, double batch) {
  return 1.0 - std::pow(1.0 - std::clamp(probability, 0.0, 1.0), batch);
}

Result<std::vector<std::int16_t>> place_experts(std::span<const double> activities, std::uint32_t ranks) {
  if (ranks == 0 || ranks > 32767 || activities.size() % ranks != 0) {
    return failure(Code::kInvalid, "expert-parallel ranks: " + std::to_string(ranks) +
                                       "; must divide the number of experts, " +
                                       std::to_string(activities.size()));
  }
  const std::size_t slots = activities.size() / ranks;
  std::vector<std::size_t> by_activity(activities.size());
  std::iota(by_activity.begin(), by_activity.end(), std::size_t{0});
  std::stable_sort(by_activity.begin(), by_activity.end(),
                   [&](std::size_t a, std::size_t b) { return activities[a] > activities[b]; });
  std::vector<std::int16_t> rank_of(activities.size(), 0);
  std::vector<double> sums(ranks, 0.0);
  std::vector<std::size_t> used(ranks, 0);
  for (const std::size_t expert : by_activity) {
    std::size_t target = ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (used[rank] < slots && (target == ranks || sums[rank] < sums[target])) {
        target = rank;
      }
    }
    rank_of[expert] = static_cast<std::int16_t>(target);
    sums[target] += activities[expert];
    ++used[target];
  }
  for (std::size_t swaps = 0; swaps < 4 * activities.size(); ++swaps) {
    if (!improve_by_swap(activities, rank_of, sums)) {
      break;
    }
  }
  return rank_of;
}

double fullest_rank(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                    std::uint32_t ranks) {
  const std::vector<double> sums = rank_sums(activities, rank_of, ranks);
  return *std::max_element(sums.begin(), sums.end());
}

}  // namespace eldr::calibrator
