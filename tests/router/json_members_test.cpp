// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/json_members.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/router/support/random_json.h"

namespace eldr::router {
namespace {

using nlohmann::json;

TEST(JsonObject, FindsMembersWithTheirBytes) {
  const std::string text = " { \"a\" : 1 ,\n\"b\":[1, {\"a\":2}],\"c\":\"x\\\"}\" } ";
  const auto object = JsonObject::scan(text);
  ASSERT_TRUE(object);
  ASSERT_EQ(object->members().size(), 3U);
  EXPECT_EQ(object->raw_value(object->members()[0]), "1");
  EXPECT_EQ(object->raw_value(object->members()[1]), "[1, {\"a\":2}]");
  EXPECT_EQ(object->raw_value(object->members()[2]), "\"x\\\"}\"");
  EXPECT_EQ(text[object->close()], '}');
}

TEST(JsonObject, NestedNamesAreNotMembers) {
  const auto object = JsonObject::scan(R"({"x":{"stream":true},"y":"\"stream\": true"})");
  ASSERT_TRUE(object);
  EXPECT_EQ(object->find("stream"), nullptr);
}

TEST(JsonObject, AnEscapedNameIsTheSameName) {
  const auto object = JsonObject::scan(R"({"str\u0065am":true})");
  ASSERT_TRUE(object);
  EXPECT_NE(object->find("stream"), nullptr);
  EXPECT_EQ(object->find("str\\u0065am"), nullptr);
}

TEST(JsonObject, TheLastDuplicateIsFound) {
  const auto object = JsonObject::scan(R"({"n":1,"n":2})");
  ASSERT_TRUE(object);
  EXPECT_EQ(object->raw_value(*object->find("n")), "2");
}

class RefusedJson : public ::testing::TestWithParam<const char*> {};

TEST_P(RefusedJson, IsRefusedWithAnOffset) {
  const auto object = JsonObject::scan(GetParam());
  ASSERT_FALSE(object) << GetParam();
  EXPECT_EQ(object.error().code, Code::kInvalid);
  EXPECT_NE(object.error().message.find("byte"), std::string::npos);
  EXPECT_FALSE(json::accept(GetParam()));  // what is refused here, a strict parser refuses too
}

INSTANTIATE_TEST_SUITE_P(Texts, RefusedJson,
                         ::testing::Values("", "  ", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,}",
                                           "{,}", "{\"a\" 1}", "{a:1}", "{\"a\":1}x", "{\"a\":1}{}",
                                           "{\"a\":tru}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":-}",
                                           "{\"a\":1e}", "{\"a\":+1}", "{\"a\":\"x}", "{\"a\":\"x\\\"}",
                                           "{\"a\":\"x\\", "{\"a\":[1}}", "{\"a\":{]}", "{\"a\":[",
                                           "{\"a\":\"line\nbreak\"}", "{\"a\":1 2}", "{\"a\":'x'}",
                                           "{\"a\":NaN}"));

TEST(JsonObject, OtherDocumentsAreNoObjects) {
  for (const auto* text : {"[]", "1", "\"x\"", "null"}) EXPECT_FALSE(JsonObject::scan(text)) << text;
}

TEST(JsonObject, DepthAndMembersHaveLimits) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(JsonObject::scan(nested(kMaxJsonDepth)));
  EXPECT_FALSE(JsonObject::scan(nested(kMaxJsonDepth + 1)));
  std::string many = "{\"a\":1";
  for (std::size_t i = 1; i < kMaxJsonMembers; ++i) many += ",\"a\":1";
  EXPECT_TRUE(JsonObject::scan(many + "}"));
  EXPECT_FALSE(JsonObject::scan(many + ",\"a\":1}"));
}

TEST(JsonObject, EveryQuoteInALongStringIsFoundAtEveryAlignment) {
  for (std::size_t before = 0; before < 40; ++before) {
    for (std::size_t after = 0; after < 40; ++after) {
      const std::string text =
          "{\"p\":\"" + std::string(before, 'x') + "\\\"" + std::string(after, 'y') + "\",\"n\":1}";
      const auto object = JsonObject::scan(text);
      ASSERT_TRUE(object) << text;
      ASSERT_EQ(object->members().size(), 2U) << text;
    }
  }
}

TEST(JsonObject, AgreesWithAStrictParserOnRandomTexts) {
  testing::RandomJson random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random.object(8, 3);
    const auto object = JsonObject::scan(text);
    ASSERT_TRUE(object) << text;
    const auto parsed = json::parse(text);
    for (const auto& member : object->members()) {
      const auto name =
          json::parse(text.substr(member.key_begin, member.key_end - member.key_begin)).get<std::string>();
      ASSERT_TRUE(parsed.contains(name)) << text;
      const auto* last = object->find(name);
      if (last == nullptr) continue;  // a name that find() is not meant for: it needs escapes
      EXPECT_EQ(json::parse(object->raw_value(*last)), parsed[name]) << text;
    }
  }
}

TEST(IntegerOf, TakesIntegersOnly) {
  EXPECT_EQ(integer_of("12"), 12);
  EXPECT_EQ(integer_of("-3"), -3);
  for (const auto* text : {"1.0", "1e3", "99999999999999999999", "", "\"1\""})
    EXPECT_FALSE(integer_of(text)) << text;
}

TEST(CountElements, CountsUpToTheLimit) {
  std::string_view first;
  EXPECT_EQ(count_elements("[]", 5, nullptr).value(), 0U);
  EXPECT_EQ(count_elements("[ \"a,b\" , [1,2] ]", 5, &first).value(), 2U);
  EXPECT_EQ(first, "\"a,b\"");
  EXPECT_EQ(count_elements("[1,2,3]", 2, nullptr).value(), 2U);
  EXPECT_FALSE(count_elements("[1 2]", 5, nullptr));
}

TEST(QuoteJson, EscapesAnything) {
  const std::string text("a\"\n\\\x01\xff", 6);
  const auto quoted = quote_json(text);
  EXPECT_EQ(json::parse(quoted).get<std::string>(), "a\"\n\\\x01\xef\xbf\xbd");
}

}  // namespace
}  // namespace eldr::router
