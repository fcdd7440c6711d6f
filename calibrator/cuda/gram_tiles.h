// SPDX-License-Identifier: Apache-2.0
// A Gram matrix by tiles of rows, so that its size in doubles never matters.
#pragma once

#include <algorithm>
#include <cstdint>

#include "calibrator/cuda/device.h"
#include "calibrator/cuda/session.h"

namespace eldr::calibrator::cuda {

/// Computes blocks of `tile_rows` rows of rows * rows^T into `tile` and calls use(block), a Status, for each,
/// top to bottom. `from_diagonal`: a block begins at the column of its first row, which is the upper
/// triangle and little more; else it has all columns.
template <class Use>
Status for_each_gram_tile(Device& device, const double* rows, std::uint64_t requests, std::uint64_t columns,
                          std::uint64_t tile_rows, double* tile, bool from_diagonal, Use use) {
  for (std::uint64_t row = 0; row < requests; row += tile_rows) {
    const std::uint64_t column = from_diagonal ? row : 0;
    const GramBlock block{row, std::min(tile_rows, requests - row), column, requests - column};
    if (const Status done = to_status(device.gram(rows, columns, block, tile)); !done) {
      return done;
    }
    if (const Status used = use(block); !used) {
      return used;
    }
  }
  return {};
}

}  // namespace eldr::calibrator::cuda
