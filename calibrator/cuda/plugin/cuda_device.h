// SPDX-License-Identifier: Apache-2.0
// What the plugin's translation units share.
#pragma once

#include <cstdio>

#include <cuda_runtime_api.h>

#include "calibrator/cuda/device.h"

namespace eldr::calibrator::cuda {

/// kNone for cudaSuccess, else what failed and CUDA's words for why.
inline DeviceError error_of(cudaError_t status, const char* what) {
  DeviceError error;
  if (status != cudaSuccess) {
    error.kind = status == cudaErrorMemoryAllocation ? DeviceError::kOutOfMemory : DeviceError::kFailed;
    std::snprintf(error.message, sizeof error.message, "%s: %s", what, cudaGetErrorString(status));
  }
  return error;
}

// By CUB, in sort.cu: radix sort is most of what there is to compile.
cudaError_t sort_by_key(void* scratch, std::size_t& scratch_bytes, SortBuffers& buffers, std::uint64_t count,
                        cudaStream_t stream);
cudaError_t sum_places(void* scratch, std::size_t& scratch_bytes, const PlaceSums& body, std::uint64_t count,
                       RankSums* out, cudaStream_t stream);

}  // namespace eldr::calibrator::cuda
