// SPDX-License-Identifier: Apache-2.0
// Counts from a worker, field by field: what is accepted has the announced shape and survives the wire again.
#include <cstring>
#include <string>

#include "lib/base/digest.h"
#include "lib/signature/counts.h"
#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {
namespace {

using namespace signature;

/// Takes fields off the front of the input; zeros once it is used up.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> input) : rest_(input) {}
  template <class T>
  T take() {
    T value{};
    const std::size_t size = std::min(sizeof(T), rest_.size());
    if (size > 0) std::memcpy(&value, rest_.data(), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  std::string_view rest() const { return as_text(rest_); }

 private:
  std::span<const std::byte> rest_;
};

/// Input: flags, version, experts, tokens, counted, number of layers, layers, then the payload as base64 text
/// or, by a flag, as the bytes that it encodes.
void run(std::span<const std::byte> input) {
  Fields fields(input);
  const auto flags = fields.take<std::uint8_t>();
  WireCounts wire;
  wire.version = fields.take<std::int8_t>();
  wire.experts = (flags & 1U) != 0 ? fields.take<std::uint64_t>() : fields.take<std::uint8_t>();
  wire.tokens = (flags & 1U) != 0 ? fields.take<std::uint64_t>() : fields.take<std::uint16_t>();
  wire.counted = (flags & 1U) != 0 ? fields.take<std::uint64_t>() : fields.take<std::uint16_t>();
  const auto layers = fields.take<std::uint16_t>() % 1024U;
  for (std::size_t i = 0; i < layers; ++i) {
    wire.layers.push_back((flags & 1U) != 0 ? fields.take<std::int64_t>() : fields.take<std::uint8_t>());
  }
  wire.dtype = (flags & 2U) != 0 ? "u16" : (flags & 4U) != 0 ? "u32" : fields.rest().substr(0, 3);
  const std::string encoded = base64_encode(as_bytes(fields.rest()));
  wire.counts_base64 = (flags & 8U) != 0 ? encoded : fields.rest();

  const auto counts = decode_wire_counts(wire);
  if (!counts) {
    require(counts.error().code == Code::kInvalid && counts.error().message.starts_with("eldr."),
            "a refusal names its field");
    return;
  }
  require(counts->counts.size() == counts->layers.size() * counts->experts,
          "counts have the announced shape");
  require(counts->coverage() >= 0 && counts->coverage() <= 1, "coverage is a share");
  for (std::size_t row = 0; row < counts->layers.size(); ++row) {
    require(counts->row_of(counts->layers[row]) == static_cast<int>(row), "every layer is there once");
  }
  const std::string text = encode_wire_counts(*counts, wire.dtype == "u32");
  wire.counts_base64 = text;
  const auto again = decode_wire_counts(wire);
  require(again.has_value() && again->counts == counts->counts, "counts survive the wire");
}

/// The inverse of what run() reads, for small fields.
Bytes input_of(std::uint8_t flags, std::uint8_t experts, const std::vector<std::uint8_t>& layers,
               std::string_view payload) {
  std::string text;
  text += static_cast<char>(flags);
  text += '\x01';
  text += static_cast<char>(experts);
  text.append("\x2c\x01\x2c\x01", 4);  // 300 tokens, 300 counted
  text += static_cast<char>(layers.size());
  text += '\0';
  for (const std::uint8_t layer : layers) text += static_cast<char>(layer);
  text += payload;
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::vector<Bytes> seeds() {
  const std::string data(12, '\x05');
  return {input_of(2 | 8, 2, {1, 4, 7}, data), input_of(4 | 8, 3, {0}, data),
          input_of(2, 2, {1, 4, 7}, base64_encode(as_bytes(data))),
          input_of(4, 3, {9}, base64_encode(as_bytes(data))), input_of(0, 2, {1}, "u16=")};
}

ELDR_FUZZ_TARGET(wire_counts, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
