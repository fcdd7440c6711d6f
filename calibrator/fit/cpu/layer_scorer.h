// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrator/fit/backend.h"

namespace eldr::calibrator::cpu {

/// The requests of both sides are the same, at least 2, and their pairs fit SpearmanSorter.
std::unique_ptr<LayerScorer> make_layer_scorer(const LayerFeatures& prefill, const LayerFeatures& decode,
                                               unsigned threads);

}  // namespace eldr::calibrator::cpu
