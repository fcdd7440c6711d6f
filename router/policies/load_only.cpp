// SPDX-License-Identifier: Apache-2.0
#include "router/policies/load_only.h"

namespace eldr::router {

Choice JoinShortestQueue::choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const {
  std::size_t best = 0;
  std::size_t ties = 1;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (candidates[i].in_flight < candidates[best].in_flight) {
      best = i;
      ties = 1;
    } else if (candidates[i].in_flight == candidates[best].in_flight) {
      ++ties;
    }
  }
  std::size_t skip = draw % ties;
  const auto least = candidates[best].in_flight;
  for (std::size_t i = best; i < candidates.size(); ++i) {
    if (candidates[i].in_flight != least) continue;
    if (skip-- == 0) return {i, candidates.size()};
  }
  return {best, candidates.size()};
}

Choice PowerOfTwoChoices::choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const {
  const auto count = candidates.size();
  if (count == 1) return {0, 1};
  const auto one = draw % count;
  const auto other = (one + 1 + mix(draw) % (count - 1)) % count;
  return {candidates[other].in_flight < candidates[one].in_flight ? other : one, 2};
}

Choice RoundRobin::choose(std::span<const signature::Candidate> candidates, std::uint64_t) const {
  return {next_.fetch_add(1, std::memory_order_relaxed) % candidates.size(), candidates.size()};
}

Choice Random::choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const {
  return {draw % candidates.size(), candidates.size()};
}

}  // namespace eldr::router
