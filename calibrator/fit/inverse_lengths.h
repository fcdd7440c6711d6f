// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace eldr::calibrator {

/// 1 / length of each request from its squared length, 0 for a zero vector.
inline std::vector<double> inverse_lengths(std::span<const double> squares) {
  std::vector<double> inverse(squares.size());
  std::transform(squares.begin(), squares.end(), inverse.begin(),
                 [](double square) { return square > 0 ? 1.0 / std::sqrt(square) : 0.0; });
  return inverse;
}

}  // namespace eldr::calibrator
