// SPDX-License-Identifier: Apache-2.0
// The life of a policy: from apply to Ready, and what follows each kind of change.
#include "tests/operator/world.h"

namespace eldr::op::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using LoopTest = World;

TEST_F(LoopTest, TakesAPolicyFromApplyToReady) {
  add_workers(4, 2);
  settle();
  EXPECT_EQ(condition(kAccepted), "True/SpecAccepted");
  EXPECT_EQ(condition(kDatasetAvailable), "True/DatasetFound");
  EXPECT_EQ(condition(kWorkersAvailable), "True/WorkersReady");
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
  EXPECT_EQ(condition(kRouterUpdated), "False/RollingOut");
  EXPECT_EQ(condition(kReady), "False/Calibrating");
  EXPECT_EQ(routed_centroids(), "") << "before the first calibration routers choose by load alone";
  EXPECT_THAT(router_yaml(), Not(HasSubstr("centroids")));
  EXPECT_THAT(only_job(), HasSubstr("qwen3-cal-"));

  finish_calibration();
  settle();
  EXPECT_EQ(condition(kCalibrated), "True/Published");
  EXPECT_EQ(routed_centroids(), results().at(0));
  EXPECT_THAT(router_yaml(), HasSubstr("clusterIds: [0, 1, 2, 3]"));
  run_deployment_controller();
  settle();
  EXPECT_EQ(condition(kReady), "True/AllReady");
  EXPECT_EQ(condition(kRouterUpdated), "True/RolledOut");
  EXPECT_EQ(status_text({"activeConfig", "name"}), results().at(0));
  EXPECT_EQ(status_text({"activeConfig", "clusters"}), "4");
  EXPECT_EQ(status_text({"calibration", "rho"}), "0.6");
  EXPECT_EQ(status_text({"calibration", "reason"}), "FirstCalibration");
  EXPECT_EQ(status_text({"router", "summary"}), "2/2");
  EXPECT_EQ(status_text({"decodeReplicas"}), "4");
  EXPECT_EQ(status_text({"selector"}), "app=decode");
  EXPECT_EQ(events.count("CalibrationStarted"), 1U);
  EXPECT_EQ(events.count("CalibrationPublished"), 1U);
  EXPECT_EQ(events.count("Ready"), 1U);
}

TEST_F(LoopTest, WritesNothingAtSteadyState) {
  add_workers(4, 2);
  run_to_ready();
  cluster.clear_log();
  for (int i = 0; i < 3; ++i) {
    clock.advance(std::chrono::seconds(60));
    ASSERT_TRUE(reconcile());
  }
  EXPECT_THAT(cluster.writes(), SizeIs(0));
}

TEST_F(LoopTest, EveryConditionAndTheStatusCarryTheGeneration) {
  add_workers(4, 2);
  settle();
  change_policy([](Json& p) { p["spec"]["routing"]["tau"] = "0.2"; });
  settle();
  const Json object = policy();
  EXPECT_EQ(kube::int_at(object, {"status", "observedGeneration"}), kube::generation_of(object));
  ASSERT_EQ(object["status"]["conditions"].size(), kConditionTypes.size());
  for (const Json& condition : object["status"]["conditions"])
    EXPECT_EQ(kube::int_at(condition, {"observedGeneration"}), kube::generation_of(object)) << condition;
}

TEST_F(LoopTest, FollowsTheTargetsOwnCount) {
  add_workers(4, 2);
  run_to_ready();
  const std::string four = routed_centroids();
  scale_decode(6);
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Stabilizing");
  EXPECT_THAT(message(kCalibrated), HasSubstr(four)) << "says what serves meanwhile";
  EXPECT_THAT(job_names(), SizeIs(1)) << "nothing starts before the size has held";

  clock.advance(std::chrono::seconds(31));
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
  EXPECT_EQ(status_text({"calibration", "reason"}), "PoolSizeChanged");
  EXPECT_EQ(routed_centroids(), four) << "routers keep the last good configuration";
  finish_calibration(0.6, 2);
  settle();
  run_deployment_controller();
  settle();
  EXPECT_EQ(condition(kReady), "True/AllReady");
  EXPECT_NE(routed_centroids(), four);
  EXPECT_EQ(status_text({"activeConfig", "clusters"}), "6");
  std::set<std::string> ids;
  for (const auto& [pod, id] : cluster_labels()) ids.insert(id);
  EXPECT_EQ(ids, (std::set<std::string>{"0", "1", "2", "3", "4", "5"}));
}

