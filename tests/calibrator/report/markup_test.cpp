// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/svg/markup.h"

#include <cmath>

#include <gtest/gtest.h>

#include "calibrator/report/svg/scale.h"

namespace eldr::calibrator::svg {
namespace {

TEST(Markup, TextIsHarmless) {
  EXPECT_EQ(escaped("<script>alert('1 & \"2\"')</script>"),
            "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;");
  EXPECT_EQ(escaped("médecine 医学 🙂"), "médecine 医学 🙂");
  EXPECT_EQ(escaped(std::string_view("a\0\x01\x1b[31m\x7f", 9)), "a\uFFFD\uFFFD\uFFFD[31m\uFFFD");
  EXPECT_EQ(escaped("\xC0\xAFx\xFF\xE2\x82"), "\uFFFD\uFFFDx\uFFFD\uFFFD\uFFFD");  // overlong, stray, torn
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");                        // half of a surrogate pair
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");              // past the last code point
}

TEST(Markup, TextIsCutBetweenCodePoints) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened("longer", 5), "long…");
  EXPECT_EQ(shortened("医学问答", 3), "医学…");
  EXPECT_EQ(shortened("", 3), "");
  EXPECT_GT(text_width("医学"), text_width("ab"));
}

TEST(Markup, Numbers) {
  EXPECT_EQ(number(12), "12");
  EXPECT_EQ(number(12.5), "12.5");
  EXPECT_EQ(number(12.499), "12.5");
  EXPECT_EQ(number(-0.001), "0");
  EXPECT_EQ(number(std::nan("")), "0");
  EXPECT_EQ(number(-INFINITY), "0");
  EXPECT_EQ(fixed(-1.25, 1), "\u22121.2");
  EXPECT_EQ(fixed(-0.04, 1), "0.0");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(12031), "12,031");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(percent(-0.148), "\u221214.8\u00A0%");
}

TEST(Scale, TicksAreRound) {
  const Ticks ticks = round_ticks(0.3, 0.52, 5);
  EXPECT_DOUBLE_EQ(ticks.step, 0.05);
  ASSERT_EQ(ticks.values.size(), 5U);
  EXPECT_EQ(ticks.label(ticks.values.front()), "0.30");
  EXPECT_EQ(ticks.label(ticks.values.back()), "0.50");
  EXPECT_EQ(round_ticks(0, 1000, 5).label(200), "200");
  EXPECT_EQ(whole_ticks(0, 2, 8).values, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(round_ticks(3, 3, 5).values, std::vector<double>{3});
}

TEST(Scale, ExtentsAreRoundedOut) {
  const Extent extent = rounded_out(0.33, 0.504, 5);
  EXPECT_NEAR(extent.low, 0.3, 1e-9);
  EXPECT_NEAR(extent.high, 0.55, 1e-9);
  EXPECT_LT(rounded_out(2, 2, 5).low, rounded_out(2, 2, 5).high);
}

TEST(Scale, MapsEndsToEnds) {
  const LinearScale up{0, 10, 200, 20};
  EXPECT_DOUBLE_EQ(up(0), 200);
  EXPECT_DOUBLE_EQ(up(10), 20);
  EXPECT_DOUBLE_EQ(up(5), 110);
  EXPECT_DOUBLE_EQ((LinearScale{1, 1, 0, 50}(1)), 25);
}

}  // namespace
}  // namespace eldr::calibrator::svg
