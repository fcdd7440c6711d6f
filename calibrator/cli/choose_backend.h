// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrator/cli/options.h"
#include "calibrator/cuda/backend.h"
#include "calibrator/cuda/plugin_loader.h"

namespace eldr::calibrator {

/// What --backend names; --cuda-library goes before `places`. "auto" takes the GPU where there is one that
/// `shape` fits, else the CPU, and logs which and why; "cuda" fails where "auto" would fall back.
Result<std::unique_ptr<FitBackend>> choose_backend(const BackendOptions& options,
                                                   const cuda::PluginPlaces& places,
                                                   const cuda::FitShape& shape, unsigned threads);

}  // namespace eldr::calibrator
