// SPDX-License-Identifier: Apache-2.0
// What an engine says about one answer: the experts of each token in each layer.
//
// vLLM (--enable-return-routed-experts): base64 of a .npy, uint8 or uint16, [tokens - 1][layers][top_k].
// SGLang (return_routed_experts): base64 of plain little-endian int32, the same order, without a shape.
// Rows 0 … P-1 are the prompt's P tokens; the rest are generated tokens. The last generated token was never
// fed to the model and has no row.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::calibrator {

struct RoutedExperts {
  std::size_t rows = 0;
  std::size_t layers = 0;
  std::size_t top_k = 0;
  std::vector<std::uint16_t> ids;  ///< [rows][layers][top_k], logical expert ids
};

/// Largest answer that is decoded: 256 MiB of base64.
inline constexpr std::size_t kMaxRoutedExpertsText = std::size_t{256} << 20U;

/// `prompt_tokens` and `completion_tokens` are the answer's usage: rows must be their sum, or one less.
/// `top_k` is needed for SGLang's form alone (0: unknown). kInvalid says what is wrong.
Result<RoutedExperts> decode_routed_experts(std::string_view base64, std::uint64_t prompt_tokens,
                                            std::uint64_t completion_tokens, std::size_t top_k);

/// One request's counts. A value type.
struct RequestCounts {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t decode_tokens = 0;  ///< rows after the prompt's
  std::uint32_t layers = 0;         ///< rows that the engine sends for a token
  std::uint32_t top_k = 0;
  std::uint32_t width = 0;                    ///< columns: one more than the largest id
  std::vector<std::uint32_t> prefill;         ///< [layers][width]
  std::vector<std::uint32_t> decode;          ///< [layers][width]
  std::vector<std::uint32_t> repeats;         ///< [layers]: tokens whose experts are not distinct
  std::vector<std::uint16_t> decode_experts;  ///< [decode_tokens][layers][top_k], or empty
};

/// Counts rows by layer and expert. kInvalid: fewer rows than prompt tokens, or an id over the limit of
/// 4,095.
Result<RequestCounts> count_experts(const RoutedExperts& routed, std::uint32_t prompt_tokens,
                                    bool keep_decode_experts);

}  // namespace eldr::calibrator
