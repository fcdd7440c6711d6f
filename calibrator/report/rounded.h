// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace eldr::calibrator {

/// To six decimals: what a correlation of thousands of requests is good for.
inline double rounded(double value) { return std::round(value * 1e6) / 1e6; }

}  // namespace eldr::calibrator
