// SPDX-License-Identifier: Apache-2.0
// The run of equal keys around a place in sorted keys. Every place finds its own: steps that double, then
// bisection, so a place without ties looks at its two neighbours only, and one in a run of millions at some
// fifty. Host and device.
#pragma once

#include <cstdint>

#include "calibrator/fit/host_device.h"

namespace eldr::calibrator::cuda {

/// Places [first, end) of equal keys.
struct TieRun {
  std::uint64_t first;
  std::uint64_t end;

  /// Twice the average of the ranks first + 1 … end. At most 2^32 - 2 for fewer than 2^31 keys.
  ELDR_HOST_DEVICE std::uint64_t doubled_rank() const { return first + 1 + end; }
};

/// `place` below `count`.
ELDR_HOST_DEVICE inline TieRun tie_run(const std::uint32_t* keys, std::uint64_t count, std::uint64_t place) {
  const std::uint32_t key = keys[place];

  std::uint64_t last = place;  // a place inside the run
  std::uint64_t step = 1;
  while (last + step < count && keys[last + step] == key) {
    last += step;
    step *= 2;
  }
  std::uint64_t end = last + step < count ? last + step : count;  // a place outside
  while (end - last > 1) {
    const std::uint64_t middle = last + (end - last) / 2;
    if (keys[middle] == key) {
      last = middle;
    } else {
      end = middle;
    }
  }

  std::uint64_t first = place;
  step = 1;
  while (first >= step && keys[first - step] == key) {
    first -= step;
    step *= 2;
  }
  std::uint64_t before = first >= step ? first - step + 1 : 0;  // one after a place outside
  while (before < first) {
    const std::uint64_t middle = before + (first - before) / 2;
    if (keys[middle] == key) {
      first = middle;
    } else {
      before = middle + 1;
    }
  }
  return {first, end};
}

}  // namespace eldr::calibrator::cuda
