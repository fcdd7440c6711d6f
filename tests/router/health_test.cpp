// SPDX-License-Identifier: Apache-2.0
#include "router/workers/health.h"

#include <gtest/gtest.h>

#include "router/workers/worker.h"

namespace eldr::router {
namespace {

using std::chrono::milliseconds;
using Standing = Health::Standing;

const HealthConfig kConfig{3, milliseconds(1000), milliseconds(3000)};
const Clock::Steady kStart = Clock::Steady{} + std::chrono::hours(1);

void fail(Health& health, int times, Clock::Steady now) {
  for (int i = 0; i < times; ++i) health.failed(now);
}

TEST(Health, ConsecutiveFailuresEject) {
  Health health(kConfig);
  EXPECT_FALSE(health.failed(kStart));
  EXPECT_FALSE(health.failed(kStart));
  health.succeeded();
  EXPECT_FALSE(health.failed(kStart));
  EXPECT_FALSE(health.failed(kStart));
  EXPECT_EQ(health.standing(kStart), Standing::kHealthy);
  EXPECT_TRUE(health.failed(kStart));
  EXPECT_EQ(health.standing(kStart), Standing::kEjected);
  EXPECT_TRUE(health.is_ejected());
}

TEST(Health, OneRequestAtATimeProbes) {
  Health health(kConfig);
  fail(health, 3, kStart);
  const auto later = kStart + milliseconds(1000);
  EXPECT_EQ(health.standing(later - milliseconds(1)), Standing::kEjected);
  EXPECT_EQ(health.standing(later), Standing::kProbing);
  EXPECT_TRUE(health.claim_probe(later));
  EXPECT_FALSE(health.claim_probe(later));
  EXPECT_EQ(health.standing(later), Standing::kEjected);
  health.succeeded();
  EXPECT_EQ(health.standing(later), Standing::kHealthy);
  EXPECT_EQ(health.consecutive_failures(), 0U);
}

TEST(Health, AFailedProbeDoublesTheEjectionUpToItsLimit) {
  Health health(kConfig);
  fail(health, 3, kStart);
  auto now = kStart;
  for (const auto expected : {1000, 2000, 3000, 3000}) {
    EXPECT_EQ(health.standing(now + milliseconds(expected - 1)), Standing::kEjected);
    now += milliseconds(expected);
    ASSERT_TRUE(health.claim_probe(now));
    EXPECT_TRUE(health.failed(now));
  }
}

TEST(Health, StragglersDoNotProlongAnEjection) {
  Health health(kConfig);
  fail(health, 3, kStart);
  EXPECT_FALSE(health.failed(kStart + milliseconds(900)));
  EXPECT_EQ(health.standing(kStart + milliseconds(1000)), Standing::kProbing);
}

TEST(Health, AnAbandonedProbeMakesRoomForAnother) {
  Health health(kConfig);
  fail(health, 3, kStart);
  const auto later = kStart + milliseconds(1500);
  ASSERT_TRUE(health.claim_probe(later));
  health.abandon_probe();
  EXPECT_TRUE(health.claim_probe(later));
}

TEST(WorkerLease, CountsInFlightAndReleasesProbes) {
  auto worker = std::make_shared<Worker>(Role::kDecode, WorkerSpec{"w", "10.0.0.1", 80, {}}, kConfig);
  {
    WorkerLease lease(worker, kStart);
    EXPECT_EQ(worker->load.own(), 1U);
    WorkerLease moved = std::move(lease);
    EXPECT_EQ(worker->load.own(), 1U);
    moved.failed(kStart);
    moved.failed(kStart);
    moved.failed(kStart);
  }
  EXPECT_EQ(worker->load.own(), 0U);
  EXPECT_EQ(worker->failures, 3U);
  const auto later = kStart + milliseconds(1000);
  { const WorkerLease probe(worker, later); }  // the client left: nothing is known
  EXPECT_EQ(worker->health.standing(later), Standing::kProbing);
  EXPECT_EQ(worker->requests, 2U);
}

}  // namespace
}  // namespace eldr::router
