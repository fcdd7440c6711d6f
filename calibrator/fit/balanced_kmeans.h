// SPDX-License-Identifier: Apache-2.0
// Hungarian-balanced k-means on the sphere (Malinen and Fränti 2014): no cluster takes more than ceil(N / K)
// points, each assignment step is the optimum of that constraint, and a centroid is the L2-normalised mean of
// its points. The sum of cosine distances never rises from one step to the next.
//
// It runs on the similarities of requests alone (similarity_matrix.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "calibrator/fit/similarity_matrix.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

struct KMeansOptions {
  std::uint32_t clusters = 1;
  std::uint64_t seed = 0;
  std::uint32_t restarts = 8;  ///< the best of so many starts, each seeded in the manner of k-means++
  std::uint32_t max_iterations = 100;
  unsigned threads = 1;  ///< restarts run side by side; the result does not depend on it
};

struct Clustering {
  std::vector<std::uint32_t>
      assignment;            ///< cluster of each point; every cluster has a point with a direction
  double objective = 0;      ///< sum over points of 1 - cosine with their own centroid
  std::vector<double> path;  ///< objective after each iteration of the best start
};

/// Requests without a direction fill the smallest clusters at the end and count in no objective. `step(done,
/// restarts)` is called after each start, from any thread, and returns false to stop (kCancelled). kInvalid:
/// fewer requests with a direction than clusters.
Result<Clustering> balanced_kmeans(const SimilarityMatrix& similarities, const KMeansOptions& options,
                                   const std::function<bool(std::size_t, std::size_t)>& step);

}  // namespace eldr::calibrator
