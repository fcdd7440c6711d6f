// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/trace_builder.h"

#include <algorithm>
#include <numeric>

#include <spdlog/fmt/fmt.h>

#include "calibrator/number_ranges.h"
#include "lib/signature/counts.h"

namespace eldr::calibrator {
namespace {

using Requests = std::vector<const RequestCounts*>;

Status check_same_shape(const Requests& requests) {
  for (const RequestCounts* request : requests) {
    if (request->layers != requests.front()->layers || request->top_k != requests.front()->top_k) {
      return failure(
          Code::kInvalid,
          fmt::format("engine: answers of different shapes: {} layers, top {} and {} layers, top {}",
                      requests.front()->layers, requests.front()->top_k, request->layers, request->top_k));
    }
  }
  return {};
}

Result<std::uint32_t> experts_of(const TraceShape& shape, const Requests& requests) {
  std::uint32_t width = 0;
  for (const RequestCounts* request : requests) {
    width = std::max(width, request->width);
  }
  if (shape.experts == 0) {
    return std::max(usual_experts(width - 1), requests.front()->top_k);
  }
  if (width > shape.experts) {
    return failure(Code::kInvalid,
                   fmt::format("--experts {}: the engine used expert {}", shape.experts, width - 1));
  }
  return shape.experts;
}

/// The engine's rows that are mixture-of-experts layers.
Result<std::vector<std::uint32_t>> sparse_rows(const Requests& requests) {
  const RequestCounts& first = *requests.front();
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < first.layers; ++row) {
    std::uint64_t tokens = 0;
    std::uint64_t repeats = 0;
    std::uint64_t others_than_zero = 0;
    for (const RequestCounts* request : requests) {
      const std::uint64_t rows_sent = std::uint64_t{request->prompt_tokens} + request->decode_tokens;
      tokens += rows_sent;
      repeats += request->repeats[row];
      const std::size_t start = std::size_t{row} * request->width;
      others_than_zero += rows_sent * first.top_k - request->prefill[start] - request->decode[start];
    }
    const bool dense = first.top_k > 1 ? repeats == tokens : others_than_zero == 0;
    if (!dense && repeats > 0) {
      return failure(Code::kInvalid, fmt::format("engine: layer {} repeats an expert in {} of {} tokens", row,
                                                 repeats, tokens));
    }
    if (!dense) {
      rows.push_back(row);
    }
  }
  if (rows.empty()) {
    return failure(Code::kInvalid,
                   "engine: no layer uses different experts; is it a mixture-of-experts model?");
  }
  return rows;
}

Result<std::vector<std::int32_t>> numbers_of(const TraceShape& shape, std::uint32_t layers) {
  if (shape.layer_numbers.empty()) {
    std::vector<std::int32_t> numbers(layers);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  if (shape.layer_numbers.size() != layers) {
    return failure(Code::kInvalid, fmt::format("--layer-numbers: {} numbers; the engine sends {} layers",
                                               shape.layer_numbers.size(), layers));
  }
  return shape.layer_numbers;
}

void append(std::vector<std::uint32_t>& target, const std::vector<std::uint32_t>& counts, std::uint32_t width,
            const std::vector<std::uint32_t>& rows, std::uint32_t experts) {
  for (const std::uint32_t row : rows) {
    const auto start = counts.begin() + static_cast<std::ptrdiff_t>(std::size_t{row} * width);
    target.insert(target.end(), start, start + width);
    target.resize(target.size() + experts - width, 0);
  }
}

}  // namespace

std::uint32_t usual_experts(std::uint32_t largest_id) {
  const std::uint32_t needed = largest_id + 1;
  const std::uint32_t step = needed <= 64 ? 4 : 8;
  return (needed + step - 1) / step * step;
}

Result<signature::Trace> build_trace(const TraceShape& shape,
                                     const std::vector<std::optional<RequestCounts>>& counts,
                                     const std::vector<std::string>& labels) {
  Requests requests;
  signature::Trace trace;
  trace.model = shape.model;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i]) {
      requests.push_back(&*counts[i]);
      trace.labels.push_back(labels[i]);
    }
  }
  if (requests.empty()) {
    return failure(Code::kInvalid, "no request was answered");
  }
  if (std::all_of(trace.labels.begin(), trace.labels.end(),
                  [](const auto& label) { return label.empty(); })) {
    trace.labels.clear();
  }
  if (const Status same = check_same_shape(requests); !same) {
    return failure(same.error());
  }
  const auto experts = experts_of(shape, requests);
  const auto numbers = numbers_of(shape, requests.front()->layers);
  const auto rows = sparse_rows(requests);
  if (!experts || !numbers || !rows) {
    return failure(!experts ? experts.error() : !numbers ? numbers.error() : rows.error());
  }
  trace.experts = *experts;
  trace.top_k = requests.front()->top_k;
  for (const std::uint32_t row : *rows) {
    trace.layers.push_back((*numbers)[row]);
  }
  trace.prefill_counts.reserve(requests.size() * rows->size() * *experts);
  trace.decode_counts.reserve(requests.size() * rows->size() * *experts);
  const bool keep_tokens =
      std::all_of(requests.begin(), requests.end(),
                  [](const RequestCounts* request) {
                    return request->decode_experts.size() ==
                           std::size_t{request->decode_tokens} * request->layers * request->top_k;
                  }) &&
      std::any_of(requests.begin(), requests.end(), [](const auto* r) { return !r->decode_experts.empty(); });
  if (keep_tokens) {
    trace.decode_offsets.push_back(0);
  }
  for (const RequestCounts* request : requests) {
    append(trace.prefill_counts, request->prefill, request->width, *rows, *experts);
    append(trace.decode_counts, request->decode, request->width, *rows, *experts);
    trace.prompt_tokens.push_back(request->prompt_tokens);
    trace.decode_tokens.push_back(request->decode_tokens);
    if (keep_tokens) {
      trace.decode_offsets.push_back(trace.decode_offsets.back() + request->decode_tokens);
      for (std::size_t token = 0; token < request->decode_tokens; ++token) {
        for (const std::uint32_t row : *rows) {
          const auto start = request->decode_experts.begin() +
                             static_cast<std::ptrdiff_t>((token * request->layers + row) * request->top_k);
          trace.decode_experts.insert(trace.decode_experts.end(), start, start + request->top_k);
        }
      }
    }
  }
  return trace;
}

Result<std::vector<std::int32_t>> parse_layer_numbers(const std::string& text) {
  auto numbers = parse_number_ranges(text, 65535, signature::kMaxLayers);
  if (!numbers) {
    return failure(
        Code::kInvalid,
        fmt::format("--layer-numbers \"{}\": must be ascending numbers and ranges like 1-26 or 0,2,4, at "
                    "most {}",
                    text.substr(0, 100), signature::kMaxLayers));
  }
  return std::move(*numbers);
}

}  // namespace eldr::calibrator
