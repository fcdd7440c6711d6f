// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/svg/scale.h"

#include <algorithm>
#include <cmath>

#include "calibrator/report/svg/markup.h"

namespace eldr::calibrator::svg {
namespace {

double round_step(double range, int wanted) {
  const double rough = range / std::max(wanted, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double multiple : {1.0, 2.0, 5.0}) {
    if (multiple * power >= rough * 0.9999) {
      return multiple * power;
    }
  }
  return 10 * power;
}

Ticks ticks_apart(double step, double low, double high) {
  Ticks ticks{step, {}};
  const double slack = 1e-9 * step;
  for (double i = std::ceil((low - slack) / step); i * step <= high + slack; ++i) {
    ticks.values.push_back(i * step);
  }
  return ticks;
}

}  // namespace

std::string Ticks::label(double value) const {
  const int decimals = static_cast<int>(std::clamp(-std::floor(std::log10(step) + 1e-9), 0.0, 6.0));
  return fixed(value, decimals);
}

Ticks round_ticks(double low, double high, int wanted) {
  if (!(high > low)) {
    return {1, {low}};
  }
  return ticks_apart(round_step(high - low, wanted), low, high);
}

Ticks whole_ticks(double low, double high, int wanted) {
  if (!(high > low)) {
    return {1, {low}};
  }
  return ticks_apart(std::max(1.0, round_step(high - low, wanted)), low, high);
}

Extent rounded_out(double low, double high, int wanted_ticks) {
  if (!(high > low)) {
    return {low - 0.5, low + 0.5};
  }
  const double step = round_step(high - low, wanted_ticks);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

}  // namespace eldr::calibrator::svg