TEST_F(LoopTest, ScalesTheTargetWhenThePolicySaysHowMany) {
  add_workers(4, 2);
  change_policy([](Json& p) { p["spec"]["decode"]["replicas"] = 5; });
  settle();
  EXPECT_EQ(kube::int_at(cluster.get(kube::kDeployments, {"serving", "decode"}), {"spec", "replicas"}), 5);
  EXPECT_EQ(status_text({"decodeReplicas"}), "5");
  EXPECT_EQ(events.count("DecodePoolScaled"), 1U);
  const std::string job_name = only_job();
  EXPECT_THAT(job(job_name)["spec"]["template"]["spec"]["containers"][0]["args"].dump(),
              HasSubstr("\"--clusters\",\"5\""));
  // Somebody else scales the target: the policy's count wins.
  scale_decode(2);
  settle();
  EXPECT_EQ(kube::int_at(cluster.get(kube::kDeployments, {"serving", "decode"}), {"spec", "replicas"}), 5);
}

TEST_F(LoopTest, ThereAndBackAgainNeedsNoJob) {
  add_workers(4, 2);
  run_to_ready();
  const std::string four = routed_centroids();
  scale_decode(6);
  settle();
  clock.advance(std::chrono::seconds(31));
  settle();
  finish_calibration();
  settle();
  run_deployment_controller();
  settle();
  const auto jobs = job_names();
  scale_decode(4);
  settle();
  EXPECT_EQ(routed_centroids(), four);
  EXPECT_EQ(job_names(), jobs);
  EXPECT_EQ(condition(kCalibrated), "True/Published");
}

TEST_F(LoopTest, RapidChangesLeaveOneJobForTheLastState) {
  add_workers(4, 2);
  run_to_ready();
  for (const int replicas : {6, 5, 6, 3}) {
    scale_decode(replicas);
    ASSERT_TRUE(reconcile());
    clock.advance(std::chrono::seconds(40));
    ASSERT_TRUE(reconcile());
  }
  settle();
  std::vector<std::string> running;
  for (const Json& job : cluster.all(kube::kJobs))
    if (!kube::condition_is_true(job, "Complete")) running.push_back(job.dump());
  ASSERT_THAT(running, SizeIs(1));
  EXPECT_THAT(running[0], HasSubstr("\"--clusters\",\"3\""));
  EXPECT_GE(events.count("CalibrationSuperseded"), 2U);
  EXPECT_THAT(results(), SizeIs(2)) << "the published one and the place for the next; the others are gone";
}

TEST_F(LoopTest, AShortFlapOfThePoolDisturbsNothing) {
  add_workers(4, 2);
  run_to_ready();
  const auto jobs = job_names();
  scale_decode(5);
  ASSERT_TRUE(reconcile());
  clock.advance(std::chrono::seconds(10));
  scale_decode(4);
  settle();
  EXPECT_EQ(condition(kReady), "True/AllReady");
  EXPECT_EQ(job_names(), jobs);
}

TEST_F(LoopTest, AnEditOfTheDataSetRecalibrates) {
  add_workers(4, 2);
  run_to_ready();
  cluster.edit(kube::kConfigMaps, {"serving", "prompts"},
               [](Json& map) { map["data"]["prompts.jsonl"] = "{\"prompt\": \"c\"}"; });
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
  EXPECT_EQ(status_text({"calibration", "reason"}), "DatasetChanged");
}

TEST_F(LoopTest, AChangedModelRecalibratesAndChangedFitSettingsToo) {
  add_workers(4, 2);
  run_to_ready();
  change_policy([](Json& p) { p["spec"]["model"]["revision"] = "v2"; });
  settle();
  EXPECT_EQ(status_text({"calibration", "reason"}), "ModelChanged");
  change_policy([](Json& p) {
    p["spec"]["model"]["revision"] = "";
    p["spec"]["calibration"]["fit"]["backend"] = "CPU";
  });
  settle();
  EXPECT_EQ(status_text({"calibration", "reason"}), "SettingsChanged");
}

