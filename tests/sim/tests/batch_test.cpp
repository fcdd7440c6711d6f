// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace eldr::sim {
namespace {

// Every decode token picks the experts first, first + 1, … in each layer.
class FixedStream final : public ExpertStream {
 public:
  explicit FixedStream(std::uint16_t first, std::size_t top_k) : first_(first), top_k_(top_k) {}
  void next_prompt_token(std::span<std::uint16_t> picks) override { next_decode_token(picks); }
  void next_decode_token(std::span<std::uint16_t> picks) override {
    for (std::size_t i = 0; i < picks.size(); ++i) {
      picks[i] = static_cast<std::uint16_t>(first_ + i % top_k_);
    }
  }

 private:
  std::uint16_t first_;
  std::size_t top_k_;
};

class BatchTest : public ::testing::Test {
 protected:
  BatchTest() {
    shape_.layers = {0, 1, 2};
    shape_.experts = 64;
    shape_.top_k = 2;
    cost_.step_a_us = 10;
    cost_.step_b_us = 1;
    cost_.layer_scale = 2;
    cost_.prefill_us = 5;
    cost_.time_scale = 3;
  }

  std::shared_ptr<Sequence> sequence(std::uint32_t prompt, std::uint32_t output,
                                     std::uint16_t first_expert = 0) {
    auto s = std::make_shared<Sequence>();
    s->progress = std::make_shared<Progress>(1);
    s->experts = std::make_unique<FixedStream>(first_expert, shape_.top_k);
    s->label = "code";
    s->prompt_tokens = prompt;
    s->output_tokens = output;
    return s;
  }

  void step(Batch& batch) {
    batch.begin_step();
    now_ += std::chrono::milliseconds(10);
    batch.end_step(now_, stats_);
  }

