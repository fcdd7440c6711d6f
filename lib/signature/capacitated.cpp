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

/// For every ordered pair of clusters (k, l): which of k's points costs least to move to l. Heaps whose stale
/// entries (points that have left k) are dropped when they reach the top; the heaps of a cluster are built
/// when it is first asked for.
class CheapestMoves {
 public:
  CheapestMoves(const RowMatrixD& cost, const std::vector<std::int32_t>& cluster_of)
      : cost_(cost),
        cluster_of_(cluster_of),
        clusters_(static_cast<std::size_t>(cost.cols())),
        heaps_(clusters_ * clusters_),
        built_(clusters_, false),
        cheapest_(RowMatrixD::Constant(cost.cols(), cost.cols(), kInfinity)) {}

  /// Costs of the cheapest moves from cluster k to each cluster, infinite where there is none.
  const double* costs_from(std::size_t k) {
    if (!built_[k]) build(k);
    return cheapest_.row(static_cast<Eigen::Index>(k)).data();
  }
  /// The point that makes the cheapest move; there must be one.
  std::int32_t point(std::size_t k, std::size_t l) const { return heaps_[k * clusters_ + l].front().point; }

  /// `point` now belongs to cluster k.
  void joined(std::size_t k, std::int32_t point) {
    if (!built_[k]) return;
    if (entries_ > 2 * cluster_of_.size() * clusters_ + clusters_) {
      rebuild_all();  // stale entries have piled up: keeps memory O(N * K)
      return;
    }
    for (std::size_t l = 0; l < clusters_; ++l) {
      if (l == k) continue;
      Heap& heap = heaps_[k * clusters_ + l];
      heap.push_back(move_of(point, k, l));
      std::push_heap(heap.begin(), heap.end());
      ++entries_;
      note_cheapest(k, l);
    }
  }

  /// A point has left cluster k.
  void left(std::size_t k) {
    if (!built_[k]) return;
    for (std::size_t l = 0; l < clusters_; ++l) {
      if (l == k) continue;
      Heap& heap = heaps_[k * clusters_ + l];
      while (!heap.empty() && !belongs(heap.front().point, k)) {
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
        --entries_;
      }
      note_cheapest(k, l);
    }
  }

 private:
  struct Move {
    double cost;
    std::int32_t point;
    /// The standard heap keeps its largest element first: the cheapest move must be the largest; ties: the
    /// lowest point number.
    bool operator<(const Move& other) const {
      return cost != other.cost ? cost > other.cost : point > other.point;
    }
  };
  using Heap = std::vector<Move>;

  bool belongs(std::int32_t point, std::size_t k) const {
    return cluster_of_[static_cast<std::size_t>(point)] == static_cast<std::int32_t>(k);
  }
  Move move_of(std::int32_t point, std::size_t k, std::size_t l) const {
    const double* const row = cost_.row(point).data();
    return {row[l] - row[k], point};
  }
  void note_cheapest(std::size_t k, std::size_t l) {
    const Heap& heap = heaps_[k * clusters_ + l];
    cheapest_(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(l)) =
        heap.empty() ? kInfinity : heap.front().cost;
  }

  void build(std::size_t k) {
    std::vector<std::int32_t> members;
    for (std::size_t point = 0; point < cluster_of_.size(); ++point) {
      if (cluster_of_[point] == static_cast<std::int32_t>(k))
        members.push_back(static_cast<std::int32_t>(point));
    }
    for (std::size_t l = 0; l < clusters_; ++l) {
      if (l == k) continue;
      Heap& heap = heaps_[k * clusters_ + l];
      entries_ -= heap.size();
      heap.clear();
      heap.reserve(members.size());
      for (const std::int32_t point : members) heap.push_back(move_of(point, k, l));
      std::make_heap(heap.begin(), heap.end());
      entries_ += heap.size();
      note_cheapest(k, l);
    }
    built_[k] = true;
  }

  void rebuild_all() {
    for (std::size_t k = 0; k < clusters_; ++k) {
      if (built_[k]) build(k);
    }
  }

  const RowMatrixD& cost_;
  const std::vector<std::int32_t>& cluster_of_;
  std::size_t clusters_;
  std::vector<Heap> heaps_;  ///< [K][K]
  std::vector<bool> built_;  ///< [K]
  RowMatrixD cheapest_;      ///< [K][K]
  std::size_t entries_ = 0;  ///< in all heaps
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
        moves_(cost_, cluster_of_) {}

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
    }
  }

  /// Dijkstra from `source` over reduced costs, up to the nearest cluster with room. Leaves the path in
  /// before_.
  std::size_t nearest_with_room(std::size_t source) {
    distance_.assign(clusters_, kInfinity);
    before_.assign(clusters_, source);
    settled_.assign(clusters_, 0);
    distance_[source] = 0;
    for (;;) {
      std::size_t nearest = clusters_;
      for (std::size_t k = 0; k < clusters_; ++k) {
        if (settled_[k] == 0 && (nearest == clusters_ || distance_[k] < distance_[nearest])) nearest = k;
      }
      settled_[nearest] = 1;
      if (size_[nearest] < capacity_) {
        update_potentials(distance_[nearest]);
        return nearest;
      }
      relax_from(nearest);
    }
  }

  void relax_from(std::size_t k) {
    const double* const costs = moves_.costs_from(k);
    const double base = distance_[k] + potential_[k];
    for (std::size_t l = 0; l < clusters_; ++l) {
      if (settled_[l] != 0) continue;
      // Reduced costs are never negative but for rounding.
      const double through = std::max(distance_[k], base + costs[l] - potential_[l]);
      if (through < distance_[l]) {
        distance_[l] = through;
        before_[l] = k;
      }
    }
  }

  void update_potentials(double reached) {
    for (std::size_t k = 0; k < clusters_; ++k) potential_[k] += std::min(distance_[k], reached);
  }

  /// Moves one point along each edge of the path from `source` to `sink`.
  void shift(std::size_t source, std::size_t sink) {
    // All points are taken off the heaps' tops before any of them moves: the path visits a cluster once.
    path_.clear();
    for (std::size_t l = sink; l != source; l = before_[l])
      path_.push_back({moves_.point(before_[l], l), before_[l], l});
    for (const Step& step : path_)
      cluster_of_[static_cast<std::size_t>(step.point)] = static_cast<std::int32_t>(step.to);
    for (const Step& step : path_) moves_.joined(step.to, step.point);
    for (const Step& step : path_) moves_.left(step.from);
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
  std::vector<char> settled_;
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