TEST_F(LoopTest, ABadDataSetIsReportedWhileTheOldConfigurationServes) {
  add_workers(4, 2);
  run_to_ready();
  const Json before = router()["spec"];
  cluster.edit(kube::kConfigMaps, {"serving", "prompts"},
               [](Json& map) { map["data"]["prompts.jsonl"] = "{\"prompt\": \"a\"}\nnot json\n"; });
  settle();
  EXPECT_EQ(condition(kDatasetAvailable), "False/DatasetInvalid");
  EXPECT_THAT(message(kDatasetAvailable),
              AllOf(HasSubstr("serving/prompts"), HasSubstr("line 2 is not JSON")));
  EXPECT_EQ(condition(kCalibrated), "False/WaitingForDataset");
  EXPECT_EQ(condition(kReady), "False/DatasetInvalid");
  EXPECT_EQ(router()["spec"], before);
  EXPECT_EQ(status_text({"activeConfig", "name"}), results().at(0));
  EXPECT_EQ(events.count("DatasetInvalid"), 1U);
}

TEST_F(LoopTest, RoutingParametersRollTheRoutersAndRecalibrateNothing) {
  add_workers(4, 2);
  run_to_ready();
  const auto jobs = job_names();
  const std::string config = kube::object_name(router_config());
  change_policy([](Json& p) { p["spec"]["routing"]["tau"] = "0.25"; });
  settle();
  EXPECT_EQ(job_names(), jobs);
  EXPECT_EQ(condition(kCalibrated), "True/Published");
  EXPECT_EQ(condition(kRouterUpdated), "False/RollingOut");
  EXPECT_NE(kube::object_name(router_config()), config);
  EXPECT_THAT(router_yaml(), HasSubstr("tau: 0.25"));
}

TEST_F(LoopTest, ResultsUnderTheMinimumRhoAreNotRolledOut) {
  add_workers(4, 2);
  settle();
  finish_calibration(0.2);
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/RhoTooLow");
  EXPECT_THAT(message(kCalibrated), AllOf(HasSubstr("0.2"), HasSubstr("minimumRho 0.3")));
  EXPECT_EQ(routed_centroids(), "");
  const auto jobs = job_names();
  change_policy([](Json& p) { p["spec"]["calibration"]["minimumRho"] = "0.1"; });
  settle();
  EXPECT_EQ(condition(kCalibrated), "True/Published");
  EXPECT_EQ(job_names(), jobs) << "the result is there already";
}

TEST_F(LoopTest, AFailedJobIsReportedWithItsCodeAndWords) {
  add_workers(4, 2);
  settle();
  const std::string name = only_job();
  fail_job(name, 65, "prompts.jsonl line 3: no prompt\n");
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/JobFailed");
  EXPECT_THAT(message(kCalibrated),
              AllOf(HasSubstr("exit code 65: prompts.jsonl line 3: no prompt"), HasSubstr(name)));
  EXPECT_EQ(job_names(), std::vector<std::string>{name}) << "it is not run again by itself";
  clock.advance(std::chrono::hours(10));
  settle();
  EXPECT_EQ(job_names(), std::vector<std::string>{name});
  // Its deletion is the request to try again.
  cluster.erase(kube::kJobs, {"serving", name});
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
}

TEST_F(LoopTest, AFailedJobIsMadeAnewForOtherResources) {
  add_workers(4, 2);
  settle();
  const std::string name = only_job();
  fail_job(name, 70, "");
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/JobFailed");
  EXPECT_THAT(message(kCalibrated), HasSubstr("exit code 70")) << "also when the pod is gone";
  change_policy([](Json& p) {
    p["spec"]["calibration"]["fit"]["resources"] = {{"limits", {{"memory", "8Gi"}}}};
  });
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
  EXPECT_THAT(job(name).dump(), HasSubstr("8Gi"));
}

