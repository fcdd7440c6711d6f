// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/placement_search.h"

#include <algorithm>
#include <cmath>

#include "calibrator/fit/indices.h"

namespace eldr::calibrator {
namespace {

/// Less than that is rounding, not a gain.
constexpr double kSmallestGain = 1e-12;
/// C(15, 7) = 6,435 ways to divide the experts of two ranks.
constexpr std::size_t kMostSlotsToSplit = 8;

/// The half of some experts, `experts[0]` in it, whose activity is nearest to half of the whole.
class BestHalf {
 public:
  BestHalf(std::span<const double> activities, std::span<const std::size_t> experts)
      : activities_(activities), experts_(experts), slots_(experts.size() / 2) {
    for (const std::size_t expert : experts) {
      half_ += activities[expert] / 2;
    }
    chosen_.push_back(experts[0]);
    choose(1, activities[experts[0]]);
  }
  const std::vector<std::size_t>& experts() const { return best_; }
  /// Activity of the fuller half.
  double fuller() const { return half_ + distance_; }

 private:
  void choose(std::size_t next, double sum) {
    if (chosen_.size() == slots_) {
      if (best_.empty() || std::abs(sum - half_) < distance_) {
        distance_ = std::abs(sum - half_);
        best_ = chosen_;
      }
      return;
    }
    for (; experts_.size() - next >= slots_ - chosen_.size(); ++next) {
      chosen_.push_back(experts_[next]);
      choose(next + 1, sum + activities_[experts_[next]]);
      chosen_.pop_back();
    }
  }

  std::span<const double> activities_;
  std::span<const std::size_t> experts_;
  std::size_t slots_;
  double half_ = 0;
  double distance_ = 0;
  std::vector<std::size_t> chosen_;
  std::vector<std::size_t> best_;
};

/// Depth first over experts from the most active down, each tried on the emptier ranks first.
class BranchAndBound {
 public:
  BranchAndBound(std::span<const double> activities, std::uint32_t ranks, double fullest,
                 std::size_t most_nodes)
      : activities_(activities),
        slots_(activities.size() / ranks),
        order_(by_activity(activities)),
        sums_(ranks, 0.0),
        used_(ranks, 0),
        plan_(activities.size(), 0),
        fullest_(fullest),
        nodes_left_(most_nodes) {
    least_.push_back(0.0);
    for (std::size_t count = 1; count <= slots_; ++count) {
      least_.push_back(least_.back() + activities[order_[order_.size() - count]]);
    }
    place(0);
  }
  bool finished() const { return nodes_left_ > 0; }
  /// Empty: nothing better than what there was.
  const std::vector<std::int16_t>& best() const { return best_; }

 private:
  /// What the rank holds in the end at least: its other slots get the least active experts.
  double at_least(std::size_t rank) const { return sums_[rank] + least_[slots_ - used_[rank]]; }

  void place(std::size_t index) {
    if (nodes_left_ == 0 || --nodes_left_ == 0) {
      return;
    }
    if (index == order_.size()) {
      fullest_ = *std::max_element(sums_.begin(), sums_.end());
      best_ = plan_;
      return;
    }
    const double own = activities_[order_[index]];
    for (const std::size_t rank : candidates()) {
      sums_[rank] += own;
      ++used_[rank];
      if (at_least(rank) < fullest_ - kSmallestGain) {
        plan_[order_[index]] = static_cast<std::int16_t>(rank);
        place(index + 1);
      }
      --used_[rank];
      sums_[rank] -= own;
    }
  }

  /// Ranks with a free slot, the emptiest first; of ranks that are alike, one.
  std::vector<std::size_t> candidates() const {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
      const bool alike = std::any_of(ranks.begin(), ranks.end(), [&](std::size_t other) {
        return sums_[other] == sums_[rank] && used_[other] == used_[rank];
      });
      if (used_[rank] < slots_ && !alike) {
        ranks.push_back(rank);
      }
    }
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](std::size_t a, std::size_t b) { return sums_[a] < sums_[b]; });
    return ranks;
  }

  std::span<const double> activities_;
  std::size_t slots_;
  std::vector<std::size_t> order_;
  std::vector<double> least_;  ///< [k]: sum of the k least active experts
  std::vector<double> sums_;
  std::vector<std::size_t> used_;
  std::vector<std::int16_t> plan_;
  std::vector<std::int16_t> best_;
  double fullest_;
  std::size_t nodes_left_;
};

}  // namespace

