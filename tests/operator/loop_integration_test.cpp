// SPDX-License-Identifier: Apache-2.0
// The whole controller against a real API server and its controllers, without nodes: the test plays the
// calibrator and the kubelet.
#include <set>

#include "operator/controller.h"
#include "tests/operator/integration.h"

namespace eldr::op::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LoopIntegrationTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    if (client == nullptr || HasFatalFailure()) return;
    random_ = kube::make_random(1);
    apply(kube::kConfigMaps,
          {{"metadata", {{"name", "prompts"}}}, {"data", {{"prompts.jsonl", "{\"prompt\": \"a\"}\n"}}}});
    for (const auto& [name, replicas] : {std::pair("decode", 2), {"prefill", 1}})
      apply(kube::kDeployments,
            {{"metadata", {{"name", name}}},
             {"spec",
              {{"replicas", replicas},
               {"selector", {{"matchLabels", {{"app", name}}}}},
               {"template",
                {{"metadata", {{"labels", {{"app", name}}}}},
                 {"spec", {{"containers", Json::array({{{"name", "w"}, {"image", "w:1"}}})}}}}}}}});
    start_controller();
  }
  void TearDown() override {
    controller_.reset();
    IntegrationTest::TearDown();
  }

  void start_controller() {
    controller_.reset();
    controller_ =
        std::make_unique<Controller>(ControllerOptions{.environment = {.client = client,
                                                                       .clock = &clock,
                                                                       .events = &events,
                                                                       .calibrator_image = "calibrate:1",
                                                                       .router_image = "router:1",
                                                                       .poll = std::chrono::seconds(1)},
                                                       .namespaces = {ns},
                                                       .workers = 2},
                                     *random_);
    controller_->start_watching();
    controller_->start_working();
  }

  void create_policy(const std::function<void(Json&)>& change = {}) {
    Json object = sample_policy();
    object["metadata"]["namespace"] = ns;
    object["spec"]["calibration"]["stabilizationSeconds"] = 1;
    object["spec"]["router"]["drainSeconds"] = 0;
    if (change) change(object);
    const auto made = client->create(kube::kEldrPolicies, ns, object);
    ASSERT_TRUE(made) << made.error().to_string();
  }
  std::string condition(const char* type) const {
    const Json policy = get(kube::kEldrPolicies, "qwen3");
    const Json* found = kube::find_condition(policy, type);
    const bool fresh = found && kube::int_at(*found, {"observedGeneration"}) == kube::generation_of(policy);
    return fresh ? kube::string_at(*found, {"status"}) + "/" + kube::string_at(*found, {"reason"}) : "";
  }
  void wait_condition(const char* type, const std::string& wanted) const {
    wait_for(std::string(type) + " " + wanted, [&] { return condition(type) == wanted; });
  }

  /// What kubelets would report of all pods with that label: Running and Ready.
  void pods_become_ready(const std::string& selector, std::size_t count) const {
    wait_for(std::to_string(count) + " pods of " + selector,
             [&] { return list(kube::kPods, selector).size() >= count; });
    for (const Json& pod : list(kube::kPods, selector)) {
      if (kube::condition_is_true(pod, "Ready")) continue;
      const std::string now = format_rfc3339(clock.wall());
      (void)client->patch(
          kube::kPods, kube::key_of(pod), kube::PatchType::kMerge,
          {{"status",
            {{"phase", "Running"},
             {"conditions",
              Json::array({{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", now}}})}}}},
          "status");
    }
  }
  /// Routers are replaced one by one: each new pod must be made ready, and the pods without a kubelet that
  /// are told to go must be let go.
  void routers_roll_out() const {
    wait_for("the routers are rolled out", [this] {
      for (const Json& pod : list(kube::kPods))
        if (kube::is_deleting(pod))
          (void)client->remove(kube::kPods, kube::key_of(pod), {.grace_period_seconds = 0});
      pods_become_ready("app.kubernetes.io/name=eldr-router", 1);
      return condition(kRouterUpdated) == "True/RolledOut";
    });
  }
  void calibrate(std::int64_t clusters, double rho = 0.6) const {
    std::string hash;
    wait_for("a Job for " + std::to_string(clusters) + " clusters", [&] {
      for (const Json& job : list(kube::kJobs))
        if (!kube::is_deleting(job) &&
            job.dump().find("\"--clusters\",\"" + std::to_string(clusters) + "\"") != std::string::npos)
          hash = *kube::annotation_of(job, kFitHashAnnotation);
      return !hash.empty();
    });
    merge(kube::kConfigMaps, "qwen3-c-" + hash.substr(0, 10),
          {{"binaryData",
            {{kCentroidsKey, centroids_base64(clusters, hash, rho, static_cast<std::uint64_t>(clusters))}}},
           {"metadata",
            {{"annotations", {{kSummaryAnnotation, Json{{"rho", rho}, {"layersKept", 2}}.dump()}}}}}});
  }
  Json router() const { return get(kube::kDeployments, "qwen3-router"); }
  void run_to_ready() {
    pods_become_ready("app=decode", 2);
    pods_become_ready("app=prefill", 1);
    calibrate(2);
    wait_condition(kCalibrated, "True/Published");
    routers_roll_out();
    wait_condition(kReady, "True/AllReady");
  }

  EventList events;
  std::unique_ptr<kube::Random> random_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(LoopIntegrationTest, FromApplyToReadyAndThroughAChangeOfSize) {
  create_policy();
  wait_condition(kCalibrated, "False/Calibrating");
  run_to_ready();
  std::set<std::string> ids;
  for (const Json& pod : list(kube::kPods, "app=decode"))
    ids.insert(kube::label_of(pod, kClusterLabel).value_or("-"));
  EXPECT_EQ(ids, (std::set<std::string>{"0", "1"}));

  // Through the policy's own scale: the target follows.
  ASSERT_TRUE(client->set_scale(kube::kEldrPolicies, {ns, "qwen3"}, 3));
  wait_for("the target is scaled",
           [this] { return get(kube::kDeployments, "decode")["spec"]["replicas"] == 3; });
  pods_become_ready("app=decode", 3);
  calibrate(3);
  wait_for("the routers get the new configuration", [this] {
    return condition(kCalibrated) == "True/Published" && condition(kRouterUpdated) == "False/RollingOut";
  });
  routers_roll_out();
  wait_condition(kReady, "True/AllReady");
  ids.clear();
  for (const Json& pod : list(kube::kPods, "app=decode"))
    ids.insert(kube::label_of(pod, kClusterLabel).value_or("-"));
  EXPECT_EQ(ids, (std::set<std::string>{"0", "1", "2"}));
  EXPECT_EQ(get(kube::kEldrPolicies, "qwen3")["status"]["activeConfig"]["clusters"], 3);
}

TEST_F(LoopIntegrationTest, AnEditOfTheDataSetIsSeenAndTheOldConfigurationServesMeanwhile) {
  create_policy();
  run_to_ready();
  const Json before = router()["spec"]["template"];
  merge(kube::kConfigMaps, "prompts", {{"data", {{"prompts.jsonl", "nonsense"}}}});
  wait_condition(kDatasetAvailable, "False/DatasetInvalid");
  EXPECT_EQ(router()["spec"]["template"], before);
  merge(kube::kConfigMaps, "prompts", {{"data", {{"prompts.jsonl", "{\"prompt\": \"new\"}"}}}});
  wait_condition(kCalibrated, "False/Calibrating");
  EXPECT_EQ(get(kube::kEldrPolicies, "qwen3")["status"]["calibration"]["reason"], "DatasetChanged");
}

TEST_F(LoopIntegrationTest, ARestartedOperatorGoesOnAndWritesNothingWhenAllIsWell) {
  create_policy();
  wait_condition(kCalibrated, "False/Calibrating");
  start_controller();
  run_to_ready();
  const auto versions = [this] {
    std::string text;
    for (const kube::Resource& resource :
         {kube::kEldrPolicies, kube::kConfigMaps, kube::kJobs, kube::kServices, kube::kRoles,
          kube::kRoleBindings, kube::kPodDisruptionBudgets, kube::kDeployments})
      for (const Json& object : list(resource))
        text += kube::object_name(object) + "=" + kube::resource_version_of(object) + " ";
    return text;
  };
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const std::string before = versions();
  start_controller();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_EQ(versions(), before);
}

TEST_F(LoopIntegrationTest, ARemovedFieldLeavesTheChildAndAHandEditIsRepaired) {
  create_policy([](Json& p) {
    p["spec"]["router"]["nodeSelector"] = {{"disk", "ssd"}};
    p["spec"]["router"]["resources"] = {{"limits", {{"cpu", "1000m"}, {"memory", "0.5Gi"}}}};
  });
  wait_for("the routers have the node selector",
           [this] { return router().dump().find("ssd") != std::string::npos; });
  merge(kube::kEldrPolicies, "qwen3", {{"spec", {{"router", {{"nodeSelector", nullptr}}}}}});
  wait_for("and lose it", [this] { return router()["spec"].dump().find("ssd") == std::string::npos; });
  merge(kube::kDeployments, "qwen3-router", {{"spec", {{"replicas", 7}}}});
  wait_for("an edit is undone", [this] { return router()["spec"]["replicas"] == 2; });
}

TEST_F(LoopIntegrationTest, AFailedJobIsExplained) {
  create_policy([](Json& p) {
    p["spec"]["calibration"]["backoffLimit"] = 0;
    p["spec"]["calibration"]["engine"] = {
        {"job",
         {{"image", "engine:1"},
          {"args", Json::array({"--x"})},
          {"resources", {{"limits", {{"nvidia.com/gpu", 1}}}}},
          {"tolerations", Json::array({{{"key", "gpu"}, {"operator", "Exists"}}})}}}};
  });
  const std::string selector = "app.kubernetes.io/name=eldr-calibrator";
  wait_for("the Job's pod", [&] { return !list(kube::kPods, selector).empty(); });
  const std::string pod = kube::object_name(list(kube::kPods, selector).at(0));
  const std::string now = format_rfc3339(clock.wall());
  merge(kube::kPods, pod,
        {{"status",
          {{"phase", "Failed"},
           {"containerStatuses", Json::array({{{"name", "calibrate"},
                                               {"image", "i"},
                                               {"imageID", "i"},
                                               {"ready", false},
                                               {"restartCount", 0},
                                               {"state",
                                                {{"terminated",
                                                  {{"exitCode", 65},
                                                   {"finishedAt", now},
                                                   {"message", "data.jsonl line 3: no prompt"}}}}}}})}}}},
        "status");
  wait_condition(kCalibrated, "False/JobFailed");
  const Json policy = get(kube::kEldrPolicies, "qwen3");
  EXPECT_THAT(kube::string_at(*kube::find_condition(policy, kCalibrated), {"message"}),
              HasSubstr("exit code 65: data.jsonl line 3: no prompt"));
}

TEST_F(LoopIntegrationTest, DeletingThePolicyDeletesWhatItOwnsAndNothingElse) {
  create_policy();
  wait_condition(kCalibrated, "False/Calibrating");
  ASSERT_TRUE(client->remove(kube::kEldrPolicies, {ns, "qwen3"}));
  wait_for("everything is collected", [this] {
    std::size_t left = 0;
    for (const kube::Resource& resource :
         {kube::kConfigMaps, kube::kJobs, kube::kServices, kube::kRoles, kube::kRoleBindings,
          kube::kServiceAccounts, kube::kPodDisruptionBudgets, kube::kDeployments})
      left += list(resource, std::string(kPolicyLabel) + "=qwen3").size();
    return left == 0;
  });
  EXPECT_TRUE(get(kube::kConfigMaps, "prompts").is_object());
  EXPECT_TRUE(get(kube::kDeployments, "decode").is_object());
}

}  // namespace
}  // namespace eldr::op::testing
