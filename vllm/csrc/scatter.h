// SPDX-License-Identifier: Apache-2.0
// C interface of the two libraries: libeldr_scatter.so (scatter.cu) and libeldr_scatter_host.so
// (scatter_host.cpp). Plain C, so that it does not depend on the version of PyTorch: Python passes pointers
// of tensors and the present stream through ctypes.
#pragma once

#include <cstdint>

extern "C" {
/// Version of this interface; eldr_vllm/native.py checks it.
int eldr_scatter_version();

/// Adds a step to the table; shapes as in scatter_index.h. `stream` is a cudaStream_t (ignored on the host).
/// count_bytes: 1 or 2; slot_bytes: 4 or 8. Device: only launches, never waits, may be captured in a CUDA
/// graph. Returns 0, a cudaError_t, or -1 for sizes that are not supported.
int eldr_scatter_add(void* stream, void* rows, std::int32_t count_bytes, std::int32_t* missing,
                     const std::int16_t* ids, const void* slots, std::int32_t slot_bytes, std::int32_t tokens,
                     std::int32_t blocks, std::int32_t block_size, std::int32_t layers, std::int32_t experts,
                     std::int32_t top_k);
}
