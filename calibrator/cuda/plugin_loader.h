// SPDX-License-Identifier: Apache-2.0
// Opens libeldr_calibrate_cuda.so at run time, so that one eldr-calibrate runs with and without CUDA.
#pragma once

#include <memory>
#include <string>

#include "calibrator/cuda/device.h"
#include "lib/base/status.h"

namespace eldr::calibrator::cuda {

struct PluginPlaces {
  std::string file;               ///< this file and no other; empty: look for it
  std::string program_directory;  ///< looked for in here and in ../lib/eldr
};

/// The first visible GPU. The library stays loaded to the end of the process. Errors say why there is none:
/// kNotFound: no plugin; kInvalid: not one, or of another build; kUnavailable: no driver or no GPU.
Result<std::unique_ptr<Device>> open_device(const PluginPlaces& places);

}  // namespace eldr::calibrator::cuda
