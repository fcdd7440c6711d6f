// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/routed_experts.h"

#include <cstring>

#include <gtest/gtest.h>

#include "calibrator/collect/npy.h"
#include "lib/base/digest.h"
#include "tests/calibrator/engine_double.h"

namespace eldr::calibrator {
namespace {

using testing::npy;

const std::vector<std::uint16_t> kIds = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255};  // [3][2][2]

std::string encoded(const std::string& bytes) { return base64_encode(as_bytes(bytes)); }

/// A file with this header text.
std::string with_header(const std::string& header, std::size_t data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFFU);
  bytes += static_cast<char>(header.size() >> 8U);
  return bytes + header + std::string(data, '\0');
}

TEST(Npy, ReadsBothWidths) {
  for (const std::string descr : {"|u1", "<u2"}) {
    const std::string file = npy(descr, {3, 2, 2}, kIds);
    const auto cube = parse_npy(as_bytes(file));
    ASSERT_TRUE(cube) << cube.error().message;
    EXPECT_EQ(cube->shape, (std::array<std::size_t, 3>{3, 2, 2}));
    EXPECT_EQ(cube->values, kIds);
  }
  const std::string wide = npy("<u2", {1, 1, 2}, {300, 511});
  EXPECT_EQ(parse_npy(as_bytes(wide))->values, (std::vector<std::uint16_t>{300, 511}));
}

TEST(Npy, ReadsVersionTwo) {
  const std::string one = npy("|u1", {3, 2, 2}, kIds);
  std::string two = one.substr(0, 6) + std::string("\x02\x00", 2) + one.substr(8, 2) + std::string(2, '\0') +
                    one.substr(10);
  EXPECT_EQ(parse_npy(as_bytes(two))->values, kIds);
}

TEST(Npy, RefusesWithAReason) {
  const std::string good = npy("|u1", {3, 2, 2}, kIds);
  std::string fortran = "{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2, 2), }\n";
  for (const auto& [bytes, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "does not begin"},
           {good.substr(0, 9), "does not begin"},
           {std::string(good).replace(6, 1, "\x07"), "version 7.0"},
           {good.substr(0, 40), "are announced"},
           {good.substr(0, good.size() - 1), "bytes of data"},
           {good + "x", "bytes of data"},
           {with_header(fortran, 12), "fortran_order"},
           {with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1, 1), }", 12), "descr"},
           {with_header("{'descr': '>u2', 'fortran_order': False, 'shape': (3, 1, 2), }", 12), "descr"},
           {with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (12,), }", 12), "1 dimensions"},
           {with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (-3, 2, 2), }", 12),
            "not understood"},
           {with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999, 2, 2), }",
                        12),
            "not understood"},
           {with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (16777216, 16777216, 16777216), }",
                        12),
            "2^32"},
           {with_header("{'descr': '|u1', 'fortran_order': False, }", 12), "must have"},
           {with_header("{'descr': '|u1', 'descr': '|u1', 'shape': (3, 2, 2), }", 12), "twice"},
           {with_header("{'descr': '|u1', 'evil': 1}", 12), "unknown"},
           {with_header("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2)} x", 12), "goes on"},
           {with_header("shape", 12), "must begin"},
       }) {
    const auto cube = parse_npy(as_bytes(bytes));
    ASSERT_FALSE(cube) << part;
    EXPECT_EQ(cube.error().code, Code::kInvalid);
    EXPECT_NE(cube.error().message.find(part), std::string::npos) << cube.error().message << " / " << part;
  }
}

TEST(RoutedExperts, RowsFollowTheUsage) {
  const std::string text = encoded(npy("|u1", {3, 2, 2}, kIds));
  EXPECT_TRUE(decode_routed_experts(text, 2, 2, 0));  // 2 + 2 - 1 rows
  EXPECT_TRUE(decode_routed_experts(text, 3, 1, 0));  // max_tokens = 1: the prompt alone
  EXPECT_TRUE(decode_routed_experts(text, 1, 2, 0));  // an engine that sends the last token too
  for (const auto& [prompt, completion] : {std::pair<int, int>{5, 5}, {1, 1}, {0, 0}}) {
    const auto routed = decode_routed_experts(text, static_cast<std::uint64_t>(prompt),
                                              static_cast<std::uint64_t>(completion), 0);
    ASSERT_FALSE(routed);
    EXPECT_NE(routed.error().message.find("3 rows"), std::string::npos) << routed.error().message;
  }
}

TEST(RoutedExperts, SglangForm) {
  std::string plain;
  for (const std::int32_t id : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}) {
    char bytes[4];
    std::memcpy(bytes, &id, 4);
    plain.append(bytes, 4);
  }
  const auto routed = decode_routed_experts(encoded(plain), 2, 2, 2);
  ASSERT_TRUE(routed) << routed.error().message;
  EXPECT_EQ(routed->rows, 3U);
  EXPECT_EQ(routed->layers, 2U);
  EXPECT_EQ(routed->ids, kIds);
  EXPECT_NE(decode_routed_experts(encoded(plain), 2, 2, 0).error().message.find("--top-k"),
            std::string::npos);
  EXPECT_FALSE(decode_routed_experts(encoded(plain), 2, 4, 2));                    // 5 rows do not divide 12
  EXPECT_FALSE(decode_routed_experts(encoded(plain.substr(1)), 2, 2, 2));          // not whole numbers
  EXPECT_FALSE(decode_routed_experts(encoded(std::string(48, '\xFF')), 2, 2, 2));  // -1
}

TEST(RoutedExperts, RefusesWhatIsNotBase64) {
  EXPECT_FALSE(decode_routed_experts("%%%%", 2, 2, 2));
  EXPECT_FALSE(decode_routed_experts("", 2, 2, 2));
}

TEST(RoutedExperts, CountsAndRepeats) {
  const RoutedExperts routed{3, 2, 2, {0, 1, 5, 5, 1, 2, 5, 5, 1, 0, 5, 5}};
  const auto counts = count_experts(routed, 2, true);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->width, 6U);
  EXPECT_EQ(counts->prefill, (std::vector<std::uint32_t>{1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(counts->decode, (std::vector<std::uint32_t>{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(counts->repeats, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(counts->decode_experts, (std::vector<std::uint16_t>{1, 0, 5, 5}));
  EXPECT_FALSE(count_experts(routed, 4, false));
  EXPECT_FALSE(count_experts(routed, 0, false));
  EXPECT_FALSE(count_experts({1, 1, 1, {4096}}, 1, false));
}

}  // namespace
}  // namespace eldr::calibrator
