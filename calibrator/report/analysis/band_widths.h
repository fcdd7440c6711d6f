// SPDX-License-Identifier: Apache-2.0
// How much choice a locality band leaves the router: how many centroids lie within tau of a request's best.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/signature/signature.h"

namespace eldr::calibrator {

struct BandAtTau {
  double tau = 0;
  double mean = 0;  ///< centroids in the band
  double low = 0;   ///< tenth and ninetieth percentile over the requests
  double high = 0;
};

struct BandWidths {
  BandAtTau chosen;
  std::vector<std::uint32_t> requests;  ///< [K] at the chosen tau: requests with a band of 1, 2 … K centroids
  std::vector<BandAtTau> curve;  ///< by rising tau, from 0 until the band is nearly everywhere the whole pool
};

/// As the router decides (lib/signature/band.h). `similarities` is [requests][K]; without requests all is 0.
BandWidths band_widths(const signature::RowMatrixF& similarities, double tau);

}  // namespace eldr::calibrator
