// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/trace_builder.h"

#include <gtest/gtest.h>

namespace eldr::calibrator {
namespace {

/// [3 tokens: 2 prompt, 1 decode][layers][2]
std::optional<RequestCounts> request(std::size_t layers, const std::vector<std::uint16_t>& ids,
                                     bool tokens = false) {
  return count_experts({3, layers, 2, ids}, 2, tokens).value();
}

TEST(TraceBuilder, OneShapeForAll) {
  const auto trace = build_trace(
      {.model = "m"}, {request(1, {0, 1, 2, 3, 4, 5}), std::nullopt, request(1, {0, 9, 0, 2, 1, 0})},
      {"a", "b", "c"});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->requests(), 2U);
  EXPECT_EQ(trace->experts, 12U);  // the next multiple of 4 above 9
  EXPECT_EQ(trace->top_k, 2U);
  EXPECT_EQ(trace->labels, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(trace->prefill(1)[9], 1U);
  EXPECT_EQ(trace->decode(0)[4], 1U);
  EXPECT_EQ(trace->decode_tokens, (std::vector<std::uint32_t>{1, 1}));
}

TEST(TraceBuilder, DenseLayersAreLeftOut) {
  // layer 0 is dense: vLLM's buffer keeps its zeros
  const auto trace =
      build_trace({.model = "m"}, {request(2, {0, 0, 1, 2, 0, 0, 2, 3, 0, 0, 4, 5}, true)}, {""});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->layers, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(trace->decode_experts, (std::vector<std::uint16_t>{4, 5}));
  EXPECT_EQ(trace->decode_offsets, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_TRUE(trace->labels.empty());
}

TEST(TraceBuilder, LayerNumbersOfTheModel) {
  const auto trace = build_trace({.model = "m", .layer_numbers = {3, 7}},
                                 {request(2, {0, 1, 1, 2, 0, 1, 2, 3, 0, 1, 4, 5})}, {""});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->layers, (std::vector<std::int32_t>{3, 7}));
}

TEST(TraceBuilder, RefusesWithAReason) {
  const auto one = request(1, {0, 1, 2, 3, 4, 5});
  const auto two = request(2, {0, 1, 1, 2, 0, 1, 2, 3, 0, 1, 4, 5});
  const auto reason = [](const TraceShape& shape, const std::vector<std::optional<RequestCounts>>& counts) {
    const auto trace = build_trace(shape, counts, std::vector<std::string>(counts.size()));
    return trace ? "accepted" : trace.error().message;
  };
  EXPECT_NE(reason({.model = "m"}, {std::nullopt}).find("no request was answered"), std::string::npos);
  EXPECT_NE(reason({.model = "m"}, {one, two}).find("different shapes"), std::string::npos);
  EXPECT_NE(reason({.model = "m", .experts = 5}, {one}).find("used expert 5"), std::string::npos);
  EXPECT_NE(reason({.model = "m", .layer_numbers = {1, 2}}, {one}).find("2 numbers"), std::string::npos);
  EXPECT_NE(reason({.model = "m"}, {request(1, {0, 1, 2, 2, 4, 5})}).find("repeats an expert in 1 of 3"),
            std::string::npos);
  EXPECT_NE(reason({.model = "m"}, {request(1, {0, 0, 0, 0, 0, 0})}).find("mixture-of-experts"),
            std::string::npos);
}

TEST(TraceBuilder, UsualNumbersOfExperts) {
  for (const auto& [largest, experts] : {std::pair<std::uint32_t, std::uint32_t>{7, 8},
                                         {59, 60},
                                         {63, 64},
                                         {62, 64},
                                         {71, 72},
                                         {127, 128},
                                         {126, 128},
                                         {159, 160},
                                         {255, 256},
                                         {383, 384}}) {
    EXPECT_EQ(usual_experts(largest), experts);
  }
}

TEST(LayerNumbers, ListsAndRanges) {
  EXPECT_EQ(parse_layer_numbers("1-3,7,9-10").value(), (std::vector<std::int32_t>{1, 2, 3, 7, 9, 10}));
  EXPECT_EQ(parse_layer_numbers("0").value(), (std::vector<std::int32_t>{0}));
  for (const char* text :
       {"3-1", "1,1", "2,1", "a", "1,", ",1", "1-", "-1", "1--3", "1 2", "0-600", "99999999999"}) {
    EXPECT_FALSE(parse_layer_numbers(text)) << text;
  }
}

}  // namespace
}  // namespace eldr::calibrator
