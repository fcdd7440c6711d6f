// SPDX-License-Identifier: Apache-2.0
// solve_capacitated_assignment of assignment.h: successive shortest paths (Ahuja, Magnanti and Orlin,
// "Network Flows", section 9.7) over a graph whose nodes are the K clusters. The edge k -> l stands for the
// cheapest move of one of k's points to l.
#include <algorithm>
#include <limits>
#include <string>

#include "lib/signature/assignment.h"

namespace eldr::signature {
namespace {

using RowMatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// For every ordered pair of clusters (k, l): which of k's points costs least to move to l; ties go to the
/// lowest point number. A point that joins is compared with the cheapest moves of its cluster, K numbers that
/// lie together; when one leaves, only the moves that were its own are looked for again among the points that
/// stay.
class CheapestMoves {
 public:
  explicit CheapestMoves(const RowMatrixD& cost)
      : cost_(cost),
        clusters_(static_cast<std::size_t>(cost.cols())),
        members_(clusters_),
        place_(static_cast<std::size_t>(cost.rows()), 0),
        cheapest_(clusters_ * clusters_, kInfinity),
        point_(clusters_ * clusters_, -1) {}

  /// Costs of the cheapest moves from cluster k to each cluster, infinite where there is none.
  const double* costs_from(std::size_t k) const { return cheapest_.data() + k * clusters_; }
  /// The point that makes the cheapest move; there must be one.
  std::int32_t point(std::size_t k, std::size_t l) const { return point_[k * clusters_ + l]; }

  void join(std::int32_t point, std::size_t k) {
    place_[static_cast<std::size_t>(point)] = members_[k].size();
    members_[k].push_back(point);
    const double* const cost = cost_.row(point).data();
    for (std::size_t l = 0; l < clusters_; ++l) offer(k, l, cost[l] - cost[k], point);
  }

  void leave(std::int32_t point, std::size_t k) {
    const std::size_t place = place_[static_cast<std::size_t>(point)];
    const std::int32_t last = members_[k].back();
    members_[k][place] = last;
    place_[static_cast<std::size_t>(last)] = place;
    members_[k].pop_back();

    orphans_.clear();
    for (std::size_t l = 0; l < clusters_; ++l) {
      if (point_[k * clusters_ + l] != point) continue;
      orphans_.push_back(l);
      cheapest_[k * clusters_ + l] = kInfinity;
      point_[k * clusters_ + l] = -1;
    }
    if (orphans_.empty()) return;
    for (const std::int32_t member : members_[k]) {
      const double* const cost = cost_.row(member).data();
      for (const std::size_t l : orphans_) offer(k, l, cost[l] - cost[k], member);
    }
  }

 private:
  void offer(std::size_t k, std::size_t l, double cost, std::int32_t point) {
    double& cheapest = cheapest_[k * clusters_ + l];
    std::int32_t& who = point_[k * clusters_ + l];
    if (cost > cheapest || (cost == cheapest && point > who)) return;
    cheapest = cost;
    who = point;
  }

  const RowMatrixD& cost_;
  std::size_t clusters_;
  std::vector<std::vector<std::int32_t>> members_;  ///< [K] points of each cluster, in any order
  std::vector<std::size_t> place_;                  ///< [N] where a point stands among its cluster's
  std::vector<double> cheapest_;                    ///< [K][K]
  std::vector<std::int32_t> point_;                 ///< [K][K]
  std::vector<std::size_t> orphans_;  ///< clusters to which the point that left had the cheapest move
};

/// Every point at its cheapest cluster is the optimum without capacities; each augmentation takes one point
/// off a cluster that has too many and keeps the assignment the optimum among those with the same cluster
/// sizes.
class CapacitatedAssignment {
 public:
  CapacitatedAssignment(const Eigen::MatrixXd& cost, std::int32_t capacity)
      : cost_(cost),
        capacity_(capacity),
        clusters_(static_cast<std::size_t>(cost.cols())),
        cluster_of_(static_cast<std::size_t>(cost.rows())),
        size_(clusters_, 0),
        potential_(clusters_, 0.0),
        moves_(cost_) {}

  std::vector<std::int32_t> solve() {
    start_at_cheapest();
    for (std::size_t k = 0; k < clusters_; ++k) {
      while (size_[k] > capacity_) shift(k, nearest_with_room(k));
    }
    return cluster_of_;
  }

