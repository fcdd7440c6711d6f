// SPDX-License-Identifier: Apache-2.0
// Gram matrices by tiles of rows, so that threads share the work and no N * N matrix of doubles is made.
#pragma once

#include <algorithm>

#include "calibrator/fit/parallel.h"
#include "lib/signature/signature.h"

namespace eldr::calibrator::cpu {

using RowMatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline constexpr std::size_t kTileRows = 64;

/// Rows [first, last) of a matrix of n rows.
struct Tile {
  std::size_t first = 0;
  std::size_t last = 0;
};

inline std::size_t tile_count(std::size_t n) { return (n + kTileRows - 1) / kTileRows; }
inline Tile tile_at(std::size_t n, std::size_t index) {
  return {index * kTileRows, std::min((index + 1) * kTileRows, n)};
}

/// The tile's rows of rows * rows^T from column `tile.first` on: entry (i - first, j - first) belongs to rows
/// i and j. In double: rounding is then below a float's last bit, so equal requests give equal entries
/// wherever a tile ends.
inline RowMatrixD gram_of(const signature::RowMatrixF& rows, Tile tile) {
  const auto first = static_cast<Eigen::Index>(tile.first);
  const auto height = static_cast<Eigen::Index>(tile.last - tile.first);
  return rows.middleRows(first, height).cast<double>() *
         rows.bottomRows(rows.rows() - first).cast<double>().transpose();
}

}  // namespace eldr::calibrator::cpu
