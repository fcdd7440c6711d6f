// SPDX-License-Identifier: Apache-2.0
// One thread block for each token of the step; all but those at the beginning of a run end at once. A thread
// takes a layer (or several, when there are more layers than threads).
#include <cuda_runtime_api.h>

#include "scatter.h"
#include "scatter_dispatch.h"

namespace {

constexpr int kMostThreads = 128;

template <typename Count, typename Slot>
__global__ void add_step(Count* rows, std::int32_t* missing, const std::int16_t* ids, const Slot* slots,
                         eldr::ScatterShape shape) {
  const std::int32_t token = static_cast<std::int32_t>(blockIdx.x);
  if (!eldr::begins_run(slots, token, shape)) return;
  for (std::int32_t layer = static_cast<std::int32_t>(threadIdx.x); layer < shape.layers;
       layer += static_cast<std::int32_t>(blockDim.x))
    eldr::add_run(rows, missing, ids, slots, token, layer, shape);
}

}  // namespace

int eldr_scatter_version() { return 1; }

int eldr_scatter_add(void* stream, void* rows, std::int32_t count_bytes, std::int32_t* missing,
                     const std::int16_t* ids, const void* slots, std::int32_t slot_bytes, std::int32_t tokens,
                     std::int32_t blocks, std::int32_t block_size, std::int32_t layers, std::int32_t experts,
                     std::int32_t top_k) {
  const eldr::ScatterShape shape{tokens, blocks, block_size, layers, experts, top_k};
  return eldr::dispatch(count_bytes, slot_bytes, shape, [&](auto count, auto slot) {
    using Count = decltype(count);
    using Slot = decltype(slot);
    const int threads = shape.layers < kMostThreads ? (shape.layers + 31) / 32 * 32 : kMostThreads;
    add_step<Count, Slot><<<shape.tokens, threads, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<Count*>(rows), missing, ids, static_cast<const Slot*>(slots), shape);
    return static_cast<int>(cudaGetLastError());
  });
}