TEST_F(LoopTest, ACachedTraceNeedsOnlyAFitAndFallsBackToTheWholeJob) {
  add_workers(4, 2);
  change_policy([](Json& p) {
    p["spec"]["calibration"]["cache"] = {{"persistentVolumeClaim", {{"claimName", "traces"}}}};
    p["spec"]["calibration"]["engine"] = {{"job", {{"image", "engine:1"}}}};
  });
  run_to_ready();
  scale_decode(6);
  settle();
  clock.advance(std::chrono::seconds(31));
  settle();
  std::string fit;
  for (const std::string& name : job_names())
    if (name.find("-fit-") != std::string::npos) fit = name;
  ASSERT_FALSE(fit.empty());
  EXPECT_FALSE(job(fit)["spec"]["template"]["spec"].contains("initContainers")) << "no engine, no GPU";
  EXPECT_THAT(job(fit).dump(), HasSubstr("--from-cache"));

  fail_job(fit, 66, "no trace");
  settle();
  std::string full = fit;
  full.replace(full.find("-fit-"), 5, "-cal-");
  EXPECT_THAT(job_names(), Contains(full));
  EXPECT_TRUE(job(full)["spec"]["template"]["spec"].contains("initContainers"));
  finish_calibration();
  settle();
  EXPECT_EQ(condition(kCalibrated), "True/Published");
}

TEST_F(LoopTest, SuspendHoldsCalibrationBackAndResumesIt) {
  add_workers(4, 2);
  change_policy([](Json& p) { p["spec"]["calibration"]["suspend"] = true; });
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Suspended");
  EXPECT_THAT(job_names(), SizeIs(0));
  change_policy([](Json& p) { p["spec"]["calibration"]["suspend"] = false; });
  settle();
  const std::string name = only_job();
  change_policy([](Json& p) { p["spec"]["calibration"]["suspend"] = true; });
  settle();
  EXPECT_TRUE(kube::bool_at(job(name), {"spec", "suspend"}));
  EXPECT_EQ(condition(kCalibrated), "False/Suspended");
  change_policy([](Json& p) { p["spec"]["calibration"]["suspend"] = false; });
  settle();
  EXPECT_FALSE(kube::bool_at(job(name), {"spec", "suspend"}));
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
}

TEST_F(LoopTest, AQueuedJobIsNotAFailedOne) {
  add_workers(4, 2);
  change_policy([](Json& p) { p["spec"]["calibration"]["queueName"] = "gpus"; });
  settle();
  const std::string name = only_job();
  EXPECT_EQ(kube::label_of(job(name), kQueueLabel), "gpus");
  EXPECT_TRUE(kube::bool_at(job(name), {"spec", "suspend"}));
  EXPECT_EQ(condition(kCalibrated), "False/Queued");
  cluster.edit(kube::kJobs, {"serving", name}, [](Json& j) { j["spec"]["suspend"] = false; });
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
  EXPECT_FALSE(kube::bool_at(job(name), {"spec", "suspend"})) << "what the queue admitted stays admitted";
}

TEST_F(LoopTest, ProgressReachesTheStatus) {
  add_workers(4, 2);
  settle();
  cluster.edit(kube::kConfigMaps, {"serving", results().at(0)}, [](Json& map) {
    map["metadata"]["annotations"][kProgressAnnotation] = R"({"stage":"Collecting","done":420,"total":1000})";
  });
  settle();
  EXPECT_EQ(status_text({"calibration", "stage"}), "Collecting");
  EXPECT_EQ(status_text({"calibration", "progress"}), "420/1000");
  EXPECT_THAT(message(kCalibrated), HasSubstr("Collecting 420/1000"));
}

TEST_F(LoopTest, AResultThatIsNotWhatWasAskedForIsRefused) {
  add_workers(4, 2);
  settle();
  const std::string name = only_job();
  const std::string hash = *kube::annotation_of(job(name), kFitHashAnnotation);
  cluster.edit(kube::kConfigMaps, {"serving", results().at(0)}, [&](Json& map) {
    map["binaryData"] = {{kCentroidsKey, centroids_base64(3, hash)}};
  });
  complete_job(name);
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/ResultInvalid");
  EXPECT_THAT(message(kCalibrated), HasSubstr("the number of clusters is 3, want 4"));
  EXPECT_FALSE(kube::bool_at(cluster.get(kube::kConfigMaps, {"serving", results().at(0)}), {"immutable"}));
}

