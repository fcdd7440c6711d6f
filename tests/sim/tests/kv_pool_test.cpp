// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/kv_pool.h"

#include <gtest/gtest.h>

#include "tests/sim/prefix_cache.h"

namespace eldr::sim {
namespace {

using namespace std::chrono_literals;

class FakeClock final : public Clock {
 public:
  Steady steady() const override { return now; }
  Wall wall() const override { return {}; }
  Steady now{};
};

TEST(KvPool, GivesWhatItHas) {
  KvPool pool(3);
  EXPECT_TRUE(pool.reserve(2));
  EXPECT_FALSE(pool.reserve(2));
  EXPECT_TRUE(pool.reserve(1));
  pool.release(3);
  EXPECT_EQ(pool.used(), 0U);
  EXPECT_EQ(blocks_for(0), 0U);
  EXPECT_EQ(blocks_for(16), 1U);
  EXPECT_EQ(blocks_for(17), 2U);
}

class LeaseTest : public ::testing::Test {
 protected:
  void hold(const std::string& id, std::uint32_t blocks) {
    ASSERT_TRUE(pool_.reserve(blocks));
    Lease lease;
    lease.blocks = blocks;
    lease.tokens = blocks * kBlockTokens;
    leases_.hold(id, lease);
  }
  FakeClock clock_;
  KvPool pool_{10};
  LeaseTable leases_{clock_, pool_, 30s};
};

TEST_F(LeaseTest, PullFreesTheBlocksOnce) {
  hold("a", 4);
  EXPECT_EQ(pool_.used(), 4U);
  const auto lease = leases_.pull("a");
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->tokens, 64U);
  EXPECT_EQ(pool_.used(), 0U);
  const auto again = leases_.pull("a");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kNotFound);
}

TEST_F(LeaseTest, EndsAfterItsTime) {
  hold("a", 4);
  clock_.now += 20s;
  hold("b", 2);
  clock_.now += 10s - 1ms;
  leases_.expire();
  EXPECT_EQ(pool_.used(), 6U);
  clock_.now += 1ms;
  leases_.expire();
  EXPECT_EQ(pool_.used(), 2U);
  EXPECT_FALSE(leases_.pull("a"));
  EXPECT_TRUE(leases_.pull("b"));
  const auto totals = leases_.totals();
  EXPECT_EQ(totals.held, 2U);
  EXPECT_EQ(totals.pulled, 1U);
  EXPECT_EQ(totals.expired, 1U);
  EXPECT_EQ(totals.now, 0U);
}

TEST(PrefixCache, HitsWholeBlocksOfTheSamePrefix) {
  PrefixCache cache(100);
  std::vector<std::uint32_t> prompt(50);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<std::uint32_t>(i);
  }
  EXPECT_EQ(cache.look_up_and_add(prompt), 0U);
  EXPECT_EQ(cache.look_up_and_add(prompt), 48U);
  auto other_end = prompt;
  other_end[20] = 999;
  EXPECT_EQ(cache.look_up_and_add(other_end), 16U);
  auto other_start = prompt;
  other_start[0] = 999;
  EXPECT_EQ(cache.look_up_and_add(other_start), 0U);
  prompt.resize(32);
  EXPECT_EQ(cache.look_up_and_add(prompt), 31U);  // the last token is computed again
}

TEST(PrefixCache, ForgetsTheOldest) {
  PrefixCache cache(2);
  const std::vector<std::uint32_t> a(16, 1);
  const std::vector<std::uint32_t> b(32, 2);
  cache.look_up_and_add(a);
  cache.look_up_and_add(b);
  EXPECT_EQ(cache.look_up_and_add(a), 0U);
}

}  // namespace
}  // namespace eldr::sim