  ModelShape shape_;
  CostModel cost_;
  BatchLimits limits_;
  KvPool pool_{100};
  LabelStats stats_;
  Clock::Steady now_{};
};

TEST_F(BatchTest, StepTimeFollowsDistinctExpertsNotBatchSize) {
  Batch batch(shape_, cost_, limits_, pool_);
  for (const std::uint16_t first : {0, 0, 0, 1, 10}) {  // experts 0 1 2 10 11
    auto s = sequence(16, 5, first);
    s->remote_prefill = true;
    ASSERT_TRUE(batch.submit(s));
  }
  EXPECT_DOUBLE_EQ(batch.begin_step(), 3.0 * 2 * 3 * (10 + 1 * 5));
}

TEST_F(BatchTest, PrefillTakesTimeByTokensNotCachedAndGivesTheFirstToken) {
  Batch batch(shape_, cost_, limits_, pool_);
  auto s = sequence(40, 3);
  s->cached_tokens = 16;
  ASSERT_TRUE(batch.submit(s));
  EXPECT_DOUBLE_EQ(batch.begin_step(), 3.0 * 5 * 24);  // no expert is read for a decode token
  batch.end_step(now_, stats_);
  EXPECT_EQ(s->made, 1U);
  EXPECT_DOUBLE_EQ(batch.begin_step(), 3.0 * 2 * 3 * (10 + 1 * 2));
}

TEST_F(BatchTest, EverySequenceGetsOneTokenAStepAndLeavesWhenDone) {
  Batch batch(shape_, cost_, limits_, pool_);
  auto a = sequence(16, 2);
  auto b = sequence(16, 3);
  batch.submit(a);
  batch.submit(b);
  step(batch);
  step(batch);
  EXPECT_EQ(a->made, 2U);
  EXPECT_EQ(batch.running(), 1U);
  step(batch);
  EXPECT_EQ(b->made, 3U);
  EXPECT_FALSE(batch.has_work());
  EXPECT_EQ(pool_.used(), 0U);
  std::uint64_t version = 0;
  EXPECT_EQ(b->progress->wait(version, std::chrono::milliseconds(0)).tokens, std::vector<std::uint32_t>{3});
  const auto json = stats_.to_json();
  EXPECT_EQ(json["requests"], 2);
  EXPECT_EQ(json["tokens"], 5);
  EXPECT_EQ(json["decode_tokens"], 3);
  EXPECT_DOUBLE_EQ(json["active_experts"], 2.0);
  EXPECT_DOUBLE_EQ(json["by_label"]["code"]["time_per_output_token_ms"], 10.0);
}

TEST_F(BatchTest, WaitsBeyondTheLargestBatchAndRefusesBeyondTheQueue) {
  limits_.max_running = 2;
  limits_.max_waiting = 3;
  Batch batch(shape_, cost_, limits_, pool_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(batch.submit(sequence(16, 1)));
  }
  EXPECT_FALSE(batch.submit(sequence(16, 1)));
  batch.begin_step();
  EXPECT_EQ(batch.running(), 2U);
  EXPECT_EQ(batch.waiting(), 1U);
}

TEST_F(BatchTest, PromptsBeyondTheStepsBudgetWaitAndALongOneRunsAlone) {
  limits_.max_step_tokens = 50;
  Batch batch(shape_, cost_, limits_, pool_);
  batch.submit(sequence(80, 5));
  batch.submit(sequence(30, 5));
  batch.submit(sequence(30, 5));
  step(batch);
  EXPECT_EQ(batch.running(), 1U);
  step(batch);
  EXPECT_EQ(batch.running(), 2U);
  step(batch);
  EXPECT_EQ(batch.running(), 3U);
}

TEST_F(BatchTest, WaitsForBlocksAndKeepsThoseOfALease) {
  KvPool pool(4);
  Batch batch(shape_, cost_, limits_, pool);
  auto leased = sequence(32, 1);  // 3 blocks with its output, 2 of them for the prompt
  leased->keeps_blocks = true;
  batch.submit(leased);
  batch.submit(sequence(32, 1));
  step(batch);
  EXPECT_EQ(batch.running(), 0U);
  EXPECT_EQ(batch.waiting(), 1U);
  EXPECT_EQ(pool.used(), 2U);
  EXPECT_DOUBLE_EQ(batch.begin_step(), 0);  // 3 blocks are not free
  pool.release(2);
  EXPECT_GT(batch.begin_step(), 0);
}

TEST_F(BatchTest, DropsTheCancelledWithTheirBlocks) {
  Batch batch(shape_, cost_, limits_, pool_);
  auto running = sequence(16, 5);
  running->keeps_blocks = true;
  batch.submit(running);
  step(batch);
  auto waiting = sequence(16, 5);
  batch.submit(waiting);
  running->cancelled = true;
  waiting->cancelled = true;
  EXPECT_DOUBLE_EQ(batch.begin_step(), 0);
  EXPECT_FALSE(batch.has_work());
  EXPECT_EQ(pool_.used(), 0U);
}

TEST_F(BatchTest, RecordsTheExpertsOfDecodeTokens) {
  Batch batch(shape_, cost_, limits_, pool_);
  auto s = sequence(16, 4, 7);
  s->records = true;
  batch.submit(s);
  for (int i = 0; i < 4; ++i) {
    step(batch);
  }
  EXPECT_EQ(s->recorded.size(), 3 * shape_.picks());  // the first token came out of the prefill
  EXPECT_THAT(s->recorded, ::testing::Each(::testing::AnyOf(7, 8)));
}

TEST_F(BatchTest, FailsWhatIsLeft) {
  Batch batch(shape_, cost_, limits_, pool_);
  auto s = sequence(16, 4);
  batch.submit(s);
  step(batch);
  batch.fail_all();
  std::uint64_t version = 0;
  EXPECT_TRUE(s->progress->wait(version, std::chrono::milliseconds(0)).failed);
  EXPECT_EQ(pool_.used(), 0U);
}

TEST(LabelStats, LimitsTheLabelsThatClientsMayInvent) {
  LabelStats stats;
  Sequence s;
  for (int i = 0; i < 1000; ++i) {
    s.label = std::to_string(i);
    stats.on_token(s, {}, true, 1.0);
  }
  const auto json = stats.to_json();
  EXPECT_LE(json["by_label"].size(), 65U);
  EXPECT_EQ(json["tokens"], 1000);
  stats.reset();
  EXPECT_EQ(stats.to_json()["tokens"], 0);
}

}  // namespace
}  // namespace eldr::sim
