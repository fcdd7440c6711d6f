// SPDX-License-Identifier: Apache-2.0
#include "router/workers/pods.h"

#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/kube/fake_api_server.h"

namespace eldr::router {
namespace {

using kube::Json;

Json pod(const std::string& name, const std::string& app, const std::string& ip, bool ready) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "serving"}, {"labels", {{"app", app}}}}},
          {"status",
           {{"podIP", ip},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})}}}};
}

Json labelled(Json pod, const std::string& cluster) {
  pod["metadata"]["labels"]["eldr.dev/cluster"] = cluster;
  return pod;
}

TEST(WorkerOfPod, AReadyPodIsAWorker) {
  const auto worker = worker_of_pod(labelled(pod("d-0", "decode", "10.0.0.7", true), "5"), 8000);
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->id, "d-0");
  EXPECT_EQ(worker->host, "10.0.0.7");
  EXPECT_EQ(worker->port, 8000);
  EXPECT_EQ(worker->cluster, 5);
}

TEST(WorkerOfPod, OthersAreNot) {
  EXPECT_FALSE(worker_of_pod(pod("a", "decode", "10.0.0.7", false), 80));
  EXPECT_FALSE(worker_of_pod(pod("a", "decode", "", true), 80));
  auto terminating = pod("a", "decode", "10.0.0.7", true);
  terminating["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z";
  EXPECT_FALSE(worker_of_pod(terminating, 80));
  EXPECT_FALSE(worker_of_pod(Json::object(), 80));
}

TEST(WorkerOfPod, ALabelThatIsNoIdReadsAsNone) {
  for (const auto* label : {"", "x", "-1", "1.5", "99999999999"})
    EXPECT_FALSE(worker_of_pod(labelled(pod("a", "d", "10.0.0.7", true), label), 80)->cluster) << label;
}

bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 500 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return holds();
}

TEST(WatchPods, TheRegistryFollowsThePods) {
  const auto api = std::make_shared<kube::testing::FakeApiServer>();
  auto& server = *api;
  server.put(kube::kPods, "serving", pod("p-0", "prefill", "10.0.0.1", true));
  server.put(kube::kPods, "serving", pod("d-0", "decode", "10.0.0.2", true));
  server.put(kube::kPods, "serving", pod("other", "web", "10.0.0.9", true));
  const RealClock clock;
  const auto random = kube::make_random(1);
  const kube::Client client(api, {}, clock);
  KubernetesConfig config{"serving", {"app=prefill", 8000}, {"app=decode", 8001}};
  auto registry = std::make_shared<WorkerRegistry>(HealthConfig{});
  const auto source = watch_pods(client, config, registry, clock, *random);
  ASSERT_TRUE(soon([&] { return source->ready().has_value(); })) << source->ready().error().message;
  ASSERT_EQ(registry->snapshot()->prefill.size(), 1U);
  ASSERT_EQ(registry->snapshot()->decode.size(), 1U);
  const auto first = registry->snapshot()->decode[0];
  EXPECT_EQ(first->authority, "10.0.0.2:8001");
  EXPECT_FALSE(first->cluster());

  server.put(kube::kPods, "serving", labelled(pod("d-0", "decode", "10.0.0.2", true), "1"));
  EXPECT_TRUE(soon([&] { return first->cluster() == 1; }));
  server.put(kube::kPods, "serving", labelled(pod("d-1", "decode", "10.0.0.3", false), "2"));
  server.put(kube::kPods, "serving", labelled(pod("d-2", "decode", "10.0.0.4", true), "3"));
  EXPECT_TRUE(soon([&] { return registry->snapshot()->decode.size() == 2; }));
  server.put(kube::kPods, "serving", labelled(pod("d-2", "decode", "10.0.0.4", false), "3"));
  EXPECT_TRUE(soon([&] { return registry->snapshot()->decode.size() == 1; }));
  server.erase(kube::kPods, {"serving", "d-0"});
  EXPECT_TRUE(soon([&] { return registry->snapshot()->decode.empty(); }));
  EXPECT_EQ(registry->snapshot()->prefill.size(), 1U);
}

}  // namespace
}  // namespace eldr::router
