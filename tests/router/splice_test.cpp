// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/splice.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/router/support/random_json.h"

namespace eldr::router {
namespace {

using nlohmann::json;
using What = JsonEdit::What;

std::string spliced(const std::string& text, const std::vector<JsonEdit>& edits) {
  const auto object = JsonObject::scan(text);
  EXPECT_TRUE(object) << text;
  return splice(*object, edits).to_string();
}

TEST(Splice, WithoutEditsEveryByteStays) {
  const std::string text = " {\"a\" : [1,2] , \"b\":\"\\u00e9\"}\n";
  EXPECT_EQ(spliced(text, {}), text);
}

TEST(Splice, ReplacesAndAdds) {
  EXPECT_EQ(spliced(R"({"a": 1, "b": 2})", {{"b", What::kSet, "3"}, {"c", What::kSet, "4"}}),
            R"({"a": 1, "b": 3,"c":4})");
  EXPECT_EQ(spliced("{}", {{"a", What::kSet, "1"}, {"b", What::kSet, "2"}}), R"({"a":1,"b":2})");
  EXPECT_EQ(spliced(R"({"a":1})", {{"b", What::kReplaceIfThere, "2"}}), R"({"a":1})");
}

TEST(Splice, RemovesWithOneComma) {
  EXPECT_EQ(spliced(R"({"x":0,"a":1,"b":2})", {{"x", What::kRemove, ""}}), R"({"a":1,"b":2})");
  EXPECT_EQ(spliced(R"({"a":1,"x":0,"b":2})", {{"x", What::kRemove, ""}}), R"({"a":1,"b":2})");
  EXPECT_EQ(spliced(R"({"a":1,"b":2,"x":0})", {{"x", What::kRemove, ""}}), R"({"a":1,"b":2})");
  EXPECT_EQ(spliced(R"({"x":0})", {{"x", What::kRemove, ""}}), "{}");
  EXPECT_EQ(spliced(R"({"x":0,"x":1,"a":1,"x":2})", {{"x", What::kRemove, ""}}), R"({"a":1})");
  EXPECT_EQ(spliced(R"({"x":0,"y":1})", {{"x", What::kRemove, ""}, {"z", What::kSet, "1"}}),
            R"({"y":1,"z":1})");
  EXPECT_EQ(spliced(R"({"x":0})", {{"x", What::kRemove, ""}, {"z", What::kSet, "1"}}), R"({"z":1})");
}

TEST(Splice, EveryDuplicateIsEdited) {
  EXPECT_EQ(spliced(R"({"n":1,"a":0,"n":2})", {{"n", What::kSet, "9"}}), R"({"n":9,"a":0,"n":9})");
}

TEST(Splice, TheBytesBetweenEditsAreTheOriginalOnes) {
  const std::string prompt(100'000, 'p');
  const std::string text = R"({"prompt":")" + prompt + R"(","stream":true})";
  const auto object = JsonObject::scan(text);
  ASSERT_TRUE(object);
  const auto body = splice(*object, {{"stream", What::kSet, "false"}});
  ASSERT_FALSE(body.pieces().empty());
  EXPECT_EQ(body.pieces()[0].data(), text.data());  // not a copy
  EXPECT_EQ(body.size(), text.size() + 1);
}

/// What the edits mean, done on the parsed document.
json edited(json document, const std::vector<JsonEdit>& edits) {
  for (const auto& edit : edits) {
    const std::string name(edit.name);
    if (edit.what == What::kRemove)
      document.erase(name);
    else if (edit.what == What::kSet || document.contains(name))
      document[name] = json::parse(edit.value);
  }
  return document;
}

TEST(Splice, EqualsTheEditOfAParsedDocument) {
  testing::RandomJson random(11);
  const std::vector<std::string_view> names = {"max_tokens", "stream", "stream_options", "min_tokens",
                                               "kv_transfer_params"};
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random.object(8, 2);
    std::vector<JsonEdit> edits;
    for (const auto name : names) {
      const int what = random.below(4);
      if (what == 0) edits.push_back({name, What::kSet, "{\"a\":[1]}"});
      if (what == 1) edits.push_back({name, What::kReplaceIfThere, "false"});
      if (what == 2) edits.push_back({name, What::kRemove, ""});
    }
    const std::string result = spliced(text, edits);
    ASSERT_TRUE(json::accept(result)) << text << "\n" << result;
    ASSERT_EQ(json::parse(result), edited(json::parse(text), edits)) << text << "\n" << result;
  }
}

TEST(SplicedBody, MayBeMoved) {
  SplicedBody body;
  body.append_owned("x");
  body.append_owned(std::string(100, 'y'));
  const SplicedBody moved = std::move(body);
  EXPECT_EQ(moved.to_string(), "x" + std::string(100, 'y'));
}

}  // namespace
}  // namespace eldr::router
