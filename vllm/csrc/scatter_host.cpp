// SPDX-License-Identifier: Apache-2.0
// The device code's arithmetic on the host, thread by thread, for tests. Threads run in an order that no
// device promises either: backwards.
#include "scatter.h"
#include "scatter_dispatch.h"

int eldr_scatter_version() { return 1; }

int eldr_scatter_add(void* /*stream*/, void* rows, std::int32_t count_bytes, std::int32_t* missing,
                     const std::int16_t* ids, const void* slots, std::int32_t slot_bytes, std::int32_t tokens,
                     std::int32_t blocks, std::int32_t block_size, std::int32_t layers, std::int32_t experts,
                     std::int32_t top_k) {
  const eldr::ScatterShape shape{tokens, blocks, block_size, layers, experts, top_k};
  return eldr::dispatch(count_bytes, slot_bytes, shape, [&](auto count, auto slot) {
    using Count = decltype(count);
    using Slot = decltype(slot);
    const Slot* places = static_cast<const Slot*>(slots);
    for (std::int32_t token = shape.tokens - 1; token >= 0; --token) {
      if (!eldr::begins_run(places, token, shape)) continue;
      for (std::int32_t layer = shape.layers - 1; layer >= 0; --layer)
        eldr::add_run(static_cast<Count*>(rows), missing, ids, places, token, layer, shape);
    }
    return 0;
  });
}