 private:
  void start_at_cheapest() {
    for (std::size_t point = 0; point < cluster_of_.size(); ++point) {
      Eigen::Index cheapest = 0;
      cost_.row(static_cast<Eigen::Index>(point)).minCoeff(&cheapest);
      cluster_of_[point] = static_cast<std::int32_t>(cheapest);
      ++size_[static_cast<std::size_t>(cheapest)];
      moves_.join(static_cast<std::int32_t>(point), static_cast<std::size_t>(cheapest));
    }
  }

  /// Dijkstra from `source` over reduced costs, up to the nearest cluster with room. Leaves the path in
  /// before_.
  std::size_t nearest_with_room(std::size_t source) {
    distance_.assign(clusters_, kInfinity);
    before_.assign(clusters_, source);
    open_.clear();
    for (std::size_t k = 0; k < clusters_; ++k) {
      if (k != source) open_.push_back(k);
    }
    distance_[source] = 0;
    std::size_t settled = source;
    while (size_[settled] >= capacity_) {  // N <= K * capacity: some cluster has room
      const std::size_t place = relax_from(settled);
      settled = open_[place];
      open_[place] = open_.back();
      open_.pop_back();
    }
    update_potentials(distance_[settled]);
    return settled;
  }

  /// Shortens distances through `k`; the place in open_ of the cluster that is now nearest, one with room on
  /// a tie.
  std::size_t relax_from(std::size_t k) {
    const double* const costs = moves_.costs_from(k);
    const double base = distance_[k] + potential_[k];
    double lowest = kInfinity;
    std::size_t nearest = 0;
    for (std::size_t place = 0; place < open_.size(); ++place) {
      const std::size_t l = open_[place];
      // Reduced costs are never negative but for rounding.
      const double through = std::max(distance_[k], base + costs[l] - potential_[l]);
      if (through < distance_[l]) {
        distance_[l] = through;
        before_[l] = k;
      }
      if (distance_[l] < lowest || (distance_[l] == lowest && size_[l] < capacity_)) {
        lowest = distance_[l];
        nearest = place;
      }
    }
    return nearest;
  }

  void update_potentials(double reached) {
    for (std::size_t k = 0; k < clusters_; ++k) potential_[k] += std::min(distance_[k], reached);
  }

  /// Moves one point along each edge of the path from `source` to `sink`.
  void shift(std::size_t source, std::size_t sink) {
    // All points are chosen before any of them moves.
    path_.clear();
    for (std::size_t l = sink; l != source; l = before_[l]) {
      path_.push_back({moves_.point(before_[l], l), before_[l], l});
    }
    for (const Step& step : path_) {
      cluster_of_[static_cast<std::size_t>(step.point)] = static_cast<std::int32_t>(step.to);
      moves_.leave(step.point, step.from);
      moves_.join(step.point, step.to);
    }
    --size_[source];
    ++size_[sink];
  }

  struct Step {
    std::int32_t point;
    std::size_t from, to;
  };

  RowMatrixD cost_;  ///< rows in a piece: a point's costs are read together
  std::int32_t capacity_;
  std::size_t clusters_;
  std::vector<std::int32_t> cluster_of_;
  std::vector<std::int32_t> size_;
  std::vector<double> potential_;
  CheapestMoves moves_;
  std::vector<double> distance_;
  std::vector<std::size_t> before_;
  std::vector<std::size_t> open_;
  std::vector<Step> path_;
};

}  // namespace

Result<std::vector<std::int32_t>> solve_capacitated_assignment(const Eigen::MatrixXd& cost,
                                                               std::int32_t capacity) {
  if (cost.rows() > 0 && (capacity < 1 || cost.rows() > cost.cols() * static_cast<Eigen::Index>(capacity))) {
    return failure(Code::kInvalid, "assignment of " + std::to_string(cost.rows()) + " points to " +
                                       std::to_string(cost.cols()) + " clusters of " +
                                       std::to_string(capacity) + ": there is no room for all");
  }
  if (const Status finite = check_costs(cost); !finite) return failure(finite.error());
  if (cost.rows() == 0) return std::vector<std::int32_t>{};
  return CapacitatedAssignment(cost, capacity).solve();
}

}  // namespace eldr::signature