TEST_F(LoopTest, AJobThatEndsWithoutAResultIsReported) {
  add_workers(4, 2);
  settle();
  complete_job(only_job());
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/ResultInvalid");
}

TEST_F(LoopTest, TheResultIsTheRecordOfCompletionNotTheJob) {
  add_workers(4, 2);
  run_to_ready();
  cluster.erase(kube::kJobs, {"serving", only_job()});
  settle();
  EXPECT_THAT(job_names(), SizeIs(0));
  EXPECT_EQ(condition(kReady), "True/AllReady");
  EXPECT_TRUE(kube::bool_at(cluster.get(kube::kConfigMaps, {"serving", results().at(0)}), {"immutable"}));
}

TEST_F(LoopTest, ARecordedTraceNeedsNoEngine) {
  add_workers(4, 2);
  cluster.put(kube::kPersistentVolumeClaims, {{"metadata", {{"name", "traces"}, {"namespace", "serving"}}}});
  change_policy([](Json& p) {
    p["spec"]["dataset"].erase("configMap");
    p["spec"]["dataset"]["trace"] = {{"claimName", "traces"}, {"path", "a.safetensors"}};
    p["spec"]["calibration"].erase("engine");
  });
  settle();
  EXPECT_THAT(job(only_job()).dump(),
              AllOf(HasSubstr("\"--trace\",\"/trace/a.safetensors\""), Not(HasSubstr("--engine"))));
}

TEST_F(LoopTest, ARollOutThatMissesItsDeadlineGoesBackAndSaysSo) {
  add_workers(4, 2);
  run_to_ready();
  const std::string good = routed_centroids();
  const std::string good_template = router()["spec"]["template"].dump();
  change_policy([](Json& p) { p["spec"]["router"]["image"] = "no-such-image"; });
  settle();
  EXPECT_THAT(router().dump(), HasSubstr("no-such-image"));
  exceed_progress_deadline();
  settle();
  EXPECT_EQ(condition(kRouterUpdated), "False/RolledBack");
  EXPECT_THAT(router()["spec"].dump(), Not(HasSubstr("no-such-image")));
  EXPECT_EQ(events.count("RolloutRolledBack"), 1U);
  run_deployment_controller();
  settle();
  EXPECT_EQ(condition(kRouterUpdated), "False/RolledBack") << "and stays there";
  EXPECT_EQ(routed_centroids(), good);
  EXPECT_EQ(status_text({"activeConfig", "name"}), good);
  // Any change of what is wanted tries again.
  change_policy([](Json& p) { p["spec"]["router"]["image"] = "good-image"; });
  settle();
  EXPECT_EQ(condition(kRouterUpdated), "False/RollingOut");
  run_deployment_controller();
  settle();
  EXPECT_EQ(condition(kReady), "True/AllReady");
}

TEST_F(LoopTest, AFirstRollOutThatFailsHasNothingToGoBackTo) {
  add_workers(4, 2);
  settle();
  exceed_progress_deadline();
  settle();
  EXPECT_EQ(condition(kRouterUpdated), "False/RolloutFailed");
}

TEST_F(LoopTest, PuttingTheOldSpecBackRecoversWithoutWaiting) {
  add_workers(4, 2);
  run_to_ready();
  const Json before = router()["spec"]["template"];
  change_policy([](Json& p) { p["spec"]["router"]["image"] = "no-such-image"; });
  settle();
  change_policy([](Json& p) { p["spec"]["router"]["image"] = ""; });
  settle();
  EXPECT_EQ(router()["spec"]["template"], before);
}

TEST_F(LoopTest, HistoryIsPrunedButNeverWhatRoutersMount) {
  add_workers(4, 2);
  change_policy([](Json& p) { p["spec"]["configHistoryLimit"] = 1; });
  run_to_ready();
  const std::string first = routed_centroids();
  for (int revision = 0; revision < 3; ++revision) {
    change_policy([&](Json& p) { p["spec"]["model"]["revision"] = std::to_string(revision); });
    clock.advance(std::chrono::seconds(60));
    settle();
    finish_calibration(0.6, 10 + static_cast<std::uint64_t>(revision));
    settle();
    if (revision < 2) {
      run_deployment_controller(false);  // the first ones still have pods
    } else {
      EXPECT_THAT(results(), Contains(first)) << "routers of the first configuration still run";
      run_deployment_controller();
    }
    settle();
  }
  EXPECT_THAT(results(), SizeIs(2)) << "the one in use and one more";
  EXPECT_THAT(results(), Contains(routed_centroids()));
}

