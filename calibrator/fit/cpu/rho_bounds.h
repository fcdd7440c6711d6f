// SPDX-License-Identifier: Apache-2.0
// What Spearman's rho lies between, from one pass over the pairs and without sorting them.
//
// Keys fall into buckets of equal width (a power of two). Within a bucket of n keys the ranks are unknown,
// but they are n numbers about the bucket's mean rank m, and the squares of their deviations d sum to at most
// (n^3 - n) / 12, what n ranks without ties have. With y the target's ranks,
//
//   sum x y = sum_b m_b sum_{i in b} y_i  +  sum_b sum_{i in b} d_i (y_i - mean_b y),
//
// and by Cauchy and Schwarz the last sum is at most sqrt(sum_b (n_b^3 - n_b) / 12 * (squares of y within
// buckets)) in size. The squares of x about their mean are at least those of bucket means and at most those
// of ranks without ties. Both bounds hold whatever the keys are: a layer whose upper bound is below another's
// lower bound cannot be the best, and its pairs need not be sorted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrator/fit/ranks.h"

namespace eldr::calibrator::cpu {

struct RhoBounds {
  double lower = 0;
  double upper = 0;
};

/// Scratch memory for one thread: at most 1 MiB.
class BucketedRanks {
 public:
  /// Starts anew for about so many pairs, with the buckets between two keys; keys outside go to the outer
  /// buckets.
  void begin(std::size_t pairs, std::uint32_t lowest, std::uint32_t highest);
  /// Keys (below 2^31) and the doubled ranks of the same pairs in the target.
  void add(std::span<const std::uint32_t> keys, const std::uint32_t* doubled_ranks);
  /// Of all that was added; `target` has as many pairs.
  RhoBounds bounds(const RankedTarget& target) const;

 private:
  struct Bucket {
    std::uint64_t rank_sum = 0;
    std::uint32_t count = 0;
  };

  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> numbers_;  ///< buckets of the keys at hand
  std::uint32_t lowest_ = 0;
  std::uint32_t highest_ = 0;
  unsigned shift_ = 0;  ///< a bucket is 2^shift keys wide
};

}  // namespace eldr::calibrator::cpu
