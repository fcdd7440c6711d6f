// SPDX-License-Identifier: Apache-2.0
// From the counts of single requests to a trace: one shape for all, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrator/collect/routed_experts.h"
#include "lib/base/status.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

struct TraceShape {
  std::string model = {};
  std::uint32_t experts = 0;                     ///< 0: derived
  std::vector<std::int32_t> layer_numbers = {};  ///< of the engine's rows; empty: 0, 1, 2 …
};

/// `counts[i]` is nullopt for a request that was refused; it is left out, with its label. Requests with no
/// decode tokens stay. A layer whose every token repeats one expert is dense (vLLM sends a row for each layer
/// of the model) and is left out; with top_k = 1 that cannot be told, and it is one whose every token of
/// every request has expert 0. kInvalid: shapes that differ between requests, an id that --experts excludes,
/// other layer numbers than rows, a layer that repeats experts in some tokens only, or nothing left.
Result<signature::Trace> build_trace(const TraceShape& shape,
                                     const std::vector<std::optional<RequestCounts>>& counts,
                                     const std::vector<std::string>& labels);

/// The smallest usual number of experts that is above `largest_id`: a multiple of 4 up to 64, of 8 above.
std::uint32_t usual_experts(std::uint32_t largest_id);

/// "0,2,4" or "1-26" or both mixed; ascending, each once, at most 512.
Result<std::vector<std::int32_t>> parse_layer_numbers(const std::string& text);

}  // namespace eldr::calibrator
