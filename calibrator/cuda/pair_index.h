// SPDX-License-Identifier: Apache-2.0
// From the index of a pair to its two requests: pairs.h the other way round. Host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "calibrator/fit/host_device.h"
#include "calibrator/fit/pairs.h"

namespace eldr::calibrator::cuda {

/// Two requests, i < j.
struct Pair {
  std::uint64_t i;
  std::uint64_t j;
};

/// The pair at `index`, below pair_count(n), of n requests, at most 2^26. A square root in double says the
/// row to within one; whole numbers settle it.
ELDR_HOST_DEVICE inline Pair pair_at(std::uint64_t n, std::uint64_t index) {
  const double top = static_cast<double>(n) - 0.5;
  const double discriminant = top * top - 2.0 * static_cast<double>(index);
  const double guess = top - std::sqrt(discriminant > 0 ? discriminant : 0);
  std::uint64_t row = guess > 0 ? static_cast<std::uint64_t>(guess) : 0;
  row = row < n - 2 ? row : n - 2;
  while (row > 0 && pair_row(n, row) > index) {
    --row;
  }
  while (pair_row(n, row + 1) <= index) {
    ++row;
  }
  return {row, index - pair_row(n, row) + row + 1};
}

/// Index of the pair (i, j), i < j.
ELDR_HOST_DEVICE inline std::uint64_t index_of_pair(std::uint64_t n, std::uint64_t i, std::uint64_t j) {
  return pair_row(n, i) + j - i - 1;
}

}  // namespace eldr::calibrator::cuda
