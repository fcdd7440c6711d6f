// SPDX-License-Identifier: Apache-2.0
// A CUDA backend of this build on a machine without a GPU.
#include <cstdio>

#include "calibrator/cuda/plugin/plugin.h"

extern "C" const char* eldr_calibrate_cuda_interface() { return ELDR_CUDA_INTERFACE; }

extern "C" eldr::calibrator::cuda::Device* eldr_calibrate_cuda_open(
    eldr::calibrator::cuda::DeviceError* error) {
  error->kind = eldr::calibrator::cuda::DeviceError::kNoDevice;
  std::snprintf(error->message, sizeof error->message, "no NVIDIA driver is installed");
  return nullptr;
}
