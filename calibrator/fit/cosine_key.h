// SPDX-License-Identifier: Apache-2.0
// Cosines as sort keys, on a grid of 1 / kKeysPerUnit. Two cosines that are equal but for the rounding of
// their last bits are then a tie, as they are on paper.
#pragma once

#include <cstdint>

#include "calibrator/fit/host_device.h"

namespace eldr::calibrator {

/// Grid lines between cosine 0 and 1; fits 31 bits with room for a cosine that rounding put above 1.
inline constexpr double kKeysPerUnit = 2147483000.0;
/// Bits of a key that are used.
inline constexpr int kKeyBits = 31;

/// A sort key of a cosine in [0, 1]. Expert counts are not negative, so no cosine is; one is clamped.
ELDR_HOST_DEVICE inline std::uint32_t cosine_key(double cosine) {
  return cosine <= 0.0 ? 0U : static_cast<std::uint32_t>(static_cast<std::int32_t>(cosine * kKeysPerUnit));
}

}  // namespace eldr::calibrator
