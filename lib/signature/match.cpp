// SPDX-License-Identifier: Apache-2.0
// match_cluster_ids of centroids.h.
#include <algorithm>
#include <set>

#include "lib/signature/assignment.h"
#include "lib/signature/centroids.h"

namespace eldr::signature {
namespace {

/// Places of the same model layer in two specs.
struct SharedLayer {
  std::size_t next, previous;
};

std::vector<SharedLayer> shared_layers(const SignatureSpec& next, const SignatureSpec& previous) {
  std::vector<SharedLayer> shared;
  if (next.experts != previous.experts) return shared;
  for (std::size_t i = 0; i < next.layers.size(); ++i) {
    const auto found = std::find(previous.layers.begin(), previous.layers.end(), next.layers[i]);
    if (found != previous.layers.end()) {
      shared.push_back({i, static_cast<std::size_t>(found - previous.layers.begin())});
    }
  }
  return shared;
}

/// A row's entries at the chosen layers, of unit length; zero where it has none there.
Eigen::VectorXd restricted(const RowMatrixF& rows, Eigen::Index row, const std::vector<std::size_t>& places,
                           std::uint32_t experts) {
  const auto width = static_cast<Eigen::Index>(experts);
  Eigen::VectorXd out(static_cast<Eigen::Index>(places.size()) * width);
  for (std::size_t i = 0; i < places.size(); ++i) {
    out.segment(static_cast<Eigen::Index>(i) * width, width) =
        rows.row(row).segment(static_cast<Eigen::Index>(places[i]) * width, width).transpose().cast<double>();
  }
  const double norm = out.norm();
  return norm > 0 ? Eigen::VectorXd(out / norm) : out;
}

/// Rows of the previous set whose id is handed on: it is live, not negative and not an earlier row's.
std::vector<Eigen::Index> rows_with_live_ids(const CentroidSet& previous, std::span<const std::int32_t> ids,
                                             const std::set<std::int32_t>& live) {
  std::vector<Eigen::Index> rows;
  std::set<std::int32_t> seen;
  const std::size_t count = std::min<std::size_t>(previous.clusters(), ids.size());
  for (std::size_t row = 0; row < count; ++row) {
    if (live.count(ids[row]) != 0 && seen.insert(ids[row]).second)
      rows.push_back(static_cast<Eigen::Index>(row));
  }
  return rows;
}

/// Cosines of every row of `next` with the given rows of `previous`, on the layers that both have.
Eigen::MatrixXd cosines(const CentroidSet& next, const CentroidSet& previous,
                        const std::vector<Eigen::Index>& rows, const std::vector<SharedLayer>& shared) {
  const auto columns = static_cast<Eigen::Index>(rows.size());
  std::vector<std::size_t> next_places, previous_places;
  for (const SharedLayer& layer : shared) {
    next_places.push_back(layer.next);
    previous_places.push_back(layer.previous);
  }
  const auto experts = next.spec.experts;
  const auto width = static_cast<Eigen::Index>(shared.size() * experts);
  Eigen::MatrixXd left(width, next.centroids.rows());
  for (Eigen::Index i = 0; i < left.cols(); ++i)
    left.col(i) = restricted(next.centroids, i, next_places, experts);
  Eigen::MatrixXd right(width, columns);
  for (Eigen::Index j = 0; j < columns; ++j) {
    right.col(j) =
        restricted(previous.centroids, rows[static_cast<std::size_t>(j)], previous_places, experts);
  }
  return left.transpose() * right;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;  ///< (row, column)

/// Pairs of the largest total, as many as the smaller side has.
Pairs best_pairs(const Eigen::MatrixXd& gain) {
  const bool wide = gain.rows() <= gain.cols();
  const auto partner = solve_assignment(wide ? Eigen::MatrixXd(-gain) : Eigen::MatrixXd(-gain.transpose()));
  Pairs pairs;
  if (!partner) return pairs;  // cannot be: cosines are finite and the smaller side comes first
  for (std::size_t i = 0; i < partner->size(); ++i) {
    const auto j = static_cast<std::size_t>((*partner)[i]);
    pairs.emplace_back(wide ? i : j, wide ? j : i);
  }
  return pairs;
}

Pairs pairs_in_order(std::size_t count) {
  Pairs pairs;
  for (std::size_t i = 0; i < count; ++i) pairs.emplace_back(i, i);
  return pairs;
}

/// Which row of `next` goes on as which of the given rows of `previous`.
Pairs successors(const CentroidSet& next, const CentroidSet& previous,
                 const std::vector<Eigen::Index>& rows) {
  const auto shared = shared_layers(next.spec, previous.spec);
  if (shared.empty()) return pairs_in_order(std::min<std::size_t>(next.clusters(), rows.size()));
  return best_pairs(cosines(next, previous, rows, shared));
}

}  // namespace

std::vector<std::int32_t> match_cluster_ids(const CentroidSet& next, const CentroidSet& previous,
                                            std::span<const std::int32_t> previous_ids,
                                            std::span<const std::int32_t> live) {
  std::set<std::int32_t> vacant;  // live ids that no row has taken yet
  for (const std::int32_t id : live) {
    if (id >= 0) vacant.insert(id);
  }
  const auto candidates = rows_with_live_ids(previous, previous_ids, vacant);
  std::vector<std::int32_t> ids(next.clusters(), -1);
  std::set<std::int32_t> taken;
  const auto take = [&](std::size_t row, std::int32_t id) {
    ids[row] = id;
    taken.insert(id);
    vacant.erase(id);
  };
  for (const auto& [row, column] : successors(next, previous, candidates)) {
    take(row, previous_ids[static_cast<std::size_t>(candidates[column])]);
  }
  // Workers whose id had no centroid before come next, then new numbers.
  std::int32_t fresh = 0;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (ids[row] >= 0) continue;
    if (!vacant.empty()) {
      take(row, *vacant.begin());
      continue;
    }
    while (taken.count(fresh) != 0) ++fresh;
    take(row, fresh);
  }
  return ids;
}

}  // namespace eldr::signature
