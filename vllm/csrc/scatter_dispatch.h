// SPDX-License-Identifier: Apache-2.0
// From the sizes given at run time to the types known at compile time; common to device and host.
#pragma once

#include <cstdint>

#include "scatter_index.h"

namespace eldr {

/// Calls run(count type's tag, slot type's tag) or returns -1 for sizes that are not supported.
template <typename Run>
int dispatch(std::int32_t count_bytes, std::int32_t slot_bytes, const ScatterShape& shape, Run&& run) {
  if (shape.tokens < 0 || shape.blocks < 1 || shape.block_size < 1 || shape.layers < 1 || shape.experts < 1 ||
      shape.top_k < 1)
    return -1;
  if (shape.tokens == 0) return 0;
  if (count_bytes == 1 && slot_bytes == 4) return run(std::uint8_t{}, std::int32_t{});
  if (count_bytes == 1 && slot_bytes == 8) return run(std::uint8_t{}, std::int64_t{});
  if (count_bytes == 2 && slot_bytes == 4) return run(std::int16_t{}, std::int32_t{});
  if (count_bytes == 2 && slot_bytes == 8) return run(std::int16_t{}, std::int64_t{});
  return -1;
}

}  // namespace eldr
