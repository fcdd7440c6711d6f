// SPDX-License-Identifier: Apache-2.0
// Spearman's rank correlation with average ranks on ties, over tens of millions of pairs.
//
// rho = cov(r_x, r_y) / sqrt(var(r_x) var(r_y)) on the ranks r (Spearman 1904). Ranks are kept doubled, so
// that the average of a tie stays an integer, and every sum is an exact 128-bit integer: the only rounding is
// in the last division.
//
// Values come as cosines and are put on a grid of 1/kKeysPerUnit first. Two cosines that are equal but for
// the rounding of their last bits are then a tie, as they are on paper.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace eldr::calibrator {

/// Grid lines between cosine 0 and 1; fits 31 bits with room for a cosine that rounding put above 1.
inline constexpr double kKeysPerUnit = 2147483000.0;

/// A sort key of a cosine in [0, 1]. Expert counts are not negative, so no cosine is; one is clamped.
inline std::uint32_t cosine_key(double cosine) {
  return cosine <= 0.0 ? 0U : static_cast<std::uint32_t>(static_cast<std::int32_t>(cosine * kKeysPerUnit));
}

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
