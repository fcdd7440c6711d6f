// SPDX-License-Identifier: Apache-2.0
// What goes wrong around the operator: it dies after any write, the API server refuses, throttles, breaks. It
// must end in the same state as if nothing had happened.
#include <algorithm>
#include <set>

#include "tests/operator/world.h"

namespace eldr::op::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class FaultsTest : public World {
 protected:
  /// Everything that the operator made, without what differs between two runs.
  std::string picture() const {
    std::string text;
    for (const kube::Resource& resource :
         {kube::kConfigMaps, kube::kJobs, kube::kServiceAccounts, kube::kRoles, kube::kRoleBindings,
          kube::kServices, kube::kPodDisruptionBudgets, kube::kDeployments})
      for (Json object : cluster.all(resource)) {
        for (const char* field :
             {"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences"})
          object["metadata"].erase(field);
        if (object["metadata"].contains("annotations"))
          for (const char* name :
               {kPublishedAnnotation, kIntentAnnotation})  // a time; a hash with the owner's uid
            object["metadata"]["annotations"].erase(name);
        text += object.dump() + "\n";
      }
    for (const auto& [pod, id] : cluster_labels()) text += pod + "=" + id + "\n";
    return text;
  }
  void live_a_life() {
    settle();
    finish_calibration();
    settle();
    run_deployment_controller();
    settle();
  }
};

TEST_F(FaultsTest, ACrashAfterEachWriteConverges) {
  add_workers(4, 2);
  live_a_life();
  ASSERT_EQ(condition(kReady), "True/AllReady");
  const std::string undisturbed = picture();
  const int writes = static_cast<int>(cluster.writes().size());
  ASSERT_GT(writes, 10);

  for (int after = 0; after <= writes; ++after) {
    SCOPED_TRACE("dies after write " + std::to_string(after));
    // A new world each time, with the same other actors.
    for (const kube::Resource& resource :
         {kube::kConfigMaps, kube::kJobs, kube::kServiceAccounts, kube::kRoles, kube::kRoleBindings,
          kube::kServices, kube::kPodDisruptionBudgets, kube::kDeployments, kube::kReplicaSets,
          kube::kEldrPolicies, kube::kPods})
      for (const Json& object : cluster.all(resource)) cluster.erase(resource, kube::key_of(object));
    cluster.put(kube::kConfigMaps,
                {{"metadata", {{"name", "prompts"}, {"namespace", "serving"}}},
                 {"data", {{"prompts.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n"}}}});
    cluster.put(kube::kEldrPolicies, sample_policy());
    restart_pod_names();
    add_workers(4, 2);
    cluster.clear_log();
    cluster.crash_after_writes = after;
    for (int phase = 0; phase < 3; ++phase) {
      for (int i = 0; i < 6; ++i) {
        (void)reconcile();
        // The crash happens once; the next reconcile is the restarted operator's, which remembers nothing.
        if (cluster.crash_after_writes && static_cast<int>(cluster.writes().size()) >= after)
          cluster.crash_after_writes.reset();
        restart_operator();
      }
      if (phase == 0) finish_calibration();
      if (phase == 1) run_deployment_controller();
    }
    cluster.crash_after_writes.reset();
    settle();
    EXPECT_EQ(condition(kReady), "True/AllReady") << message(kReady);
    const std::string now = picture();
    const auto differs = std::mismatch(now.begin(), now.end(), undisturbed.begin(), undisturbed.end()).first;
    EXPECT_TRUE(now == undisturbed) << "differs from: "
                                    << now.substr(static_cast<std::size_t>(differs - now.begin()), 300);
  }
}