TEST_F(LoopTest, ChildrenEditedOrDeletedByHandAreRepaired) {
  add_workers(4, 2);
  run_to_ready();
  const Json good = router();
  for (const kube::Resource& resource :
       {kube::kServices, kube::kServiceAccounts, kube::kRoles, kube::kRoleBindings,
        kube::kPodDisruptionBudgets, kube::kDeployments})
    cluster.erase(resource, {"serving", "qwen3-router"});
  settle();
  for (const kube::Resource& resource :
       {kube::kServices, kube::kServiceAccounts, kube::kRoles, kube::kRoleBindings,
        kube::kPodDisruptionBudgets, kube::kDeployments})
    EXPECT_TRUE(cluster.get(resource, {"serving", "qwen3-router"}).is_object()) << resource.kind;
  EXPECT_EQ(router()["spec"]["template"], good["spec"]["template"]) << "with the configuration it had";
  cluster.edit(kube::kServices, {"serving", "qwen3-router"},
               [](Json& s) { s["spec"]["ports"][0]["port"] = 1234; });
  settle();
  EXPECT_EQ(cluster.get(kube::kServices, {"serving", "qwen3-router"})["spec"]["ports"][0]["port"], 80);
}

TEST_F(LoopTest, AnOptionalFieldThatIsRemovedLeavesTheChild) {
  add_workers(4, 2);
  change_policy([](Json& p) { p["spec"]["router"]["nodeSelector"] = {{"disk", "ssd"}}; });
  run_to_ready();
  EXPECT_THAT(router().dump(), HasSubstr("ssd"));
  change_policy([](Json& p) { p["spec"]["router"].erase("nodeSelector"); });
  settle();
  EXPECT_THAT(router()["spec"].dump(), Not(HasSubstr("ssd")));
}

TEST_F(LoopTest, SomebodyElsesObjectsAreLeftAlone) {
  cluster.put(kube::kServices, {{"metadata", {{"name", "qwen3-router"}, {"namespace", "serving"}}},
                                {"spec", {{"mine", true}}}});
  add_workers(4, 2);
  for (int i = 0; i < 5; ++i) (void)reconcile();
  EXPECT_EQ(condition(kRouterUpdated), "False/RouterRejected");
  EXPECT_THAT(message(kRouterUpdated), HasSubstr("does not belong to this policy"));
  EXPECT_EQ(cluster.get(kube::kServices, {"serving", "qwen3-router"})["spec"], (Json{{"mine", true}}));
}

TEST_F(LoopTest, ADeletedPolicyIsLeftToItsOwnerReferences) {
  add_workers(4, 2);
  settle();
  for (const kube::Resource& resource : {kube::kJobs, kube::kServices, kube::kRoles, kube::kRoleBindings,
                                         kube::kServiceAccounts, kube::kPodDisruptionBudgets})
    for (const Json& child : cluster.all(resource))
      EXPECT_TRUE(kube::is_controlled_by(child, kube::uid_of(policy()))) << resource.kind;
  EXPECT_FALSE(policy()["metadata"].contains("finalizers"));
  cluster.erase(kube::kEldrPolicies, kPolicyKey);
  cluster.clear_log();
  const auto result = reconcile();
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->exists);
  EXPECT_THAT(cluster.writes(), SizeIs(0));
}

TEST_F(LoopTest, ChildrenOfAnEarlierPolicyOfThatNameAreNotUsed) {
  add_workers(4, 2);
  run_to_ready();
  Json again = sample_policy();
  cluster.erase(kube::kEldrPolicies, kPolicyKey);
  cluster.put(kube::kEldrPolicies, again);  // another uid; the old children are not collected yet
  for (int i = 0; i < 5; ++i) (void)reconcile();
  EXPECT_EQ(condition(kCalibrated), "False/JobRejected");
  EXPECT_EQ(condition(kRouterUpdated), "False/RouterRejected");
}

}  // namespace
}  // namespace eldr::op::testing
