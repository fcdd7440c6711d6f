// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/answers.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/base/digest.h"
#include "tests/sim/eldr_key.h"

namespace eldr::sim {
namespace {

using nlohmann::json;

std::string bytes_of(const std::string& base64) {
  const auto bytes = base64_decode(base64, 1U << 20U);
  EXPECT_TRUE(bytes);
  return std::string(as_text(*bytes));
}

TEST(RoutedExperts, IsANpyOfTheRightShape) {
  const std::string narrow = bytes_of(routed_experts_npy({1, 2, 3, 4, 5, 6, 7, 255}, 2, 2, 256));
  EXPECT_EQ(narrow.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header =
      static_cast<unsigned char>(narrow[8]) + 256U * static_cast<unsigned char>(narrow[9]);
  EXPECT_EQ((10 + header) % 64, 0U);
  EXPECT_EQ(narrow[10 + header - 1], '\n');
  EXPECT_NE(narrow.find("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 2), }"), std::string::npos);
  EXPECT_EQ(narrow.substr(10 + header), std::string("\x01\x02\x03\x04\x05\x06\x07\xff", 8));
  const std::string wide = bytes_of(routed_experts_npy({1, 256}, 1, 2, 257));
  EXPECT_NE(wide.find("'<u2'"), std::string::npos);
  EXPECT_EQ(wide.substr(wide.size() - 4), std::string("\x01\x00\x00\x01", 4));
}

signature::ExpertCounts counts() {
  signature::ExpertCounts c;
  c.layers = {1, 4, 9};
  c.experts = 2;
  c.counts = {1, 2, 3, 4, 5, 6};
  c.tokens = 10;
  c.counted = 10;
  return c;
}

Result<signature::ExpertCounts> decode(const json& key) {
  signature::WireCounts wire;
  wire.version = key.at("v");
  wire.experts = key.at("experts");
  wire.layers = key.at("layers").get<std::vector<std::int64_t>>();
  wire.dtype = key.at("dtype").get_ref<const std::string&>();
  wire.counts_base64 = key.at("counts").get_ref<const std::string&>();
  wire.tokens = key.at("tokens");
  wire.counted = key.at("counted");
  return signature::decode_wire_counts(wire);
}

TEST(EldrKey, CarriesTheLayersAskedForInTheirOrder) {
  const auto all = decode(eldr_key(counts(), {}));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->counts, counts().counts);
  const json asked = eldr_key(counts(), {9, 77, 1});
  EXPECT_EQ(asked.at("dtype"), "u16");
  const auto some = decode(asked);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->layers, (std::vector<std::int32_t>{9, 1}));
  EXPECT_EQ(some->counts, (std::vector<std::uint32_t>{5, 6, 1, 2}));
  EXPECT_EQ(some->tokens, 10U);
}

TEST(EldrKey, WidensLargeCounts) {
  auto large = counts();
  large.counts[2] = 70'000;
  const json key = eldr_key(large, {});
  EXPECT_EQ(key.at("dtype"), "u32");
  EXPECT_EQ(decode(key)->counts[2], 70'000U);
}

TEST(EldrKey, BadFormsAreRefused) {
  const json good = eldr_key(counts(), {});
  for (const char* form : {"base64", "short", "long", "dtype", "version", "experts"}) {
    EXPECT_FALSE(decode(bad_eldr_key(good, form))) << form;
  }
  EXPECT_TRUE(bad_eldr_key(good, "type").is_array());
  EXPECT_TRUE(bad_eldr_key(good, "null").is_null());
  EXPECT_LT(decode(bad_eldr_key(good, "coverage"))->coverage(), 0.5);
  const auto zero = decode(bad_eldr_key(good, "zero"));
  ASSERT_TRUE(zero) << zero.error().message;
  EXPECT_EQ(zero->counts, std::vector<std::uint32_t>(6, 0));
}

TEST(Events, AreJsonWithTheFieldsOfTheApi) {
  const EventWriter chat({Endpoint::kChat, "id\"1", "m", 5});
  const auto parse = [](const std::string& event) {
    EXPECT_TRUE(event.starts_with("data: ") && event.ends_with("\n\n"));
    return json::parse(event.substr(6));
  };
  EXPECT_EQ(parse(chat.opening(2))["choices"][0]["delta"]["role"], "assistant");
  const json token = parse(chat.token(2, " a\"\n", ""));
  EXPECT_EQ(token["id"], "id\"1");
  EXPECT_EQ(token["object"], "chat.completion.chunk");
  EXPECT_EQ(token["choices"][0]["index"], 2);
  EXPECT_EQ(token["choices"][0]["delta"]["content"], " a\"\n");
  EXPECT_TRUE(token["choices"][0]["finish_reason"].is_null());
  const EventWriter text({Endpoint::kCompletions, "i", "m", 5});
  EXPECT_EQ(text.opening(0), "");
  EXPECT_EQ(parse(text.token(0, "x", "stop"))["choices"][0]["finish_reason"], "stop");
  const json usage = parse(text.usage({10, 4}));
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["total_tokens"], 14);
}

TEST(WholeAnswer, IsJsonWithTheParametersLast) {
  const std::string text =
      whole_answer({Endpoint::kCompletions, "i", "m", 5}, {{" a", "length", ""}}, {3, 1}, json{{"k", 1}});
  const json answer = json::parse(text);
  EXPECT_EQ(answer["choices"][0]["text"], " a");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  EXPECT_TRUE(text.ends_with(R"("kv_transfer_params":{"k":1}})"));
}

}  // namespace
}  // namespace eldr::sim
