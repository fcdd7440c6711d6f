// SPDX-License-Identifier: Apache-2.0
// A calibration trace: what N requests asked of the experts in prefill and in decode (format eldr-trace/1,
// docs/reference/formats.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/status.h"

namespace eldr::signature {

/// Largest file.
inline constexpr std::size_t kMaxTraceFile = 8ULL << 30U;

/// Shapes: N requests, L MoE layers, E experts. Memory 8*N*L*E bytes for the counts.
struct Trace {
  std::string model;
  std::vector<std::int32_t> layers;  ///< model layer numbers [L], ascending
  std::uint32_t experts = 0;         ///< E
  std::uint32_t top_k = 0;
  std::vector<std::uint32_t> prefill_counts;  ///< [N][L][E]
  std::vector<std::uint32_t> decode_counts;   ///< [N][L][E]
  std::vector<std::uint32_t> prompt_tokens;   ///< [N]
  std::vector<std::uint32_t> decode_tokens;   ///< [N]
  std::vector<std::string> labels;            ///< [N] or empty
  std::vector<std::uint16_t> decode_experts;  ///< [T][L][top_k] or empty: per decode token, for simulation
  std::vector<std::uint64_t>
      decode_offsets;  ///< [N+1] or empty: request r owns tokens [offsets[r], offsets[r+1])

  std::size_t requests() const { return prompt_tokens.size(); }
  std::span<const std::uint32_t> prefill(std::size_t request) const;  ///< [L*E]
  std::span<const std::uint32_t> decode(std::size_t request) const;   ///< [L*E]
};

Result<Trace> parse_trace(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> serialize_trace(const Trace& trace);
/// At most kMaxTraceFile bytes.
Result<Trace> load_trace(const std::string& path);
Status save_trace(const std::string& path, const Trace& trace);

}  // namespace eldr::signature
