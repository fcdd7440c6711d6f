// SPDX-License-Identifier: Apache-2.0
// Where a step's expert choices go in the table of counts. The same code runs on the device (scatter.cu) and
// on the host (scatter_host.cpp), so that its arithmetic is tested without a GPU.
//
// Shapes, row-major: rows [blocks + 1][layers][experts] of uint8 or int16; missing [blocks + 1] of int32; ids
// [tokens][layers][top_k] of int16; slots [tokens] of int32 or int64, slot = block * block_size + place,
// below 0: no place. The last row is a spare one and is not touched here.
//
// Tokens of one block stand next to each other in a step, in the order of their places (a run). One thread
// takes one layer of one run, so no two threads write to the same counts and nothing has to be atomic.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define ELDR_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ELDR_HOST_DEVICE inline
#endif

namespace eldr {

/// Sizes of the arrays; see above. All above 0.
struct ScatterShape {
  std::int32_t tokens;  ///< of this step
  std::int32_t blocks;
  std::int32_t block_size;
  std::int32_t layers;
  std::int32_t experts;
  std::int32_t top_k;
};

/// The block of a slot, or -1 for a slot that is no place of the table.
template <typename Slot>
ELDR_HOST_DEVICE std::int64_t block_of(Slot slot, const ScatterShape& shape) {
  if (slot < 0) return -1;
  const std::int64_t block = static_cast<std::int64_t>(slot) / shape.block_size;
  return block < shape.blocks ? block : -1;
}

/// Whether a token is the first of its run.
template <typename Slot>
ELDR_HOST_DEVICE bool begins_run(const Slot* slots, std::int32_t token, const ScatterShape& shape) {
  const std::int64_t block = block_of(slots[token], shape);
  return block >= 0 && (token == 0 || block_of(slots[token - 1], shape) != block);
}

/// First count of a layer of a block.
ELDR_HOST_DEVICE std::int64_t row_offset(std::int64_t block, std::int32_t layer, const ScatterShape& shape) {
  return (block * shape.layers + layer) * shape.experts;
}

/// First id of a layer of a token.
ELDR_HOST_DEVICE std::int64_t id_offset(std::int32_t token, std::int32_t layer, const ScatterShape& shape) {
  return (static_cast<std::int64_t>(token) * shape.layers + layer) * shape.top_k;
}

/// Adds one layer of the run that begins at `token`. A token at the first place of its block overwrites what
/// the block's former life left. Ids outside 0..experts-1 are no choice.
template <typename Count, typename Slot>
ELDR_HOST_DEVICE void add_run(Count* rows, std::int32_t* missing, const std::int16_t* ids, const Slot* slots,
                              std::int32_t token, std::int32_t layer, const ScatterShape& shape) {
  const std::int64_t block = block_of(slots[token], shape);
  Count* row = rows + row_offset(block, layer, shape);
  for (; token < shape.tokens && block_of(slots[token], shape) == block; ++token) {
    if (static_cast<std::int64_t>(slots[token]) % shape.block_size == 0) {
      for (std::int32_t expert = 0; expert < shape.experts; ++expert) row[expert] = 0;
      if (layer == 0) missing[block] = 0;
    }
    const std::int16_t* chosen = ids + id_offset(token, layer, shape);
    for (std::int32_t k = 0; k < shape.top_k; ++k) {
      const std::int32_t expert = chosen[k];
      if (expert >= 0 && expert < shape.experts) row[expert] = static_cast<Count>(row[expert] + 1);
    }
  }
}

}  // namespace eldr
