// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/experts.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace eldr::sim {
namespace {

ModelShape shape_of(std::size_t layers, std::uint32_t experts, std::uint32_t top_k) {
  ModelShape shape;
  shape.layers.resize(layers);
  std::iota(shape.layers.begin(), shape.layers.end(), 0);
  shape.experts = experts;
  shape.top_k = top_k;
  return shape;
}

void expect_distinct(const std::vector<std::uint16_t>& picks, const ModelShape& shape) {
  for (std::size_t l = 0; l < shape.layer_count(); ++l) {
    const std::set<std::uint16_t> row(picks.begin() + static_cast<std::ptrdiff_t>(l * shape.top_k),
                                      picks.begin() + static_cast<std::ptrdiff_t>((l + 1) * shape.top_k));
    ASSERT_EQ(row.size(), shape.top_k);
    ASSERT_LT(*row.rbegin(), shape.experts);
  }
}

TEST(ExpertWeights, DrawsDifferentExpertsWhateverTheWeights) {
  const ModelShape shape = shape_of(2, 8, 8);
  for (const auto& weights : {std::vector<float>(16, 0.0F), std::vector<float>(16, 1.0F), [] {
                                std::vector<float> one(16, 1e-9F);
                                one[3] = one[12] = 1.0F;
                                return one;
                              }()}) {
    const ExpertWeights drawn(shape, weights);
    Random random(1);
    std::vector<std::uint16_t> picks(shape.picks());
    for (int i = 0; i < 50; ++i) {
      drawn.draw(random, picks);
      expect_distinct(picks, shape);
    }
  }
}

TEST(ExpertWeights, DrawsInProportion) {
  const ModelShape shape = shape_of(1, 4, 1);
  const ExpertWeights drawn(shape, std::vector<float>{1, 2, 3, 4});
  Random random(7);
  std::vector<std::uint16_t> pick(1);
  std::vector<int> seen(4);
  for (int i = 0; i < 100'000; ++i) {
    drawn.draw(random, pick);
    ++seen[pick[0]];
  }
  for (int e = 0; e < 4; ++e) {
    EXPECT_NEAR(seen[static_cast<std::size_t>(e)], 10'000 * (e + 1), 600);
  }
}

std::vector<std::uint16_t> decode_tokens(const ExpertModel& model, const std::string& text,
                                         std::uint64_t variant, int n) {
  const auto stream = model.open(text, profile_of(text), variant);
  std::vector<std::uint16_t> all;
  std::vector<std::uint16_t> picks(model.shape().picks());
  for (int i = 0; i < n; ++i) {
    stream->next_decode_token(picks);
    all.insert(all.end(), picks.begin(), picks.end());
  }
  return all;
}

TEST(ProfileModel, DependsOnSeedTextAndVariantOnly) {
  const auto a = make_profile_model(shape_of(4, 32, 4), 1);
  const auto b = make_profile_model(shape_of(4, 32, 4), 1);
  const auto c = make_profile_model(shape_of(4, 32, 4), 2);
  EXPECT_EQ(decode_tokens(*a, "def f():", 0, 20), decode_tokens(*b, "def f():", 0, 20));
  EXPECT_NE(decode_tokens(*a, "def f():", 0, 20), decode_tokens(*c, "def f():", 0, 20));
  EXPECT_NE(decode_tokens(*a, "def f():", 0, 20), decode_tokens(*a, "def g():", 0, 20));
  EXPECT_NE(decode_tokens(*a, "def f():", 0, 20), decode_tokens(*a, "def f():", 1, 20));
}

TEST(ProfileModel, PromptAndDecodeTokensDoNotDisturbEachOther) {
  const auto model = make_profile_model(shape_of(4, 32, 4), 1);
  const auto stream = model->open("def f():", profile_of("def f():"), 0);
  std::vector<std::uint16_t> picks(model->shape().picks());
  std::vector<std::uint16_t> all;
  for (int i = 0; i < 20; ++i) {
    stream->next_prompt_token(picks);
    stream->next_decode_token(picks);
    all.insert(all.end(), picks.begin(), picks.end());
  }
  EXPECT_EQ(all, decode_tokens(*model, "def f():", 0, 20));
}

signature::Trace small_trace(bool with_tokens) {
  signature::Trace trace;
  trace.model = std::string(1, 't');  // GCC 12 warns falsely about assigning a literal here
  trace.layers = {3, 5};
  trace.experts = 4;
  trace.top_k = 1;
  trace.labels = {"code", "math"};
  trace.prompt_tokens = {2, 2};
  trace.decode_tokens = {2, 2};
  trace.prefill_counts = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
  trace.decode_counts = trace.prefill_counts;
  if (with_tokens) {
    trace.decode_experts = {0, 1, 2, 3, 2, 3, 2, 3};
    trace.decode_offsets = {0, 2, 4};
  }
  return trace;
}

TEST(TraceModel, DrawsFromTheCountsOfARequestOfTheDomain) {
  const auto model = make_trace_model(small_trace(false));
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->shape().layers, (std::vector<std::int32_t>{3, 5}));
  const std::string math = "How many apples are left when 3 of 5 are eaten?";
  ASSERT_EQ(profile_of(math).domain, Domain::kMath);
  const auto picks = decode_tokens(**model, math, 0, 100);
  int as_recorded = 0;
  for (std::size_t i = 0; i < picks.size(); i += 2) {
    as_recorded += picks[i] == 2 && picks[i + 1] == 3 ? 1 : 0;
  }
  EXPECT_GE(as_recorded, 98);  // another expert has a tiny weight
}

TEST(TraceModel, ReplaysRecordedTokensOverAndOver) {
  const auto model = make_trace_model(small_trace(true));
  ASSERT_TRUE(model);
  const std::string code = "def f(): return 1";
  ASSERT_EQ(profile_of(code).domain, Domain::kCode);
  EXPECT_EQ(decode_tokens(**model, code, 0, 3), (std::vector<std::uint16_t>{0, 1, 2, 3, 0, 1}));
}

TEST(TraceModel, RefusesATraceWithoutRequests) {
  signature::Trace trace = small_trace(false);
  trace.prompt_tokens.clear();
  EXPECT_FALSE(make_trace_model(std::move(trace)));
}

}  // namespace
}  // namespace eldr::sim
