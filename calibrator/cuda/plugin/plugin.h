// SPDX-License-Identifier: Apache-2.0
// What libeldr_calibrate_cuda.so exports.
#pragma once

#include "calibrator/cuda/device.h"

namespace eldr::calibrator::cuda {

// ELDR_CUDA_INTERFACE is the program's version and a digest of the headers that both sides are compiled from
// (CMakeLists.txt), so that a plugin of another build is refused before anything of it is called.

/// "eldr_calibrate_cuda_interface": the plugin's ELDR_CUDA_INTERFACE.
using InterfaceFunction = const char*();
inline constexpr char kInterfaceSymbol[] = "eldr_calibrate_cuda_interface";

/// "eldr_calibrate_cuda_open": the first visible GPU, owned by the caller, or null and why. Delete it by its
/// destructor; the library stays loaded.
using OpenFunction = Device*(DeviceError* error);
inline constexpr char kOpenSymbol[] = "eldr_calibrate_cuda_open";

}  // namespace eldr::calibrator::cuda
