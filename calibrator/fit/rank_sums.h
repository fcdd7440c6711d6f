// SPDX-License-Identifier: Apache-2.0
// The integer sums that Spearman's rho is made of, and rho from them. The same on the host and on a GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "calibrator/fit/host_device.h"

namespace eldr::calibrator {

// Products of two doubled ranks, summed over 2^31 pairs, need 94 bits.
__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

/// Over some entries, of doubled ranks from 1: own squared, own times the other side's.
struct RankSums {
  Wide squares;
  Wide products;
};
ELDR_HOST_DEVICE inline RankSums operator+(RankSums a, RankSums b) {
  return {a.squares + b.squares, a.products + b.products};
}

/// Sum of (x - mean)(y - mean), from the sum of x y: the mean of n doubled ranks is n + 1, ties or not.
inline double about_the_mean(Wide sum, std::uint64_t n) {
  const Wide mean = static_cast<Wide>(n) + 1;
  return static_cast<double>(static_cast<SignedWide>(sum) - static_cast<SignedWide>(mean * mean * n));
}

/// rho over n entries; `target_squares` is about_the_mean() of the other side's squares. 0 when one side has
/// no spread.
inline double spearman_rho(const RankSums& sums, std::uint64_t n, double target_squares) {
  const double own_squares = about_the_mean(sums.squares, n);
  if (own_squares <= 0 || target_squares <= 0) {
    return 0;
  }
  return about_the_mean(sums.products, n) / std::sqrt(own_squares * target_squares);
}

}  // namespace eldr::calibrator
