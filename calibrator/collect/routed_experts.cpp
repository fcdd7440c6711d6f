// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/routed_experts.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "calibrator/collect/npy.h"
#include "lib/base/digest.h"
#include "lib/signature/counts.h"

namespace eldr::calibrator {
namespace {

constexpr std::size_t kMaxTopK = 64;

Result<RoutedExperts> from_npy(std::span<const std::byte> bytes) {
  auto cube = parse_npy(bytes);
  if (!cube) {
    return failure(cube.error());
  }
  return RoutedExperts{cube->shape[0], cube->shape[1], cube->shape[2], std::move(cube->values)};
}

/// Plain int32. The number of rows comes from the usage, the number of layers from what is left.
Result<RoutedExperts> from_int32(std::span<const std::byte> bytes, std::uint64_t tokens, std::size_t top_k) {
  if (top_k == 0) {
    return failure(Code::kInvalid,
                   "is plain int32 (SGLang), which does not say its shape: --top-k is needed");
  }
  if (bytes.size() % sizeof(std::int32_t) != 0) {
    return failure(Code::kInvalid,
                   fmt::format("{} bytes: neither a .npy file nor whole int32 numbers", bytes.size()));
  }
  const std::size_t elements = bytes.size() / sizeof(std::int32_t);
  const std::uint64_t rows = tokens == 0 ? 0 : tokens - 1;
  if (rows == 0 || elements % (rows * top_k) != 0) {
    return failure(Code::kInvalid, fmt::format("{} numbers are not {} tokens of whole layers of {} experts",
                                               elements, rows, top_k));
  }
  RoutedExperts routed{rows, elements / (rows * top_k), top_k, {}};
  routed.ids.resize(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint32_t value = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) {
      value |= std::to_integer<std::uint32_t>(bytes[4 * i + byte]) << (8 * byte);
    }
    if (value >= signature::kMaxExperts) {
      return failure(Code::kInvalid,
                     fmt::format("expert id {}; must be from 0 to {}", static_cast<std::int32_t>(value),
                                 signature::kMaxExperts - 1));
    }
    routed.ids[i] = static_cast<std::uint16_t>(value);
  }
  return routed;
}

bool has_repeat(const std::uint16_t* ids, std::size_t top_k) {
  for (std::size_t a = 0; a + 1 < top_k; ++a) {
    for (std::size_t b = a + 1; b < top_k; ++b) {
      if (ids[a] == ids[b]) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<RoutedExperts> decode_routed_experts(std::string_view base64, std::uint64_t prompt_tokens,
                                            std::uint64_t completion_tokens, std::size_t top_k) {
  const auto bytes = base64_decode(base64, kMaxRoutedExpertsText);
  if (!bytes) {
    return failure(bytes.error().with_context("routed_experts"));
  }
  const std::uint64_t tokens = prompt_tokens + completion_tokens;
  auto routed = is_npy(*bytes) ? from_npy(*bytes) : from_int32(*bytes, tokens, top_k);
  if (!routed) {
    return failure(routed.error().with_context("routed_experts"));
  }
  if (routed->rows != tokens && routed->rows + 1 != tokens) {
    return failure(Code::kInvalid,
                   fmt::format("routed_experts: {} rows; the usage says {} prompt and {} completion tokens, "
                               "which gives {} rows",
                               routed->rows, prompt_tokens, completion_tokens, tokens == 0 ? 0 : tokens - 1));
  }
  if (routed->layers == 0 || routed->layers > signature::kMaxLayers || routed->top_k == 0 ||
      routed->top_k > kMaxTopK) {
    return failure(
        Code::kInvalid,
        fmt::format("routed_experts: {} layers and {} experts a token; must be from 1 to {} and 1 to {}",
                    routed->layers, routed->top_k, signature::kMaxLayers, kMaxTopK));
  }
  return routed;
}

Result<RequestCounts> count_experts(const RoutedExperts& routed, std::uint32_t prompt_tokens,
                                    bool keep_decode_experts) {
  if (routed.rows < prompt_tokens || prompt_tokens == 0) {
    return failure(Code::kInvalid,
                   fmt::format("routed_experts: {} rows for {} prompt tokens", routed.rows, prompt_tokens));
  }
  const std::uint16_t largest =
      routed.ids.empty() ? std::uint16_t{0} : *std::max_element(routed.ids.begin(), routed.ids.end());
  if (largest >= signature::kMaxExperts) {
    return failure(Code::kInvalid, fmt::format("routed_experts: expert id {}; must be from 0 to {}", largest,
                                               signature::kMaxExperts - 1));
  }
  RequestCounts counts;
  counts.prompt_tokens = prompt_tokens;
  counts.decode_tokens = static_cast<std::uint32_t>(routed.rows - prompt_tokens);
  counts.layers = static_cast<std::uint32_t>(routed.layers);
  counts.top_k = static_cast<std::uint32_t>(routed.top_k);
  counts.width = largest + 1U;
  counts.prefill.assign(routed.layers * counts.width, 0);
  counts.decode.assign(routed.layers * counts.width, 0);
  counts.repeats.assign(routed.layers, 0);
  const std::uint16_t* ids = routed.ids.data();
  for (std::size_t row = 0; row < routed.rows; ++row) {
    auto& target = row < prompt_tokens ? counts.prefill : counts.decode;
    for (std::size_t layer = 0; layer < routed.layers; ++layer, ids += routed.top_k) {
      counts.repeats[layer] += has_repeat(ids, routed.top_k) ? 1 : 0;
      for (std::size_t k = 0; k < routed.top_k; ++k) {
        ++target[layer * counts.width + ids[k]];
      }
    }
  }
  if (keep_decode_experts) {
    counts.decode_experts.assign(
        routed.ids.begin() + static_cast<std::ptrdiff_t>(prompt_tokens * routed.layers * routed.top_k),
        routed.ids.end());
  }
  return counts;
}

}  // namespace eldr::calibrator
