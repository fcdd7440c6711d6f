// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrator/cuda/session.h"
#include "calibrator/fit/backend.h"

namespace eldr::calibrator::cuda {

/// The requests of both sides are the same, at least 2, and their pairs are fewer than 2^31.
Result<std::unique_ptr<LayerScorer>> make_layer_scorer(std::shared_ptr<Session> session,
                                                       const LayerFeatures& prefill,
                                                       const LayerFeatures& decode);

}  // namespace eldr::calibrator::cuda
