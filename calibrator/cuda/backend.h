// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: Gram matrices by cuBLAS, ranks by CUB, distances of k-means, on one GPU.
//
// Results are those of the CPU. Inner products are computed in double and rounded to float where the CPU
// rounds them, sums and cosines in double in the same order, ranks and their sums in whole numbers. What may
// differ is the order in which a product's terms are added, so now and then a float's last bit, and so a
// cosine's place on the grid of cosine_key.h by some lines of 2^31.
#pragma once

#include <cstdint>
#include <memory>

#include "calibrator/cuda/device.h"
#include "calibrator/fit/backend.h"

namespace eldr::calibrator::cuda {

/// The largest fit that will be asked for.
struct FitShape {
  std::uint64_t requests = 0;
  std::uint64_t layers = 0;
  std::uint64_t experts = 0;
};

/// `memory_limit` in bytes; 0: a share of what is free now. kResourceExhausted: too little for `shape`.
Result<std::unique_ptr<FitBackend>> make_backend(std::unique_ptr<Device> device, std::uint64_t memory_limit,
                                                 const FitShape& shape);

}  // namespace eldr::calibrator::cuda
