// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/request_shape.h"

#include <gtest/gtest.h>

namespace eldr::router {
namespace {

Result<RequestShape> shape_of(std::string_view text, Api api = Api::kCompletions) {
  const auto object = JsonObject::scan(text);
  EXPECT_TRUE(object) << text;
  return read_shape(*object, api);
}

TEST(RequestShape, ReadsStreamAndPrompt) {
  const auto shape = shape_of(R"({"prompt":"hi","stream":true})");
  ASSERT_TRUE(shape);
  EXPECT_TRUE(shape->stream);
  EXPECT_EQ(shape->prompt, "\"hi\"");
  EXPECT_EQ(shape->whole, Whole::kNo);
  EXPECT_EQ(shape_of(R"({"messages":[1]})", Api::kChat)->prompt, "[1]");
}

TEST(RequestShape, OnePromptInAnyForm) {
  for (const auto* prompt : {"\"a\"", "[\"a\"]", "[1,2,3]", "[[1,2]]", "[]", "null"})
    EXPECT_EQ(shape_of(std::string(R"({"prompt":)") + prompt + "}")->whole, Whole::kNo) << prompt;
}

TEST(RequestShape, SeveralPromptsGoWhole) {
  for (const auto* prompt : {R"(["a","b"])", "[[1],[2]]", R"(["a" , "b", "c"])"})
    EXPECT_EQ(shape_of(std::string(R"({"prompt":)") + prompt + "}")->whole, Whole::kManyPrompts) << prompt;
}

TEST(RequestShape, SeveralChoicesGoWhole) {
  for (const auto* member : {R"("n":2)", R"("best_of":3)", R"("use_beam_search":true)"})
    EXPECT_EQ(shape_of(std::string(R"({"prompt":"a",)") + member + "}")->whole, Whole::kSeveralChoices)
        << member;
  for (const auto* member : {R"("n":1)", R"("n":null)", R"("best_of":1)", R"("use_beam_search":false)"})
    EXPECT_EQ(shape_of(std::string(R"({"prompt":"a",)") + member + "}")->whole, Whole::kNo) << member;
}

TEST(RequestShape, LogprobsOfThePromptGoWhole) {
  EXPECT_EQ(shape_of(R"({"prompt":"a","prompt_logprobs":1})")->whole, Whole::kPromptLogprobs);
  EXPECT_EQ(shape_of(R"({"prompt":"a","echo":true,"logprobs":1})")->whole, Whole::kPromptLogprobs);
  EXPECT_EQ(shape_of(R"({"prompt":"a","echo":true})")->whole, Whole::kNo);
}

TEST(RequestShape, WrongTypesNameFieldValueAndWhatIsAllowed) {
  const auto wrong = shape_of(R"({"prompt":"a","stream":"yes"})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "stream: \"yes\" is not allowed, expected true or false");
  EXPECT_FALSE(shape_of(R"({"prompt":"a","n":1.5})"));
  EXPECT_FALSE(shape_of(R"({"prompt":["a" "b"]})"));
}

}  // namespace
}  // namespace eldr::router
