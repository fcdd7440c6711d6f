// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/balanced_kmeans.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>

#include "calibrator/fit/parallel.h"
#include "calibrator/fit/random.h"
#include "lib/signature/assignment.h"

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;

/// One start of k-means over the points that have a direction.
class Start {
 public:
  Start(const RowMatrixF& gram, const std::vector<Eigen::Index>& points, std::uint32_t clusters,
        std::int32_t capacity, Random random)
      : gram_(gram), points_(points), clusters_(clusters), capacity_(capacity), random_(random) {}

  Result<Clustering> run(std::uint32_t max_iterations) {
    Eigen::MatrixXd cost = distances_to_seeds();
    Clustering best;
    for (std::uint32_t iteration = 0; iteration < max_iterations; ++iteration) {
      const auto assigned = signature::solve_capacitated_assignment(cost, capacity_);
      if (!assigned) {
        return failure(assigned.error());
      }
      std::vector<std::uint32_t> assignment(assigned->begin(), assigned->end());
      fill_empty_clusters(cost, assignment);
      cost = distances_to_centroids(assignment);
      const double objective = total(cost, assignment);
      // A step that gains nothing ends it; so does one that rounding made worse.
      if (iteration > 0 && objective >= best.objective - kSmallestGain) {
        break;
      }
      best.assignment = std::move(assignment);
      best.objective = objective;
      best.path.push_back(objective);
    }
    return best;
  }

 private:
  static constexpr double kSmallestGain = 1e-10;

  float similarity(std::size_t a, std::size_t b) const { return gram_(points_[a], points_[b]); }

  /// k-means++ (Arthur and Vassilvitskii 2007): each next seed is drawn in proportion to its distance from
  /// the nearest so far.
  Eigen::MatrixXd distances_to_seeds() {
    const std::size_t n = points_.size();
    Eigen::MatrixXd cost(n, clusters_);
    std::vector<double> nearest(n, 0.0);
    std::vector<bool> taken(n, false);
    for (std::uint32_t cluster = 0; cluster < clusters_; ++cluster) {
      const std::size_t seed = cluster == 0 ? random_.below(n) : draw(nearest, taken);
      taken[seed] = true;
      for (std::size_t i = 0; i < n; ++i) {
        const double distance = std::max(0.0, 1.0 - similarity(i, seed));
        cost(static_cast<Eigen::Index>(i), cluster) = distance;
        nearest[i] = taken[i] ? 0.0 : (cluster == 0 ? distance : std::min(nearest[i], distance));
      }
    }
    return cost;
  }

  std::size_t draw(const std::vector<double>& weights, const std::vector<bool>& taken) {
    double sum = 0;
    for (const double weight : weights) {
      sum += weight;
    }
    double target = random_.uniform() * sum;
    std::size_t last = weights.size();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (taken[i]) {
        continue;
      }
      last = i;
      target -= weights[i];
      if (sum > 0 && target < 0) {
        return i;
      }
      if (sum <= 0) {
        return i;  // all that are left coincide with a seed: the first of them
      }
    }
    return last;
  }

  /// 1 - cosine of each point with the normalised mean of each cluster.
  Eigen::MatrixXd distances_to_centroids(const std::vector<std::uint32_t>& assignment) const {
    const std::size_t n = points_.size();
    Eigen::MatrixXd common(clusters_,
                           n);  // column i: inner products of point i with the sums of the clusters
    Eigen::VectorXd squares = Eigen::VectorXd::Zero(clusters_);
    for (std::size_t i = 0; i < n; ++i) {
      auto column = common.col(static_cast<Eigen::Index>(i));
      column.setZero();
      const float* row = gram_.row(points_[i]).data();
      for (std::size_t j = 0; j < n; ++j) {
        column[assignment[j]] += row[points_[j]];
      }
      squares[assignment[i]] += column[assignment[i]];
    }
    const Eigen::VectorXd inverse = squares.cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    return (1.0 - (inverse.asDiagonal() * common).array()).matrix().transpose();
  }

  /// The capacity alone lets a cluster stay empty (N = 5, K = 4: 2 + 2 + 1 + 0). It gets the point that is
  /// worst off among clusters of several, which lowers the objective.
  void fill_empty_clusters(const Eigen::MatrixXd& cost, std::vector<std::uint32_t>& assignment) const {
    std::vector<std::size_t> sizes(clusters_, 0);
    for (const std::uint32_t cluster : assignment) {
      ++sizes[cluster];
    }
    for (std::uint32_t empty = 0; empty < clusters_; ++empty) {
      if (sizes[empty] > 0) {
        continue;
      }
      std::optional<std::size_t> worst;
      for (std::size_t i = 0; i < assignment.size(); ++i) {
        const auto own_cost = [&](std::size_t p) {
          return cost(static_cast<Eigen::Index>(p), assignment[p]);
        };
        if (sizes[assignment[i]] > 1 && (!worst || own_cost(i) > own_cost(*worst))) {
          worst = i;
        }
      }
      --sizes[assignment[*worst]];
      assignment[*worst] = empty;
      ++sizes[empty];
    }
  }

  static double total(const Eigen::MatrixXd& cost, const std::vector<std::uint32_t>& assignment) {
    double sum = 0;
    for (std::size_t i = 0; i < assignment.size(); ++i) {
      sum += cost(static_cast<Eigen::Index>(i), assignment[i]);
    }
    return sum;
  }

  const RowMatrixF& gram_;
  const std::vector<Eigen::Index>& points_;
  std::uint32_t clusters_;
  std::int32_t capacity_;
  Random random_;
};

