// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/legs.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/signature/counts.h"
#include "tests/router/support/random_json.h"

namespace eldr::router {
namespace {

using nlohmann::json;

std::string prefill_of(const std::string& text, Api api, std::string_view layers = "") {
  const auto object = JsonObject::scan(text);
  EXPECT_TRUE(object);
  return prefill_body(*object, api, layers).to_string();
}

json stock_transfer_request() {
  return {{"do_remote_decode", true},    {"do_remote_prefill", false}, {"remote_engine_id", nullptr},
          {"remote_block_ids", nullptr}, {"remote_host", nullptr},     {"remote_port", nullptr}};
}

TEST(PrefillBody, CapsACompletion) {
  const auto body = json::parse(prefill_of(
      R"({"prompt":"p","max_tokens":50,"min_tokens":3,"stream":true,"stream_options":{"include_usage":true}})",
      Api::kCompletions));
  const json expected = {{"prompt", "p"},
                         {"max_tokens", 1},
                         {"stream", false},
                         {"kv_transfer_params", stock_transfer_request()}};
  EXPECT_EQ(body, expected);
}

TEST(PrefillBody, CapsBothLimitsOfAChat) {
  const auto body = json::parse(prefill_of(R"({"messages":[]})", Api::kChat));
  EXPECT_EQ(body["max_tokens"], 1);
  EXPECT_EQ(body["max_completion_tokens"], 1);
  const auto completion = json::parse(prefill_of(R"({"prompt":"p"})", Api::kCompletions));
  EXPECT_FALSE(completion.contains("max_completion_tokens"));
  const auto sent = json::parse(prefill_of(R"({"prompt":"p","max_completion_tokens":9})", Api::kCompletions));
  EXPECT_EQ(sent["max_completion_tokens"], 1);
}

TEST(PrefillBody, AsksForLayers) {
  const auto body = json::parse(prefill_of(R"({"prompt":"p"})", Api::kCompletions, "[3,7]"));
  EXPECT_EQ(body["kv_transfer_params"]["eldr"], json::parse(R"({"layers":[3,7]})"));
}

TEST(PrefillBody, TheClientsOwnTransferParametersDoNotPass) {
  const auto body = json::parse(
      prefill_of(R"({"prompt":"p","kv_transfer_params":{"remote_host":"10.0.0.9"}})", Api::kCompletions));
  EXPECT_EQ(body["kv_transfer_params"], stock_transfer_request());
}

TEST(PrefillBody, EverythingElseStaysOnRandomBodies) {
  testing::RandomJson random(3);
  for (int i = 0; i < 5'000; ++i) {
    const std::string text = random.object(9, 2);
    auto before = json::parse(text);
    auto after = json::parse(prefill_of(text, Api::kChat));
    for (const auto* name : {"max_tokens", "max_completion_tokens", "stream", "stream_options", "min_tokens",
                             "kv_transfer_params"}) {
      before.erase(name);
      after.erase(name);
    }
    ASSERT_EQ(before, after) << text;
  }
}

TEST(DecodeBody, IsTheOriginalWithTheTransfer) {
  const std::string text = R"({"prompt":"p","stream":true ,"x":{"kv_transfer_params":1}})";
  const auto object = JsonObject::scan(text);
  ASSERT_TRUE(object);
  EXPECT_EQ(
      decode_body(*object, R"({"remote_port":1})").to_string(),
      R"({"prompt":"p","stream":true ,"x":{"kv_transfer_params":1},"kv_transfer_params":{"remote_port":1}})");
  EXPECT_EQ(decode_body(*object, "").to_string(), text);
}

TEST(DecodeBody, WithoutATransferTheClientsOwnIsTakenAway) {
  const auto object = JsonObject::scan(R"({"kv_transfer_params":{"do_remote_prefill":true},"prompt":"p"})");
  ASSERT_TRUE(object);
  EXPECT_EQ(decode_body(*object, "").to_string(), R"({"prompt":"p"})");
}

TEST(PrefillAnswer, IsRelayedOpaquelyMinusOurKey) {
  const auto answer = read_prefill_answer(
      R"({"id":"x","kv_transfer_params":{"a": 1.0,"eldr":{"v":1},"future":{"eldr":2},"s":"\u00e9"},"usage":{}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->transfer, R"({"a": 1.0,"future":{"eldr":2},"s":"\u00e9"})");
  EXPECT_EQ(answer->eldr, R"({"v":1})");
}

TEST(PrefillAnswer, MayHaveNoTransfer) {
  for (const auto* text : {R"({"id":"x"})", R"({"kv_transfer_params":null})"}) {
    const auto answer = read_prefill_answer(text);
    ASSERT_TRUE(answer) << text;
    EXPECT_TRUE(answer->transfer.empty());
    EXPECT_FALSE(answer->eldr);
  }
}

TEST(PrefillAnswer, OtherThingsAreRefused) {
  for (const auto* text : {"", "[]", "<html>", R"({"kv_transfer_params":[]})", R"({"kv_transfer_params":1})"})
    EXPECT_FALSE(read_prefill_answer(text)) << text;
}

json wire_of(const signature::ExpertCounts& counts) {
  return {{"v", 1},
          {"experts", counts.experts},
          {"layers", counts.layers},
          {"dtype", "u16"},
          {"counts", signature::encode_wire_counts(counts, false)},
          {"tokens", counts.tokens},
          {"counted", counts.counted}};
}

signature::ExpertCounts sample_counts() {
  signature::ExpertCounts counts;
  counts.layers = {3, 7};
  counts.experts = 4;
  counts.counts = {1, 2, 3, 4, 5, 6, 7, 8};
  counts.tokens = 20;
  counts.counted = 18;
  return counts;
}

TEST(EldrCounts, AreReadFromTheWire) {
  const auto counts = read_eldr_counts(wire_of(sample_counts()).dump());
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->counts, sample_counts().counts);
  EXPECT_EQ(counts->layers, sample_counts().layers);
  EXPECT_EQ(counts->counted, 18U);
}

TEST(EldrCounts, KeysMayComeInAnyOrderAndMoreMayCome) {
  auto wire = wire_of(sample_counts());
  const std::string text = R"({"new":[{"v":9}],"counted":18,"tokens":20,"counts":)" + wire["counts"].dump() +
                           R"(,"dtype":"u16","layers":[3,7],"experts":4,"v":1})";
  EXPECT_TRUE(read_eldr_counts(text));
}

TEST(EldrCounts, EachMissingOrWrongFieldIsNamed) {
  for (const auto* field : {"v", "experts", "layers", "dtype", "counts", "tokens", "counted"}) {
    auto missing = wire_of(sample_counts());
    missing.erase(field);
    auto wrong = wire_of(sample_counts());
    wrong[field] = json::object();
    for (const auto& wire : {missing, wrong}) {
      const auto counts = read_eldr_counts(wire.dump());
      ASSERT_FALSE(counts) << wire;
      EXPECT_NE(counts.error().message.find(field), std::string::npos) << counts.error().message;
    }
  }
}

TEST(EldrCounts, NonsenseIsRefused) {
  for (const auto* text : {"", "null", "1", "[]", "{", "{}", "\"x\""})
    EXPECT_FALSE(read_eldr_counts(text)) << text;
}

}  // namespace
}  // namespace eldr::router
