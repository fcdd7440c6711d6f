// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/trace.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/signature/counts.h"
#include "lib/signature/safetensors.h"
#include "lib/signature/tensor_values.h"
#include "lib/signature/text.h"

namespace eldr::signature {
namespace {

constexpr const char* kFormat = "eldr-trace/1";
constexpr std::size_t kMaxRequests = 1U << 24U;
constexpr std::size_t kNarrowExperts = 256;  ///< expert ids below it fit U8

const std::vector<std::string> kTensorNames = {"prefill_counts", "decode_counts",  "prompt_tokens",
                                               "decode_tokens",  "decode_experts", "decode_offsets"};

tl::unexpected<Error> invalid(const std::string& what, const std::string& why) {
  return failure(Code::kInvalid, "trace: " + what + ": " + why);
}
tl::unexpected<Error> in_trace(const Error& error) { return failure(error.with_context("trace")); }

// ---- what holds for every trace, read or about to be written ----

Status check_shapes(const Trace& trace) {
  const std::size_t n = trace.requests();
  const std::size_t l = trace.layers.size();
  if (n == 0 || n > kMaxRequests)
    return invalid("prompt_tokens", std::to_string(n) + " requests; must be 1 to 16777216");
  if (l == 0 || l > kMaxLayers) return invalid("layers", std::to_string(l) + " layers; must be 1 to 512");
  if (trace.experts == 0 || trace.experts > kMaxExperts) {
    return invalid("experts", std::to_string(trace.experts) + "; must be 1 to 4096");
  }
  if (trace.top_k == 0 || trace.top_k > trace.experts) {
    return invalid("top_k", std::to_string(trace.top_k) + "; must be 1 to the " +
                                std::to_string(trace.experts) + " experts");
  }
  const std::size_t entries = n * l * trace.experts;  // at most 2^24 * 2^9 * 2^12
  if (trace.prefill_counts.size() != entries)
    return invalid("prefill_counts", "must have requests x layers x experts entries");
  if (trace.decode_counts.size() != entries)
    return invalid("decode_counts", "must have requests x layers x experts entries");
  if (trace.decode_tokens.size() != n) return invalid("decode_tokens", "must have one entry a request");
  if (!trace.labels.empty() && trace.labels.size() != n) {
    return invalid("labels", std::to_string(trace.labels.size()) +
                                 " labels; must be none or one for each of the " + std::to_string(n) +
                                 " requests");
  }
  return {};
}

Status check_layers(const std::vector<std::int32_t>& layers) {
  if (layers.front() < 0)
    return invalid("layers", "layer " + std::to_string(layers.front()) + " is negative");
  const auto wrong =
      std::adjacent_find(layers.begin(), layers.end(), [](std::int32_t a, std::int32_t b) { return a >= b; });
  if (wrong != layers.end())
    return invalid("layers",
                   "must ascend; layer " + std::to_string(*wrong) + " does not come before the next");
  return {};
}

/// A token picks top_k different experts in each layer: no expert is picked by more tokens than there are,
/// nor a layer more than top_k times a token. Fewer is allowed: an engine need not report every token.
Status check_counts(const Trace& trace, const std::string& name, const std::vector<std::uint32_t>& counts,
                    const std::vector<std::uint32_t>& tokens) {
  const std::size_t layers = trace.layers.size();
  const std::uint32_t* row = counts.data();
  for (std::size_t request = 0; request < tokens.size(); ++request) {
    const std::uint64_t most = std::uint64_t{tokens[request]} * trace.top_k;
    for (std::size_t layer = 0; layer < layers; ++layer, row += trace.experts) {
      const std::uint64_t picks = std::accumulate(row, row + trace.experts, std::uint64_t{0});
      const std::uint32_t largest = *std::max_element(row, row + trace.experts);
      if (picks <= most && largest <= tokens[request]) continue;
      return invalid(name, "request " + std::to_string(request) + ", layer " +
                               std::to_string(trace.layers[layer]) + ": " + std::to_string(picks) +
                               " picks, at most " + std::to_string(largest) + " of one expert, by " +
                               std::to_string(tokens[request]) + " tokens that pick " +
                               std::to_string(trace.top_k) + " each");
    }
  }
  return {};
}

Status check_decode_experts(const Trace& trace) {
  const auto& offsets = trace.decode_offsets;
  if (offsets.empty()) {
    return trace.decode_experts.empty()
               ? Status{}
               : Status{invalid("decode_offsets", "missing, and decode_experts is there")};
  }
  const std::size_t per_token = trace.layers.size() * trace.top_k;
  if (trace.decode_experts.size() % per_token != 0)
    return invalid("decode_experts", "must have layers x top_k entries a token");
  const std::size_t tokens = trace.decode_experts.size() / per_token;
  const bool right = offsets.size() == trace.requests() + 1 && offsets.front() == 0 &&
                     offsets.back() == tokens && std::is_sorted(offsets.begin(), offsets.end());
  if (!right)
    return invalid("decode_offsets",
                   "must ascend from 0 to the " + std::to_string(tokens) + " tokens, one more than requests");
  for (std::size_t request = 0; request < trace.requests(); ++request) {
    const std::uint64_t own = offsets[request + 1] - offsets[request];
    if (own > trace.decode_tokens[request]) {
      return invalid("decode_offsets", "request " + std::to_string(request) + " owns " + std::to_string(own) +
                                           " tokens; it decoded " +
                                           std::to_string(trace.decode_tokens[request]));
    }
  }
  const auto wrong = std::find_if(trace.decode_experts.begin(), trace.decode_experts.end(),
                                  [&](std::uint16_t expert) { return expert >= trace.experts; });
  if (wrong != trace.decode_experts.end()) {
    return invalid("decode_experts",
                   "expert " + std::to_string(*wrong) + " of " + std::to_string(trace.experts));
  }
  return {};
}

Status check(const Trace& trace) {
  if (const Status shapes = check_shapes(trace); !shapes) return shapes;
  if (const Status layers = check_layers(trace.layers); !layers) return layers;
  if (const Status prefill = check_counts(trace, "prefill_counts", trace.prefill_counts, trace.prompt_tokens);
      !prefill) {
    return prefill;
  }
  if (const Status decode = check_counts(trace, "decode_counts", trace.decode_counts, trace.decode_tokens);
      !decode)
    return decode;
  return check_decode_experts(trace);
}

// ---- reading ----

Result<std::uint32_t> small_number(const SafetensorsFile& file, const std::string& key) {
  const auto text = file.meta(key);
  if (!text) return in_trace(text.error());
  const auto value = parse_unsigned(*text);
  if (!value || *value > kMaxExperts)
    return invalid("metadata " + key, in_quotes(*text) + "; must be a number of at most 4096");
  return static_cast<std::uint32_t>(*value);
}

Status read_metadata(const SafetensorsFile& file, Trace& trace) {
  const auto format = file.meta("format");
  if (!format) return in_trace(format.error());
  if (*format != kFormat)
    return invalid("metadata format", in_quotes(*format) + "; must be \"eldr-trace/1\"");
  const auto model = file.meta("model");
  if (!model) return in_trace(model.error());
  trace.model = *model;
  const auto layers = file.meta("layers");
  if (!layers) return in_trace(layers.error());
  auto numbers = parse_json_ints(*layers, kMaxLayers);
  if (!numbers) return invalid("metadata layers", numbers.error().message);
  trace.layers = std::move(*numbers);
  const auto experts = small_number(file, "experts");
  if (!experts) return failure(experts.error());
  trace.experts = *experts;
  const auto top_k = small_number(file, "top_k");
  if (!top_k) return failure(top_k.error());
  trace.top_k = *top_k;
  if (const auto labels = file.meta("labels")) {
    auto list = parse_json_strings(*labels, kMaxRequests);
    if (!list) return invalid("metadata labels", list.error().message);
    trace.labels = std::move(*list);
    if (trace.labels.empty())
      return invalid("metadata labels", "must have one label a request, or be absent");
  }
  return {};
}

template <class T>
Status read_tensor(const SafetensorsFile& file, const std::string& name, DType dtype,
                   const std::vector<std::size_t>& shape, std::vector<T>& out) {
  const auto view = file.get(name, dtype, shape);
  if (!view) return in_trace(view.error());
  out = values_of<T>(*view);
  return {};
}

Status read_decode_experts(const SafetensorsFile& file, Trace& trace) {
  const bool experts = file.has("decode_experts");
  if (experts != file.has("decode_offsets"))
    return invalid("decode_experts", "needs decode_offsets, and the other way round");
  if (!experts) return {};
  const std::vector<std::size_t> shape = {0, trace.layers.size(), trace.top_k};
  if (file.tensors().at("decode_experts").dtype == DType::kU8) {
    std::vector<std::uint8_t> narrow;
    if (const Status read = read_tensor(file, "decode_experts", DType::kU8, shape, narrow); !read)
      return read;
    trace.decode_experts.assign(narrow.begin(), narrow.end());
  } else if (const Status read =
                 read_tensor(file, "decode_experts", DType::kU16, shape, trace.decode_experts);
             !read) {
    return read;
  }
  return read_tensor(file, "decode_offsets", DType::kU64, {trace.requests() + 1}, trace.decode_offsets);
}

Status read_tensors(const SafetensorsFile& file, Trace& trace) {
  for (const auto& [name, view] : file.tensors()) {
    if (std::find(kTensorNames.begin(), kTensorNames.end(), name) == kTensorNames.end()) {
      return invalid("tensor " + in_quotes(name), "not part of the format");
    }
  }
  if (const Status read = read_tensor(file, "prompt_tokens", DType::kU32, {0}, trace.prompt_tokens); !read)
    return read;
  const std::size_t n = trace.requests();
  // An extent of 0 would mean "any" to get().
  if (n == 0) return invalid("prompt_tokens", "0 requests; must be 1 or more");
  if (trace.layers.empty() || trace.experts == 0 || trace.top_k == 0) {
    return invalid("metadata", "layers, experts and top_k must not be empty or 0");
  }
  const std::vector<std::size_t> shape = {n, trace.layers.size(), trace.experts};
  if (const Status read = read_tensor(file, "decode_tokens", DType::kU32, {n}, trace.decode_tokens); !read)
    return read;
  if (const Status read = read_tensor(file, "prefill_counts", DType::kU32, shape, trace.prefill_counts);
      !read)
    return read;
  if (const Status read = read_tensor(file, "decode_counts", DType::kU32, shape, trace.decode_counts); !read)
    return read;
  return read_decode_experts(file, trace);
}

}  // namespace

std::span<const std::uint32_t> Trace::prefill(std::size_t request) const {
  const std::size_t row = layers.size() * experts;
  return std::span(prefill_counts).subspan(request * row, row);
}

std::span<const std::uint32_t> Trace::decode(std::size_t request) const {
  const std::size_t row = layers.size() * experts;
  return std::span(decode_counts).subspan(request * row, row);
}

Result<Trace> parse_trace(std::span<const std::byte> bytes) {
  const auto file = SafetensorsFile::parse(bytes);
  if (!file) return in_trace(file.error());
  Trace trace;
  if (const Status metadata = read_metadata(*file, trace); !metadata) return failure(metadata.error());
  if (const Status tensors = read_tensors(*file, trace); !tensors) return failure(tensors.error());
  if (const Status right = check(trace); !right) return failure(right.error());
  return trace;
}

Result<std::vector<std::byte>> serialize_trace(const Trace& trace) {
  if (const Status right = check(trace); !right) return failure(right.error());
  std::map<std::string, std::string> metadata = {{"format", kFormat},
                                                 {"model", trace.model},
                                                 {"layers", format_json_ints(trace.layers)},
                                                 {"experts", std::to_string(trace.experts)},
                                                 {"top_k", std::to_string(trace.top_k)}};
  if (!trace.labels.empty()) {
    auto labels = format_json_strings(trace.labels);
    if (!labels) return invalid("labels", labels.error().message);
    metadata["labels"] = std::move(*labels);
  }

  const std::size_t n = trace.requests();
  const std::size_t l = trace.layers.size();
  const std::size_t e = trace.experts;
  // Wide types first, so that every tensor is aligned to its type.
  std::vector<TensorData> tensors;
  const bool with_experts = !trace.decode_offsets.empty();
  if (with_experts)
    tensors.push_back({"decode_offsets", DType::kU64, {n + 1}, bytes_of(trace.decode_offsets)});
  tensors.push_back({"decode_counts", DType::kU32, {n, l, e}, bytes_of(trace.decode_counts)});
  tensors.push_back({"decode_tokens", DType::kU32, {n}, bytes_of(trace.decode_tokens)});
  tensors.push_back({"prefill_counts", DType::kU32, {n, l, e}, bytes_of(trace.prefill_counts)});
  tensors.push_back({"prompt_tokens", DType::kU32, {n}, bytes_of(trace.prompt_tokens)});
  std::vector<std::uint8_t> narrow;
  if (with_experts) {
    const std::vector<std::size_t> shape = {static_cast<std::size_t>(trace.decode_offsets.back()), l,
                                            trace.top_k};
    if (e <= kNarrowExperts) {
      narrow.assign(trace.decode_experts.begin(), trace.decode_experts.end());
      tensors.push_back({"decode_experts", DType::kU8, shape, bytes_of(narrow)});
    } else {
      tensors.push_back({"decode_experts", DType::kU16, shape, bytes_of(trace.decode_experts)});
    }
  }
  return serialize_safetensors(tensors, metadata);
}

Result<Trace> load_trace(const std::string& path) {
  const auto bytes = read_file(path, kMaxTraceFile);
  if (!bytes) return failure(bytes.error());
  auto trace = parse_trace(*bytes);
  if (!trace) return failure(trace.error().with_context(path));
  return trace;
}

Status save_trace(const std::string& path, const Trace& trace) {
  const auto bytes = serialize_trace(trace);
  if (!bytes) return failure(bytes.error());
  return write_file_atomically(path, *bytes);
}

}  // namespace eldr::signature
