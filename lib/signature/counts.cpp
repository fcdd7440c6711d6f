// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/counts.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "lib/base/digest.h"
#include "lib/signature/text.h"

namespace eldr::signature {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little endian");

constexpr std::int64_t kWireVersion = 1;

tl::unexpected<Error> invalid(const std::string& field, const std::string& why) {
  return failure(Code::kInvalid, "eldr." + field + ": " + why);
}

Result<std::vector<std::int32_t>> decode_layers(const std::vector<std::int64_t>& wire) {
  if (wire.empty() || wire.size() > kMaxLayers) {
    return invalid("layers",
                   std::to_string(wire.size()) + " layers; must be 1 to " + std::to_string(kMaxLayers));
  }
  std::vector<std::int32_t> layers;
  layers.reserve(wire.size());
  for (const std::int64_t layer : wire) {
    if (layer < 0 || layer > std::numeric_limits<std::int32_t>::max()) {
      return invalid("layers", "layer " + std::to_string(layer) + "; must be 0 to 2147483647");
    }
    layers.push_back(static_cast<std::int32_t>(layer));
  }
  auto sorted = layers;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return invalid("layers", "layer " + std::to_string(*twice) + " is there twice");
  return layers;
}

Status check_tokens(const WireCounts& wire) {
  if (wire.tokens > std::numeric_limits<std::uint32_t>::max()) {
    return invalid("tokens", std::to_string(wire.tokens) + "; must be at most 4294967295");
  }
  if (wire.counted > wire.tokens) {
    return invalid("counted", std::to_string(wire.counted) + "; must be at most the " +
                                  std::to_string(wire.tokens) + " tokens");
  }
  return {};
}

template <class T>
std::vector<std::uint32_t> widen(std::span<const std::byte> bytes) {
  std::vector<T> narrow(bytes.size() / sizeof(T));
  std::memcpy(narrow.data(), bytes.data(), narrow.size() * sizeof(T));
  return {narrow.begin(), narrow.end()};
}

}  // namespace

int ExpertCounts::row_of(std::int32_t layer) const {
  const auto found = std::find(layers.begin(), layers.end(), layer);
  return found == layers.end() ? -1 : static_cast<int>(found - layers.begin());
}

Result<ExpertCounts> decode_wire_counts(const WireCounts& wire) {
  if (wire.version != kWireVersion) return invalid("v", std::to_string(wire.version) + "; must be 1");
  if (wire.experts == 0 || wire.experts > kMaxExperts) {
    return invalid("experts", std::to_string(wire.experts) + "; must be 1 to " + std::to_string(kMaxExperts));
  }
  auto layers = decode_layers(wire.layers);
  if (!layers) return failure(layers.error());
  if (const Status tokens = check_tokens(wire); !tokens) return failure(tokens.error());

  const bool wide = wire.dtype == "u32";
  if (!wide && wire.dtype != "u16")
    return invalid("dtype", in_quotes(wire.dtype) + "; must be \"u16\" or \"u32\"");
  const std::size_t entries = layers->size() * wire.experts;
  const std::size_t size = entries * (wide ? 4 : 2);
  const auto bytes = base64_decode(wire.counts_base64, size);
  if (!bytes) return invalid("counts", bytes.error().message);
  if (bytes->size() != size) {
    return invalid("counts", std::to_string(bytes->size()) + " bytes; layers x experts of " +
                                 std::string(wire.dtype) + " take " + std::to_string(size));
  }
  ExpertCounts counts;
  counts.layers = std::move(*layers);
  counts.experts = static_cast<std::uint32_t>(wire.experts);
  counts.counts = wide ? widen<std::uint32_t>(*bytes) : widen<std::uint16_t>(*bytes);
  counts.tokens = static_cast<std::uint32_t>(wire.tokens);
  counts.counted = static_cast<std::uint32_t>(wire.counted);
  return counts;
}

std::string encode_wire_counts(const ExpertCounts& counts, bool wide) {
  if (wide) return base64_encode(std::as_bytes(std::span(counts.counts)));
  static constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();
  std::vector<std::uint16_t> narrow(counts.counts.size());
  std::transform(counts.counts.begin(), counts.counts.end(), narrow.begin(), [](std::uint32_t count) {
    return static_cast<std::uint16_t>(std::min<std::uint32_t>(count, kMost));
  });
  return base64_encode(std::as_bytes(std::span(narrow)));
}

}  // namespace eldr::signature
