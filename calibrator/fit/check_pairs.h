// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrator/fit/features.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

/// What every backend asks of the two sides of a correlation: the same requests, at least 2 (kInvalid), with
/// fewer than 2^31 pairs (kResourceExhausted), up to which 32-bit ranks and the sums over them are exact.
Status check_pairs(const LayerFeatures& prefill, const LayerFeatures& decode);

}  // namespace eldr::calibrator
