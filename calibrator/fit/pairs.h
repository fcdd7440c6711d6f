// SPDX-License-Identifier: Apache-2.0
// The order of all pairs (i, j), i < j, of n requests: row by row of the strict upper triangle,
// (0,1) (0,2) … (0,n-1) (1,2) …
#pragma once

#include <cstddef>

#include "calibrator/fit/host_device.h"

namespace eldr::calibrator {

ELDR_HOST_DEVICE constexpr std::size_t pair_count(std::size_t n) { return n < 2 ? 0 : n * (n - 1) / 2; }
/// Index of the pair (i, i + 1); the pair (i, j) is at pair_row(n, i) + j - i - 1.
ELDR_HOST_DEVICE constexpr std::size_t pair_row(std::size_t n, std::size_t i) {
  return i * (2 * n - i - 1) / 2;
}

}  // namespace eldr::calibrator
