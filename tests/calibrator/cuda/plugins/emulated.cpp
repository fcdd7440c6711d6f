// SPDX-License-Identifier: Apache-2.0
// A CUDA backend of this build whose GPU is emulated.
#include "calibrator/cuda/plugin/plugin.h"
#include "tests/calibrator/cuda/emulated_device.h"

extern "C" const char* eldr_calibrate_cuda_interface() { return ELDR_CUDA_INTERFACE; }

extern "C" eldr::calibrator::cuda::Device* eldr_calibrate_cuda_open(eldr::calibrator::cuda::DeviceError*) {
  static eldr::calibrator::cuda::EmulatedGpu gpu;
  return eldr::calibrator::cuda::make_emulated_device(gpu).release();
}
