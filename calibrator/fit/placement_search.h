// SPDX-License-Identifier: Apache-2.0
// Makes a placement better, step by step. Internal to calibrator/fit/placement.cpp; apart for its tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace eldr::calibrator {

/// Experts from the most active down; of equals the lower number first.
std::vector<std::size_t> by_activity(std::span<const double> activities);
/// What each rank holds under a plan.
std::vector<double> rank_sums(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                              std::uint32_t ranks);

/// A plan with equal slots that only gets better: no step raises the fullest rank. Deterministic.
/// `activities` must outlive it.
class PlacementSearch {
 public:
  PlacementSearch(std::span<const double> activities, std::vector<std::int16_t> plan, std::uint32_t ranks);

  const std::vector<std::int16_t>& plan() const { return rank_of_; }
  double fullest() const;

  /// The swap of an expert of the fullest rank with one elsewhere that leaves the lowest maximum of the two.
  /// False: none helps.
  bool swap_two();
  /// Divides the experts of the fullest rank and of one other anew, in the best way there is. False: no other
  /// rank helps, or a rank has too many experts (over 8) to try all ways.
  bool split_two_ranks();
  /// Looks through all plans, leaving out those that cannot be better, and keeps the best. True: it came to
  /// the end, and the plan is optimal; false: it stopped after that many nodes.
  bool branch_and_bound(std::size_t most_nodes);

 private:
  void adopt(std::vector<std::int16_t> plan);
  std::size_t fullest_index() const;

  std::span<const double> activities_;
  std::vector<std::int16_t> rank_of_;
  std::vector<double> sums_;
};

}  // namespace eldr::calibrator
