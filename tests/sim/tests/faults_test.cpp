// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace eldr::sim {
namespace {

TEST(Faults, ReadsBothForms) {
  const auto text = parse_fault("drop:after=7,count=2,every=3");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->kind, "drop");
  EXPECT_EQ(text->after, 7U);
  EXPECT_EQ(text->count, 2U);
  EXPECT_EQ(text->every, 3U);
  const auto json = parse_fault_json(R"({"kind": "bad-eldr", "form": "dtype"})");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->form, "dtype");
  EXPECT_TRUE(parse_fault("slow:factor=2.5"));
  EXPECT_TRUE(parse_fault("none"));
}

TEST(Faults, RefusesTheRestAndSaysWhatIsAllowed) {
  const struct {
    const char* text;
    const char* named;
  } cases[] = {{"explode", "error-500"},           {"", "unhealthy"},
               {"drop:after", "NAME=VALUE"},       {"drop:after=x", "a number from 0"},
               {"drop:after=-1", "a number from"}, {"bad-eldr:form=odd", "coverage"},
               {"drop:every=0", "1 or more"},      {"drop:when=3", "every"}};
  for (const auto& c : cases) {
    const auto fault = parse_fault(c.text);
    ASSERT_FALSE(fault) << c.text;
    EXPECT_THAT(fault.error().message, ::testing::HasSubstr(c.named)) << c.text;
  }
  EXPECT_FALSE(parse_fault_json("[1]"));
  EXPECT_FALSE(parse_fault_json("{"));
}

TEST(FaultBoard, CountsAndSkips) {
  FaultBoard board;
  EXPECT_FALSE(board.strike("drop"));
  board.set(*parse_fault("drop:every=2,count=2"));
  std::string struck;
  for (int i = 0; i < 8; ++i) {
    struck += board.strike("drop") ? 'x' : '.';
  }
  EXPECT_EQ(struck, ".x.x....");
  board.set(*parse_fault("hang"));
  EXPECT_TRUE(board.look("hang"));
  EXPECT_TRUE(board.strike("hang"));
  EXPECT_TRUE(board.strike("hang"));
  board.set(*parse_fault("none"));
  EXPECT_FALSE(board.look("hang"));
}

}  // namespace
}  // namespace eldr::sim