/// Every point's cluster, from that of the points with a direction; the others fill the smallest clusters.
std::vector<std::uint32_t> with_directionless(const std::vector<std::uint32_t>& assignment,
                                              const std::vector<Eigen::Index>& points, std::size_t n,
                                              std::uint32_t clusters) {
  constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  std::vector<std::uint32_t> all(n, kNone);
  std::vector<std::size_t> sizes(clusters, 0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    all[static_cast<std::size_t>(points[i])] = assignment[i];
    ++sizes[assignment[i]];
  }
  for (std::uint32_t& cluster : all) {
    if (cluster == kNone) {
      const auto smallest = std::min_element(sizes.begin(), sizes.end());
      cluster = static_cast<std::uint32_t>(smallest - sizes.begin());
      ++*smallest;
    }
  }
  return all;
}

}  // namespace

Result<Clustering> balanced_kmeans(const RowMatrixF& gram, const KMeansOptions& options,
                                   const std::function<bool(std::size_t, std::size_t)>& step) {
  const auto n = static_cast<std::size_t>(gram.rows());
  std::vector<Eigen::Index> points;
  for (Eigen::Index i = 0; i < gram.rows(); ++i) {
    if (gram(i, i) > 0) {
      points.push_back(i);
    }
  }
  if (options.clusters == 0 || points.size() < options.clusters) {
    return failure(Code::kInvalid, "clusters: " + std::to_string(options.clusters) + " of " +
                                       std::to_string(points.size()) +
                                       " requests with a signature; must be from 1 to the number of those");
  }
  const auto capacity = static_cast<std::int32_t>((n + options.clusters - 1) / options.clusters);
  const std::uint32_t restarts = std::max(options.restarts, 1U);
  std::vector<Result<Clustering>> starts(restarts);
  std::atomic<std::size_t> done{0};
  std::atomic<bool> stopped{false};
  parallel_for(restarts, options.threads, [&](std::size_t task, unsigned) {
    if (stopped.load()) {
      return;
    }
    starts[task] = Start(gram, points, options.clusters, capacity, Random(options.seed, task + 1))
                       .run(options.max_iterations);
    if (!step(done.fetch_add(1) + 1, restarts)) {
      stopped.store(true);
    }
  });
  if (stopped.load()) {
    return failure(Code::kCancelled, "stopped while clustering");
  }
  const Clustering* best = nullptr;
  for (const auto& start : starts) {
    if (!start) {
      return failure(start.error());
    }
    if (best == nullptr || start->objective < best->objective) {
      best = &*start;
    }
  }
  Clustering result = *best;
  result.assignment = with_directionless(best->assignment, points, n, options.clusters);
  return result;
}

}  // namespace eldr::calibrator
