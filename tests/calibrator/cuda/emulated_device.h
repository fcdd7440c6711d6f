// SPDX-License-Identifier: Apache-2.0
// A GPU in ordinary memory: the kernels' bodies in loops, std::stable_sort in place of CUB, plain sums of
// products in place of cuBLAS. All above it is what runs on a real one.
#pragma once

#include <cstdint>
#include <memory>

#include "calibrator/cuda/device.h"

namespace eldr::calibrator::cuda {

/// What a test may watch and break.
struct EmulatedGpu {
  std::uint64_t memory = std::uint64_t{1} << 32U;  ///< bytes; more cannot be allocated
  std::uint64_t taken = 0;
  std::uint64_t most_taken = 0;
  std::uint64_t largest_gram_block = 0;  ///< entries
  std::uint64_t grams = 0;               ///< calls
  std::uint64_t calls_until_failure = UINT64_MAX;
};

/// `gpu` outlives it.
std::unique_ptr<Device> make_emulated_device(EmulatedGpu& gpu);

}  // namespace eldr::calibrator::cuda
