// SPDX-License-Identifier: Apache-2.0
// From values to coordinates, and the values worth naming on an axis.
#pragma once

#include <string>
#include <vector>

namespace eldr::calibrator::svg {

/// `low` .. `high` in the data to `from` .. `to` on the page; from > to for an axis that points up. One value
/// alone (low == high) lies in the middle.
struct LinearScale {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;

  double operator()(double value) const {
    return high == low ? (from + to) / 2 : from + (value - low) / (high - low) * (to - from);
  }
};

/// Round values, 1, 2 or 5 times a power of ten apart, from at least `low` to at most `high`: about `wanted`
/// of them.
struct Ticks {
  double step = 1;
  std::vector<double> values;

  std::string label(double value) const;  ///< with as many decimals as the step needs
};
Ticks round_ticks(double low, double high, int wanted);
/// The same in whole numbers.
Ticks whole_ticks(double low, double high, int wanted);

/// `low` .. `high` widened to round values.
struct Extent {
  double low = 0;
  double high = 1;
};
Extent rounded_out(double low, double high, int wanted_ticks);

}  // namespace eldr::calibrator::svg
