// SPDX-License-Identifier: Apache-2.0
// Fits for tests of the report.
#pragma once

#include "calibrator/fit/fit.h"
#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator::samples {

/// A quick fit of the trace; as a file would hold it, not as the fit had it.
inline signature::CentroidSet fitted(const signature::Trace& trace, std::uint32_t clusters) {
  const auto backend = make_cpu_backend(1);
  const auto result = fit_centroids(trace, {.clusters = clusters, .restarts = 2}, *backend, RealClock(),
                                    [](std::size_t, std::size_t) { return true; });
  return *signature::parse_centroids(*signature::serialize_centroids(result.value().set));
}

}  // namespace eldr::calibrator::samples