TEST_F(FaultsTest, EveryRequestMayFailOnceInEachWay) {
  struct Fault {
    int code;
    const char* reason;
  };
  add_workers(4, 2);
  live_a_life();
  for (const Fault fault :
       {Fault{409, "Conflict"}, Fault{429, "TooManyRequests"}, Fault{500, "InternalError"},
        Fault{503, "ServiceUnavailable"}, Fault{504, "Timeout"}, Fault{403, "Forbidden"}}) {
    SCOPED_TRACE(fault.reason);
    change_policy([&](Json& p) { p["spec"]["model"]["revision"] = fault.reason; });
    // Each request fails the first time it is seen.
    auto seen = std::make_shared<std::set<std::string>>();
    cluster.intercept =
        [seen, fault](const kube::HttpRequest& request) -> std::optional<Result<kube::HttpResponse>> {
      if (!seen->insert(request.method + request.target).second) return {};
      return status_response(fault.code, fault.reason, "not now", 1);
    };
    for (int i = 0; i < 80; ++i) (void)reconcile();
    finish_calibration();
    for (int i = 0; i < 80; ++i) (void)reconcile();
    run_deployment_controller();
    for (int i = 0; i < 20; ++i) (void)reconcile();
    cluster.intercept = nullptr;
    settle();
    EXPECT_EQ(condition(kReady), "True/AllReady") << message(kReady);
  }
}

TEST_F(FaultsTest, RetryAfterReachesTheQueue) {
  cluster.intercept = [](const kube::HttpRequest& request) -> std::optional<Result<kube::HttpResponse>> {
    if (request.target.find("/jobs") == std::string::npos) return {};
    return status_response(429, "TooManyRequests", "slow down", 7);
  };
  add_workers(4, 2);
  const auto result = reconcile();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kThrottled);
  EXPECT_EQ(result.error().retry_after_seconds, 7);
}

TEST_F(FaultsTest, NothingIsRolledOrPrunedOnTheWordOfAFailedRead) {
  add_workers(4, 2);
  live_a_life();
  const Json before = router();
  cluster.clear_log();
  for (const char* what : {"configmaps?", "deployments/qwen3-router", "jobs?", "/scale", "pods?"}) {
    SCOPED_TRACE(what);
    cluster.intercept =
        [what](const kube::HttpRequest& request) -> std::optional<Result<kube::HttpResponse>> {
      if (request.method != "GET" || request.target.find(what) == std::string::npos) return {};
      return status_response(500, "InternalError", "etcd is away");
    };
    EXPECT_FALSE(reconcile());
    EXPECT_EQ(router(), before);
    EXPECT_THAT(results(), SizeIs(1));
    for (const std::string& write : cluster.writes()) EXPECT_THAT(write, HasSubstr("eldrpolicies/status"));
    cluster.intercept = nullptr;
    settle();
    EXPECT_EQ(condition(kReady), "True/AllReady");
    cluster.clear_log();
  }
}

TEST_F(FaultsTest, MalformedObjectsCrashNothing) {
  add_workers(4, 2);
  live_a_life();
  for (const Json& junk :
       {Json(nullptr), Json(42), Json("text"), Json::array({1, 2}), Json{{"a", Json::array()}}}) {
    SCOPED_TRACE(junk.dump());
    change_policy([&](Json& p) { p["status"] = junk; });
    cluster.edit(kube::kDeployments, {"serving", "qwen3-router"}, [&](Json& d) { d["status"] = junk; });
    for (const Json& pod : cluster.all(kube::kPods))
      cluster.edit(kube::kPods, kube::key_of(pod),
                   [&](Json& p) { p["metadata"]["labels"]["eldr.dev/cluster"] = "x"; });
    (void)reconcile();
    run_deployment_controller();
    settle();
    EXPECT_EQ(condition(kReady), "True/AllReady") << message(kReady);
  }
  for (const char* text : {"", "{", "[]", "{\"stage\": 5}", R"({"stage":"x","done":-1,"total":0})"}) {
    cluster.edit(kube::kConfigMaps, {"serving", results().at(0)},
                 [&](Json& map) { map["metadata"]["annotations"][kSummaryAnnotation] = text; });
    (void)reconcile();
  }
  for (const Json& spec :
       {Json(nullptr), Json(1), Json::object(), Json{{"model", 5}}, Json{{"dataset", Json::array()}}}) {
    change_policy([&](Json& p) { p["spec"] = spec; });
    settle();
    EXPECT_EQ(condition(kAccepted), "False/InvalidSpec");
  }
}

}  // namespace
}  // namespace eldr::op::testing
