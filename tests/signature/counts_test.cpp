// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/counts.h"

#include <gtest/gtest.h>

#include "lib/base/digest.h"

namespace eldr::signature {
namespace {

ExpertCounts some_counts() {
  ExpertCounts counts;
  counts.layers = {3, 0, 7};
  counts.experts = 4;
  counts.counts = {0, 1, 2, 3, 100, 65535, 65536, 4294967295U, 5, 0, 0, 9};
  counts.tokens = 900;
  counts.counted = 450;
  return counts;
}

/// Owns what a WireCounts points at.
struct Wire {
  explicit Wire(bool wide = true) : text(encode_wire_counts(some_counts(), wide)) {
    wire.version = 1;
    wire.experts = 4;
    wire.layers = {3, 0, 7};
    wire.dtype = wide ? "u32" : "u16";
    wire.counts_base64 = text;
    wire.tokens = 900;
    wire.counted = 450;
  }
  std::string text;
  WireCounts wire;
};

TEST(WireCounts, RoundTripWide) {
  const Wire sent(true);
  const auto got = decode_wire_counts(sent.wire);
  ASSERT_TRUE(got.has_value()) << got.error().to_string();
  const auto expected = some_counts();
  EXPECT_EQ(got->layers, expected.layers);
  EXPECT_EQ(got->experts, expected.experts);
  EXPECT_EQ(got->counts, expected.counts);
  EXPECT_EQ(got->tokens, expected.tokens);
  EXPECT_EQ(got->counted, expected.counted);
}

TEST(WireCounts, NarrowCountsSaturate) {
  const Wire sent(false);
  const auto got = decode_wire_counts(sent.wire);
  ASSERT_TRUE(got.has_value()) << got.error().to_string();
  EXPECT_EQ(got->counts, (std::vector<std::uint32_t>{0, 1, 2, 3, 100, 65535, 65535, 65535, 5, 0, 0, 9}));
}

TEST(WireCounts, AreLittleEndianAndRowMajor) {
  Wire sent(false);
  sent.wire.layers = {1};
  sent.wire.experts = 2;
  const std::string bytes("\x01\x00\x00\x02", 4);
  const std::string text = base64_encode(as_bytes(bytes));
  sent.wire.counts_base64 = text;
  EXPECT_EQ(decode_wire_counts(sent.wire).value().counts, (std::vector<std::uint32_t>{1, 512}));
}

TEST(WireCounts, EveryFieldIsChecked) {
  const auto expect_refusal = [](const std::string& field, auto change) {
    Wire sent;
    change(sent);
    const auto got = decode_wire_counts(sent.wire);
    ASSERT_FALSE(got.has_value()) << field;
    EXPECT_EQ(got.error().code, Code::kInvalid);
    EXPECT_EQ(got.error().message.rfind("eldr." + field + ":", 0), 0U) << got.error().message;
  };
  expect_refusal("v", [](Wire& w) { w.wire.version = 2; });
  expect_refusal("experts", [](Wire& w) { w.wire.experts = 0; });
  expect_refusal("experts", [](Wire& w) { w.wire.experts = 4097; });
  expect_refusal("experts", [](Wire& w) { w.wire.experts = ~0ULL; });
  expect_refusal("layers", [](Wire& w) { w.wire.layers.clear(); });
  expect_refusal("layers", [](Wire& w) { w.wire.layers = {1, 2, 1}; });
  expect_refusal("layers", [](Wire& w) { w.wire.layers = {-1, 2, 1}; });
  expect_refusal("layers", [](Wire& w) { w.wire.layers = {1, 2, 1LL << 31}; });
  expect_refusal("layers", [](Wire& w) { w.wire.layers.assign(513, 0); });
  expect_refusal("dtype", [](Wire& w) { w.wire.dtype = "u8"; });
  expect_refusal("dtype", [](Wire& w) { w.wire.dtype = ""; });
  expect_refusal("counts", [](Wire& w) { w.wire.dtype = "u16"; });
  expect_refusal("counts", [](Wire& w) { w.wire.counts_base64 = ""; });
  expect_refusal("counts", [](Wire& w) { w.wire.counts_base64 = "@@@@"; });
  expect_refusal("counts", [](Wire& w) { w.wire.counts_base64.remove_suffix(4); });
  expect_refusal("counts", [](Wire& w) { w.wire.experts = 5; });
  expect_refusal("counts", [](Wire& w) { w.wire.experts = 3; });
  expect_refusal("counts", [](Wire& w) {
    w.text += w.text;
    w.wire.counts_base64 = w.text;
  });
  expect_refusal("tokens", [](Wire& w) { w.wire.tokens = 1ULL << 32; });
  expect_refusal("counted", [](Wire& w) { w.wire.counted = 901; });
}

TEST(WireCounts, ThePayloadOfTheLargestShapeIsLimitedToo) {
  Wire sent;
  sent.wire.experts = kMaxExperts;
  sent.wire.layers.clear();
  for (std::size_t layer = 0; layer < kMaxLayers; ++layer)
    sent.wire.layers.push_back(static_cast<std::int64_t>(layer));
  sent.text.assign((kMaxLayers * kMaxExperts * 4 / 3 + 4) * 4, 'A');
  sent.wire.counts_base64 = sent.text;
  const auto got = decode_wire_counts(sent.wire);
  ASSERT_FALSE(got.has_value());
  EXPECT_NE(got.error().message.find("more than"), std::string::npos) << got.error().message;
}

TEST(ExpertCounts, CoverageAndRows) {
  auto counts = some_counts();
  EXPECT_DOUBLE_EQ(counts.coverage(), 0.5);
  EXPECT_EQ(counts.row_of(3), 0);
  EXPECT_EQ(counts.row_of(7), 2);
  EXPECT_EQ(counts.row_of(1), -1);
  counts.tokens = 0;
  EXPECT_DOUBLE_EQ(counts.coverage(), 0);
}

}  // namespace
}  // namespace eldr::signature
