// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/placement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "calibrator/fit/placement_search.h"

namespace eldr::calibrator {
namespace {

/// A fullest rank this near to the bound is not worth more search.
constexpr double kGoodEnough = 1.001;
/// Some milliseconds for the largest models.
constexpr std::size_t kMostNodes = 20'000;

/// From the most active expert down, each to the rank with the least activity and a free slot (Graham's LPT
/// rule with equal slots).
std::vector<std::int16_t> greedy(std::span<const double> activities, std::uint32_t ranks) {
  const std::size_t slots = activities.size() / ranks;
  std::vector<std::int16_t> rank_of(activities.size(), 0);
  std::vector<double> sums(ranks, 0.0);
  std::vector<std::size_t> used(ranks, 0);
  for (const std::size_t expert : by_activity(activities)) {
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
  return rank_of;
}

}  // namespace

double activity(double probability, double batch) {
  return 1.0 - std::pow(1.0 - std::clamp(probability, 0.0, 1.0), batch);
}

Status check_ranks(std::size_t experts, std::uint32_t ranks) {
  if (ranks == 0 || ranks > 32767 || experts == 0 || experts % ranks != 0) {
    return failure(Code::kInvalid, "expert-parallel ranks: " + std::to_string(ranks) +
                                       "; must divide the number of experts, " + std::to_string(experts));
  }
  return {};
}

Result<std::vector<std::int16_t>> place_experts(std::span<const double> activities, std::uint32_t ranks) {
  if (const Status good = check_ranks(activities.size(), ranks); !good) {
    return failure(good.error());
  }
  PlacementSearch search(activities, greedy(activities, ranks), ranks);
  const double target = kGoodEnough * fullest_rank_bound(activities, ranks);
  while (search.swap_two() || (search.fullest() > target && search.split_two_ranks())) {
  }
  if (search.fullest() > target) {
    search.branch_and_bound(kMostNodes);
  }
  return search.plan();
}

std::vector<std::int16_t> identity_placement(std::size_t experts, std::uint32_t ranks) {
  std::vector<std::int16_t> rank_of(experts);
  for (std::size_t expert = 0; expert < experts; ++expert) {
    rank_of[expert] = static_cast<std::int16_t>(expert * ranks / experts);
  }
  return rank_of;
}

double fullest_rank(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                    std::uint32_t ranks) {
  const std::vector<double> sums = rank_sums(activities, rank_of, ranks);
  return *std::max_element(sums.begin(), sums.end());
}

double fullest_rank_bound(std::span<const double> activities, std::uint32_t ranks) {
  std::vector<double> sorted(activities.begin(), activities.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const std::size_t slots = sorted.size() / ranks;
  const auto sum = [&](std::size_t first, std::size_t count) {
    const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(first);
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(count), 0.0);
  };
  double bound = sum(0, sorted.size()) / ranks;
  for (std::size_t k = 0; k < slots; ++k) {
    // At least the k + 1 least active of the k R + 1 most active, and the least active of all beside them.
    const std::size_t others = slots - k - 1;
    bound = std::max(bound, sum(k * ranks - k, k + 1) + sum(sorted.size() - others, others));
  }
  return bound;
}

}  // namespace eldr::calibrator
