// SPDX-License-Identifier: Apache-2.0
// What a request's prompt asked of the experts: how many of its tokens each layer's gate sent to each expert.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::signature {

/// Counts of one request over some of a model's MoE layers. A value type; no thread-safety of its own.
struct ExpertCounts {
  std::vector<std::int32_t> layers;   ///< model layer numbers, one for each row
  std::uint32_t experts = 0;          ///< logical experts a layer, columns
  std::vector<std::uint32_t> counts;  ///< [layers.size()][experts], row-major
  std::uint32_t tokens = 0;           ///< prompt tokens of the request
  std::uint32_t counted = 0;          ///< prompt tokens that these counts cover

  /// Share of the prompt that was counted, 0 when tokens is 0.
  double coverage() const { return tokens == 0 ? 0.0 : static_cast<double>(counted) / tokens; }
  /// Row of a model layer number, or -1.
  int row_of(std::int32_t layer) const;
};

/// The `kv_transfer_params.eldr` object of a prefill answer, in its parts (JSON parsing is the caller's).
struct WireCounts {
  std::int64_t version = 0;
  std::uint64_t experts = 0;
  std::vector<std::int64_t> layers;
  std::string_view dtype;          ///< "u16" or "u32"
  std::string_view counts_base64;  ///< little endian, row-major
  std::uint64_t tokens = 0;
  std::uint64_t counted = 0;
};

/// Limits on what a worker may send: 512 layers, 4,096 experts, so 2 Mi entries.
inline constexpr std::size_t kMaxLayers = 512;
inline constexpr std::size_t kMaxExperts = 4096;

/// Checks every field and decodes. kInvalid with the field's name otherwise.
Result<ExpertCounts> decode_wire_counts(const WireCounts& wire);
/// The base64 payload of `counts` as u16 (saturating) or u32.
std::string encode_wire_counts(const ExpertCounts& counts, bool wide);

}  // namespace eldr::signature
