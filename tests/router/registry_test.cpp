// SPDX-License-Identifier: Apache-2.0
#include "router/workers/registry.h"

#include <thread>

#include <gtest/gtest.h>

#include "router/workers/source.h"

namespace eldr::router {
namespace {

WorkerSpec spec(const std::string& id, std::optional<std::int32_t> cluster = {}) {
  return {id, "10.0.0.1", 8000, cluster};
}

TEST(Registry, AWorkerThatStaysKeepsItsCounters) {
  WorkerRegistry registry{HealthConfig{}};
  EXPECT_TRUE(registry.replace(Role::kDecode, {spec("b", 1), spec("a", 0)}));
  const auto before = registry.snapshot();
  ASSERT_EQ(before->decode.size(), 2U);
  EXPECT_EQ(before->decode[0]->id, "a");
  before->decode[0]->load.began();
  EXPECT_TRUE(registry.replace(Role::kDecode, {spec("a", 0), spec("c", 2)}));
  const auto after = registry.snapshot();
  EXPECT_EQ(after->decode[0], before->decode[0]);
  EXPECT_EQ(after->decode[0]->load.own(), 1U);
  EXPECT_EQ(before->decode.size(), 2U);  // a snapshot never changes
  EXPECT_FALSE(registry.replace(Role::kDecode, {spec("c", 2), spec("a", 0)}));
}

TEST(Registry, AnotherAddressIsAnotherWorker) {
  WorkerRegistry registry{HealthConfig{}};
  registry.replace(Role::kPrefill, {spec("a")});
  const auto before = registry.snapshot()->prefill[0];
  registry.replace(Role::kPrefill, {{"a", "10.0.0.2", 8000, {}}});
  EXPECT_NE(registry.snapshot()->prefill[0], before);
}

TEST(Registry, AChangedClusterIsSeenOnTheSameWorker) {
  WorkerRegistry registry{HealthConfig{}};
  registry.replace(Role::kDecode, {spec("a")});
  const auto worker = registry.snapshot()->decode[0];
  EXPECT_FALSE(worker->cluster());
  EXPECT_TRUE(registry.replace(Role::kDecode, {spec("a", 4)}));
  EXPECT_EQ(worker->cluster(), 4);
  EXPECT_EQ(registry.snapshot()->decode[0], worker);
}

TEST(Registry, RolesDoNotTouchEachOther) {
  WorkerRegistry registry{HealthConfig{}};
  registry.replace(Role::kPrefill, {spec("a")});
  registry.replace(Role::kDecode, {spec("a"), spec("b")});
  EXPECT_EQ(registry.snapshot()->prefill.size(), 1U);
  registry.replace(Role::kPrefill, {});
  EXPECT_EQ(registry.snapshot()->decode.size(), 2U);
}

TEST(Registry, ReadersAndWritersMayMeet) {
  WorkerRegistry registry{HealthConfig{}};
  std::atomic<bool> stop{false};
  std::size_t seen = 0;
  std::thread reader([&] {
    while (!stop) {
      const auto set = registry.snapshot();  // keeps the list alive while it is read
      for (const auto& worker : set->decode) seen += worker->id.size();
    }
  });
  for (int i = 0; i < 2000; ++i)
    registry.replace(Role::kDecode, {spec("a"), spec("w" + std::to_string(i % 7))});
  stop = true;
  reader.join();
  EXPECT_EQ(registry.snapshot()->decode.size(), 2U);
}

TEST(ListedWorkers, HaveTheirAddressesAsIds) {
  Config config;
  config.prefill = {{"10.0.0.1", 8000, {}}};
  config.decode = {{"::1", 8001, 3}};
  WorkerRegistry registry{HealthConfig{}};
  publish_listed_workers(config, registry);
  EXPECT_EQ(registry.snapshot()->prefill[0]->id, "10.0.0.1:8000");
  EXPECT_EQ(registry.snapshot()->decode[0]->id, "[::1]:8001");
  EXPECT_EQ(registry.snapshot()->decode[0]->authority, "[::1]:8001");
  EXPECT_EQ(registry.snapshot()->decode[0]->cluster(), 3);
}

}  // namespace
}  // namespace eldr::router
