// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/text.h"

#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace eldr::signature {
namespace {

TEST(Text, QuotingEscapesAndCuts) {
  EXPECT_EQ(in_quotes("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(in_quotes(std::string("\n\0\x7f\xff", 4)), R"("\x0a\x00\x7f\xff")");
  EXPECT_EQ(in_quotes(std::string(1000, 'x')).size(), 80U + 2 + 3);
}

TEST(Text, EveryDoubleRoundTrips) {
  std::mt19937_64 random(1);
  const auto expect_round_trip = [](double value) {
    const auto back = parse_double(format_double(value));
    ASSERT_TRUE(back.has_value()) << value;
    EXPECT_EQ(std::memcmp(&*back, &value, sizeof value), 0) << format_double(value);
  };
  for (const double value : {0.0, -0.0, 0.1, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -1e-7})
    expect_round_trip(value);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (value - value == 0) expect_round_trip(value);
  }
}

TEST(Text, NumbersMustBeTheWholeText) {
  for (const char* bad :
       {"", " 1", "1 ", "+1", "inf", "nan", "-inf", "1e999", "0x10", "1,5", "1.5.2", "one"}) {
    EXPECT_FALSE(parse_double(bad).has_value()) << bad;
  }
  for (const char* bad : {"", " 1", "1 ", "+1", "-1", "1.0", "1e3", "0x10", "18446744073709551616"}) {
    EXPECT_FALSE(parse_unsigned(bad).has_value()) << bad;
  }
  EXPECT_EQ(parse_unsigned("18446744073709551615").value(), 18446744073709551615U);
  EXPECT_EQ(parse_double("-1.5e-3").value(), -1.5e-3);
}

TEST(Text, IntegerLists) {
  EXPECT_EQ(parse_json_ints("[]", 9).value(), std::vector<std::int32_t>{});
  EXPECT_EQ(parse_json_ints(" [1, -2,\t2147483647 , -2147483648]", 9).value(),
            (std::vector<std::int32_t>{1, -2, 2147483647, -2147483647 - 1}));
  const std::vector<std::int32_t> values = {5, 0, -7};
  EXPECT_EQ(parse_json_ints(format_json_ints(values), 3).value(), values);
  for (const char* bad : {"",
                          "1",
                          "[1",
                          "[1]]",
                          "[1],",
                          "[1.0]",
                          "[1e2]",
                          "[\"1\"]",
                          "[[1]]",
                          "[[]]",
                          "[{}]",
                          "{}",
                          "[null]",
                          "[true]",
                          "[2147483648]",
                          "[-2147483649]",
                          "[99999999999999999999]",
                          "[1,]",
                          "\"a\"",
                          "[1] [2]",
                          "nul"}) {
    const auto got = parse_json_ints(bad, 9);
    ASSERT_FALSE(got.has_value()) << bad;
    EXPECT_FALSE(got.error().message.empty()) << bad;
  }
  EXPECT_FALSE(parse_json_ints("[1,2,3]", 2).has_value()) << "more than the limit";
  EXPECT_FALSE(parse_json_ints(std::string("[1]\0[2]", 7), 9).has_value()) << "text after a zero byte";
  EXPECT_FALSE(parse_json_ints(std::string(1000000, '['), 9).has_value()) << "depth";
}

TEST(Text, StringLists) {
  const std::vector<std::string> values = {"", "code", "quote \" and \\", "\xC3\xA9\n",
                                           std::string("zero\0byte", 9)};
  EXPECT_EQ(parse_json_strings(format_json_strings(values).value(), 5).value(), values);
  for (const char* bad : {"[1]", "[\"a\", null]", "{\"a\": \"b\"}", "[[\"a\"]]", "\"a\"", "[\"\xff\"]"}) {
    EXPECT_FALSE(parse_json_strings(bad, 9).has_value()) << bad;
  }
  EXPECT_FALSE(format_json_strings({"\xff"}).has_value()) << "not UTF-8";
}

}  // namespace
}  // namespace eldr::signature