std::vector<std::size_t> by_activity(std::span<const double> activities) {
  std::vector<std::size_t> order = indices_below(activities.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return activities[a] > activities[b]; });
  return order;
}

std::vector<double> rank_sums(std::span<const double> activities, std::span<const std::int16_t> rank_of,
                              std::uint32_t ranks) {
  std::vector<double> sums(ranks, 0.0);
  for (std::size_t expert = 0; expert < activities.size(); ++expert) {
    sums[static_cast<std::size_t>(rank_of[expert])] += activities[expert];
  }
  return sums;
}

PlacementSearch::PlacementSearch(std::span<const double> activities, std::vector<std::int16_t> plan,
                                 std::uint32_t ranks)
    : activities_(activities), rank_of_(std::move(plan)), sums_(rank_sums(activities, rank_of_, ranks)) {}

void PlacementSearch::adopt(std::vector<std::int16_t> plan) {
  rank_of_ = std::move(plan);
  sums_ = rank_sums(activities_, rank_of_, static_cast<std::uint32_t>(sums_.size()));
}

std::size_t PlacementSearch::fullest_index() const {
  return static_cast<std::size_t>(std::max_element(sums_.begin(), sums_.end()) - sums_.begin());
}

double PlacementSearch::fullest() const { return sums_[fullest_index()]; }

bool PlacementSearch::swap_two() {
  const std::size_t fullest = fullest_index();
  double best = sums_[fullest] - kSmallestGain;
  std::size_t give = activities_.size();
  std::size_t take = activities_.size();
  for (std::size_t a = 0; a < activities_.size(); ++a) {
    if (static_cast<std::size_t>(rank_of_[a]) != fullest) {
      continue;
    }
    for (std::size_t b = 0; b < activities_.size(); ++b) {
      const auto other = static_cast<std::size_t>(rank_of_[b]);
      if (other == fullest || activities_[b] >= activities_[a]) {
        continue;
      }
      const double moved = activities_[a] - activities_[b];
      const double after = std::max(sums_[fullest] - moved, sums_[other] + moved);
      if (after < best) {
        best = after;
        give = a;
        take = b;
      }
    }
  }
  if (give == activities_.size()) {
    return false;
  }
  std::vector<std::int16_t> plan = rank_of_;
  std::swap(plan[give], plan[take]);
  adopt(std::move(plan));
  return true;
}

bool PlacementSearch::split_two_ranks() {
  if (activities_.size() / sums_.size() > kMostSlotsToSplit) {
    return false;
  }
  const std::size_t fullest = fullest_index();
  std::vector<std::size_t> others = indices_below(sums_.size());
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(fullest));
  std::stable_sort(others.begin(), others.end(),
                   [&](std::size_t a, std::size_t b) { return sums_[a] < sums_[b]; });
  for (const std::size_t other : others) {
    std::vector<std::size_t> experts;
    for (std::size_t expert = 0; expert < rank_of_.size(); ++expert) {
      const auto rank = static_cast<std::size_t>(rank_of_[expert]);
      if (rank == fullest || rank == other) {
        experts.push_back(expert);
      }
    }
    const BestHalf half(activities_, experts);
    if (half.fuller() < sums_[fullest] - kSmallestGain) {
      std::vector<std::int16_t> plan = rank_of_;
      for (const std::size_t expert : experts) {
        plan[expert] = static_cast<std::int16_t>(other);
      }
      for (const std::size_t expert : half.experts()) {
        plan[expert] = static_cast<std::int16_t>(fullest);
      }
      adopt(std::move(plan));
      return true;
    }
  }
  return false;
}

bool PlacementSearch::branch_and_bound(std::size_t most_nodes) {
  const BranchAndBound search(activities_, static_cast<std::uint32_t>(sums_.size()), fullest(), most_nodes);
  if (!search.best().empty()) {
    adopt(search.best());
  }
  return search.finished();
}

}  // namespace eldr::calibrator
