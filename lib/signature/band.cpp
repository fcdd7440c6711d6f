// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/band.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace eldr::signature {
namespace {

/// Rounding can leave a cosine a little outside [-1, 1], where tau = 2 would no longer cover every candidate.
float cosine_of(const Candidate& candidate) { return std::clamp(*candidate.similarity, -1.0F, 1.0F); }

/// Ranks a candidate without a similarity behind every one that has one.
float rank_of(const Candidate& candidate) {
  return candidate.similarity ? cosine_of(candidate) : -std::numeric_limits<float>::infinity();
}

/// The best of `count` choices by `better(a, b)`; where several are best, `tie_break` picks one of them
/// evenly.
template <class Better>
std::size_t best_of(std::size_t count, std::uint64_t tie_break, const Better& better) {
  std::size_t best = 0;
  std::size_t ties = 1;
  for (std::size_t i = 1; i < count; ++i) {
    if (better(i, best)) {
      best = i;
      ties = 1;
    } else if (!better(best, i)) {
      ++ties;
    }
  }
  std::size_t skip = static_cast<std::size_t>(tie_break % ties);
  for (std::size_t i = best; skip > 0; --skip) {
    do ++i;
    while (better(best, i));
    best = i;
  }
  return best;
}

}  // namespace

std::vector<std::size_t> locality_band(std::span<const Candidate> candidates, float tau) {
  float best = -std::numeric_limits<float>::infinity();
  for (const Candidate& candidate : candidates) best = std::max(best, rank_of(candidate));
  std::vector<std::size_t> band;
  band.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].similarity || cosine_of(candidates[i]) >= best - tau) band.push_back(i);
  }
  return band;
}

std::size_t least_loaded(std::span<const Candidate> candidates, std::span<const std::size_t> band,
                         std::uint64_t tie_break) {
  assert(!band.empty());
  const auto better = [&](std::size_t a, std::size_t b) {
    const Candidate& left = candidates[band[a]];
    const Candidate& right = candidates[band[b]];
    if (left.in_flight != right.in_flight) return left.in_flight < right.in_flight;
    return rank_of(left) > rank_of(right);
  };
  return band[best_of(band.size(), tie_break, better)];
}

std::size_t load_aware_choice(std::span<const Candidate> candidates, float beta_sigma,
                              std::uint64_t tie_break) {
  assert(!candidates.empty());
  double total_load = 0;
  double total_similarity = 0;
  std::size_t similar = 0;
  for (const Candidate& candidate : candidates) {
    total_load += candidate.in_flight;
    if (!candidate.similarity) continue;
    total_similarity += cosine_of(candidate);
    ++similar;
  }
  const double mean_load = total_load / static_cast<double>(candidates.size());
  const double mean_similarity = similar == 0 ? 0 : total_similarity / static_cast<double>(similar);
  const auto score = [&](std::size_t i) {
    const Candidate& candidate = candidates[i];
    const double similarity = candidate.similarity ? cosine_of(candidate) : mean_similarity;
    return similarity - beta_sigma * (candidate.in_flight - mean_load) / (mean_load + 1);
  };
  return best_of(candidates.size(), tie_break,
                 [&](std::size_t a, std::size_t b) { return score(a) > score(b); });
}

}  // namespace eldr::signature
