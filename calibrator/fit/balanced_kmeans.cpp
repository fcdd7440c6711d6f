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

/// One start of k-means over the points that have a direction.
class Start {
 public:
  Start(const SimilarityMatrix& similarities, const std::vector<std::size_t>& points, std::uint32_t clusters,
        std::int32_t capacity, Random random)
      : similarities_(similarities),
        points_(points),
        clusters_(clusters),
        capacity_(capacity),
        random_(random),
        cluster_of_(similarities.requests(), kNoCluster) {}

  Result<Clustering> run(std::uint32_t max_iterations) {
    auto cost = distances_to_seeds();
    Clustering best;
    for (std::uint32_t iteration = 0; iteration < max_iterations; ++iteration) {
      if (!cost) {
        return failure(cost.error());
      }
      const auto assigned = signature::solve_capacitated_assignment(*cost, capacity_);
      if (!assigned) {
        return failure(assigned.error());
      }
      std::vector<std::uint32_t> assignment(assigned->begin(), assigned->end());
      fill_empty_clusters(*cost, assignment);
      cost = distances_to_centroids(assignment);
      if (!cost) {
        return failure(cost.error());
      }
      const double objective = total(*cost, assignment);
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

  /// k-means++ (Arthur and Vassilvitskii 2007): each next seed is drawn in proportion to its distance from
  /// the nearest so far.
  Result<Eigen::MatrixXd> distances_to_seeds() {
    const std::size_t n = points_.size();
    Eigen::MatrixXd cost(n, clusters_);
    std::vector<float> cosines(similarities_.requests());
    std::vector<double> nearest(n, 0.0);
    std::vector<bool> taken(n, false);
    for (std::uint32_t cluster = 0; cluster < clusters_; ++cluster) {
      const std::size_t seed = cluster == 0 ? random_.below(n) : draw(nearest, taken);
      taken[seed] = true;
      if (const Status read = similarities_.row(points_[seed], cosines); !read) {
        return failure(read.error());
      }
      for (std::size_t i = 0; i < n; ++i) {
        const double distance = std::max(0.0, 1.0 - cosines[points_[i]]);
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

  /// 1 - cosine of each point with the normalised mean of each cluster, [points][K].
  Result<Eigen::MatrixXd> distances_to_centroids(const std::vector<std::uint32_t>& assignment) {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      cluster_of_[points_[i]] = assignment[i];
    }
    auto all = similarities_.distances_to_centroids(cluster_of_, clusters_);
    if (!all || points_.size() == cluster_of_.size()) {
      return all;
    }
    return Eigen::MatrixXd((*all)(points_, Eigen::all));
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

  const SimilarityMatrix& similarities_;
  const std::vector<std::size_t>& points_;  ///< requests with a direction
  std::uint32_t clusters_;
  std::int32_t capacity_;
  Random random_;
  std::vector<std::uint32_t> cluster_of_;  ///< of all requests, scratch
};

/// Every point's cluster, from that of the points with a direction; the others fill the smallest clusters.
std::vector<std::uint32_t> with_directionless(const std::vector<std::uint32_t>& assignment,
                                              const std::vector<std::size_t>& points, std::size_t n,
                                              std::uint32_t clusters) {
  std::vector<std::uint32_t> all(n, kNoCluster);
  std::vector<std::size_t> sizes(clusters, 0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    all[points[i]] = assignment[i];
    ++sizes[assignment[i]];
  }
  for (std::uint32_t& cluster : all) {
    if (cluster == kNoCluster) {
      const auto smallest = std::min_element(sizes.begin(), sizes.end());
      cluster = static_cast<std::uint32_t>(smallest - sizes.begin());
      ++*smallest;
    }
  }
  return all;
}

}  // namespace

Result<Clustering> balanced_kmeans(const SimilarityMatrix& similarities, const KMeansOptions& options,
                                   const std::function<bool(std::size_t, std::size_t)>& step) {
  const std::size_t n = similarities.requests();
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < n; ++i) {
    if (similarities.has_direction(i)) {
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
    starts[task] = Start(similarities, points, options.clusters, capacity, Random(options.seed, task + 1))
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
