// SPDX-License-Identifier: Apache-2.0
// Spearman's rank correlation with average ranks on ties, over tens of millions of pairs.
//
// rho = cov(r_x, r_y) / sqrt(var(r_x) var(r_y)) on the ranks r (Spearman 1904). Ranks are kept doubled, so
// that the average of a tie stays an integer, and every sum is an exact 128-bit integer: the only rounding is
// in the last division.
//
// Values come as cosines, as the keys of cosine_key.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "calibrator/fit/cosine_key.h"

namespace eldr::calibrator {

/// The side of a correlation that stays the same over many calls.
struct RankedTarget {
  std::vector<std::uint32_t> doubled_ranks;  ///< 2 * average rank, ranks from 1, in the order of the keys
  double sum_of_squares = 0;                 ///< of the doubled ranks about their mean
};

/// Scratch memory for sorting; one for each thread. 16 bytes a pair.
class SpearmanSorter {
 public:
  /// `keys` below 2^31, at most 2^31 of them.
  RankedTarget rank(std::span<const std::uint32_t> keys);

  /// Two steps, so that keys are produced straight into the scratch memory: fill every entry of
  /// begin(n) by pack(key, target.doubled_ranks[i]), then ask. In [-1, 1]; 0 when one side has no spread.
  std::uint64_t* begin(std::size_t n);
  double rho(const RankedTarget& target);
  static std::uint64_t pack(std::uint32_t key, std::uint32_t payload) {
    return (static_cast<std::uint64_t>(key) << 32U) | payload;
  }

  double rho(std::span<const std::uint32_t> keys, const RankedTarget& target);

 private:
  void sort();

  std::vector<std::uint64_t> entries_;
  std::vector<std::uint64_t> other_;
};

}  // namespace eldr::calibrator
