// SPDX-License-Identifier: Apache-2.0
// Selections by two backends, side by side.
#pragma once

#include <vector>

#include "calibrator/fit/backend.h"
#include "calibrator/fit/layer_selection.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator::cuda {

/// What a selection compares, for all requests and layers of a trace.
struct Sides {
  LayerFeatures prefill;
  LayerFeatures decode;
};
Sides sides_of(const signature::Trace& trace, signature::Transform transform);

/// The whole greedy path; a failure is a failure of the test.
LayerSelection select(FitBackend& backend, const Sides& sides);

/// The same layers in the same order, rho to within `tolerance`.
void expect_same(const LayerSelection& ours, const LayerSelection& theirs, double tolerance);

}  // namespace eldr::calibrator::cuda
