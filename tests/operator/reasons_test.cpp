// SPDX-License-Identifier: Apache-2.0
// Each condition reason is reached, the page that documents them is complete, and each field of the spec does
// something.
#include <fstream>
#include <set>
#include <sstream>

#include "tests/operator/world.h"

namespace eldr::op::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReasonsTest : public World {
 protected:
  /// Reconciles a few times whatever happens.
  void go() {
    for (int i = 0; i < 6; ++i) (void)reconcile();
  }
  void break_requests(const std::string& method, const std::string& part, int code, const char* reason) {
    cluster.intercept = [=](const kube::HttpRequest& r) -> std::optional<Result<kube::HttpResponse>> {
      if (r.method != method || r.target.find(part) == std::string::npos) return {};
      return status_response(code, reason, std::string("no: ") + reason);
    };
  }
};

TEST_F(ReasonsTest, InvalidSpecNamesEveryWrongField) {
  change_policy([](Json& p) {
    p["spec"]["dataset"]["sampleSize"] = 0;
    p["spec"]["routing"]["tau"] = "3";
    p["spec"]["calibration"]["fit"]["backend"] = "TPU";
    p["spec"]["dataset"]["url"] = {{"url", "ftp://x"}, {"sha256", "12"}};
  });
  settle();
  EXPECT_EQ(condition(kAccepted), "False/InvalidSpec");
  EXPECT_THAT(message(kAccepted),
              AllOf(HasSubstr("spec.dataset.sampleSize: 0 is not in 1..100000"),
                    HasSubstr("spec.routing.tau: \"3\" is not a decimal in 0..2"),
                    HasSubstr("spec.calibration.fit.backend: \"TPU\" is not one of Auto, CPU, CUDA"),
                    HasSubstr("spec.dataset: 2 sources are set"), HasSubstr("spec.dataset.url.url"),
                    HasSubstr("spec.dataset.url.sha256")));
  EXPECT_EQ(condition(kCalibrated), "Unknown/NotEvaluated");
  EXPECT_EQ(condition(kReady), "False/InvalidSpec");
}

TEST_F(ReasonsTest, Datasets) {
  add_workers(4, 2);
  cluster.erase(kube::kConfigMaps, {"serving", "prompts"});
  settle();
  EXPECT_EQ(condition(kDatasetAvailable), "False/ConfigMapNotFound");
  EXPECT_THAT(message(kDatasetAvailable), HasSubstr("serving/prompts does not exist"));
  cluster.put(kube::kConfigMaps,
              {{"metadata", {{"name", "prompts"}, {"namespace", "serving"}}}, {"data", {{"other", "x"}}}});
  settle();
  EXPECT_EQ(condition(kDatasetAvailable), "False/KeyNotFound");
  EXPECT_THAT(message(kDatasetAvailable), HasSubstr("it has other"));
  cluster.edit(kube::kConfigMaps, {"serving", "prompts"}, [](Json& m) {
    m["data"] = {{"prompts.jsonl", " \n"}};
  });
  settle();
  EXPECT_EQ(condition(kDatasetAvailable), "False/DatasetInvalid");
  change_policy([](Json& p) {
    p["spec"]["dataset"].erase("configMap");
    p["spec"]["dataset"]["persistentVolumeClaim"] = {{"claimName", "c"}, {"path", "p"}};
  });
  settle();
  EXPECT_EQ(condition(kDatasetAvailable), "False/ClaimNotFound");
  cluster.put(kube::kPersistentVolumeClaims, {{"metadata", {{"name", "c"}, {"namespace", "serving"}}}});
  settle();
  EXPECT_EQ(condition(kDatasetAvailable), "True/DatasetFound");
  break_requests("GET", "persistentvolumeclaims", 500, "InternalError");
  go();
  EXPECT_EQ(condition(kDatasetAvailable), "Unknown/ApiError");
}

TEST_F(ReasonsTest, ScaleTargets) {
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "False/ScaleTargetNotFound");
  EXPECT_THAT(message(kWorkersAvailable), HasSubstr("Deployment serving/decode does not exist"));
  EXPECT_EQ(condition(kCalibrated), "False/WaitingForWorkers");
  EXPECT_EQ(condition(kRouterUpdated), "Unknown/NotEvaluated");
  for (const auto& [version, kind] :
       {std::pair("apps/v1", "Depolyment"), {"no.such/v1", "Thing"}, {"apps/v1", "DaemonSet"}}) {
    change_policy([&, v = version, k = kind](Json& p) {
      p["spec"]["decode"]["scaleTargetRef"]["apiVersion"] = v;
      p["spec"]["decode"]["scaleTargetRef"]["kind"] = k;
    });
    settle();
    EXPECT_EQ(condition(kWorkersAvailable), "False/ScaleTargetUnsupported") << kind;
    EXPECT_THAT(message(kWorkersAvailable), HasSubstr(kind));
  }
}

TEST_F(ReasonsTest, ScaleRejected) {
  add_workers(4, 2);
  change_policy([](Json& p) { p["spec"]["decode"]["replicas"] = 5; });
  break_requests("PATCH", "/scale", 403, "Forbidden");
  go();
  EXPECT_EQ(condition(kWorkersAvailable), "False/ScaleRejected");
}

TEST_F(ReasonsTest, Pools) {
  add_workers(4, 2);
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "True/WorkersReady");
  cluster.edit(kube::kDeployments, {"serving", "decode"}, [](Json& d) { d["spec"]["replicas"] = 5; });
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "True/WorkersPartlyReady");
  scale_decode(0);
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "False/PoolEmpty");
  EXPECT_EQ(condition(kCalibrated), "False/WaitingForWorkers");
  cluster.edit(kube::kDeployments, {"serving", "decode"}, [](Json& d) { d["spec"]["replicas"] = 300; });
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "False/PoolTooLarge");
  cluster.edit(kube::kDeployments, {"serving", "decode"}, [](Json& d) { d["spec"]["replicas"] = 1; });
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "False/DecodeWorkersNotReady");
  follow_decode_scale();
  for (const Json& pod : cluster.all(kube::kPods))
    if (kube::label_of(pod, "app") == "prefill") cluster.erase(kube::kPods, kube::key_of(pod));
  settle();
  EXPECT_EQ(condition(kWorkersAvailable), "False/PrefillWorkersNotReady");
}

TEST_F(ReasonsTest, ATroubledPodIsNamed) {
  add_workers(1, 1);
  for (const Json& pod : cluster.all(kube::kPods))
    cluster.edit(kube::kPods, kube::key_of(pod), [](Json& p) {
      p["status"] = {
          {"containerStatuses",
           Json::array({{{"name", "vllm"},
                         {"state",
                          {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "no such image"}}}}}}})}};
    });
  settle();
  EXPECT_THAT(message(kWorkersAvailable),
              AllOf(HasSubstr("vllm ImagePullBackOff (no such image)"), HasSubstr("pod decode-")));
}

TEST_F(ReasonsTest, AJobThatCannotStartSaysWhy) {
  add_workers(4, 2);
  settle();
  const std::string name = only_job();
  cluster.put(kube::kPods, {{"metadata",
                             {{"name", name + "-y"},
                              {"namespace", "serving"},
                              {"labels", {{"batch.kubernetes.io/job-name", name}}}}},
                            {"status",
                             {{"conditions", Json::array({{{"type", "PodScheduled"},
                                                           {"status", "False"},
                                                           {"message", "Insufficient nvidia.com/gpu"}}})}}}});
  settle();
  EXPECT_EQ(condition(kCalibrated), "False/Calibrating");
  EXPECT_THAT(message(kCalibrated), HasSubstr("not scheduled: Insufficient nvidia.com/gpu"));
}

TEST_F(ReasonsTest, RejectedChildren) {
  add_workers(4, 2);
  break_requests("POST", "/jobs", 403, "Forbidden");
  go();
  EXPECT_EQ(condition(kCalibrated), "False/JobRejected");
  EXPECT_EQ(events.count("JobRejected"), 1U) << "said once, however often it is tried";
  cluster.erase(kube::kServices, {"serving", "qwen3-router"});
  break_requests("PATCH", "/services/", 422, "Invalid");
  go();
  EXPECT_EQ(condition(kRouterUpdated), "False/RouterRejected");
  break_requests("GET", "/deployments/qwen3-router", 500, "InternalError");
  go();
  EXPECT_EQ(condition(kRouterUpdated), "Unknown/ApiError");
}

std::string page(const std::string& path) {
  std::ifstream in(std::string(ELDR_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ConditionsPage, DocumentsEveryTypeAndReason) {
  const std::string text = page("docs/reference/conditions.md");
  ASSERT_FALSE(text.empty());
  for (const auto type : kConditionTypes) EXPECT_THAT(text, HasSubstr("`" + std::string(type) + "`"));
  for (const auto reason : reason::kAll) EXPECT_THAT(text, HasSubstr("| `" + std::string(reason) + "` |"));
}

/// Every reason appears in a test of this folder as a test expects it, "False/JobFailed".
TEST(Reasons, EachIsReachedByATest) {
  std::string tests;
  for (const char* file : {"loop_test.cpp", "reasons_test.cpp", "faults_test.cpp"})
    tests += page(std::string("tests/operator/") + file);
  for (const auto reason : reason::kAll)
    EXPECT_THAT(tests, HasSubstr("/" + std::string(reason) + "\"")) << reason;
}

/// Each field of the spec, changed, changes what the operator makes or says.
TEST_F(ReasonsTest, EveryFieldOfTheSpecHasAnEffect) {
  const std::vector<std::pair<std::string, Json>> kMutations = {
      {"/model/name", "other/model"},
      {"/model/revision", "v2"},
      {"/dataset/configMap/name", "prompts2"},
      {"/dataset/configMap/key", "other.jsonl"},
      {"/dataset/revision", "r2"},
      {"/dataset/sampleSize", 500},
      {"/dataset/decodeTokens", 64},
      {"/prefill/selector/matchLabels", {{"app", "prefill2"}}},
      {"/prefill/selector/matchExpressions", Json::array({{{"key", "x"}, {"operator", "Exists"}}})},
      {"/prefill/port", 8001},
      {"/decode/scaleTargetRef/name", "decode2"},
      {"/decode/replicas", 3},
      {"/decode/port", 8002},
      {"/decode/expertParallel/ranks", 2},
      {"/calibration/engine", {{"job", {{"image", "engine:1"}}}}},
      {"/calibration/engine/service/url", "http://other:8000"},
      {"/calibration/fit/backend", "CPU"},
      {"/calibration/fit/seed", 7},
      {"/calibration/fit/resources", {{"limits", {{"cpu", "2"}}}}},
      {"/calibration/cache", {{"persistentVolumeClaim", {{"claimName", "traces"}}}}},
      {"/calibration/activeDeadlineSeconds", 60},
      {"/calibration/backoffLimit", 5},
      {"/calibration/queueName", "gpus"},
      {"/calibration/suspend", true},
      {"/routing/policy", "LoadAwareBand"},
      {"/routing/tau", "0.3"},
      {"/routing/loadWeight", "1.5"},
      {"/routing/prefillPolicy", "Random"},
      {"/router/replicas", 3},
      {"/router/image", "router:2"},
      {"/router/resources", {{"limits", {{"cpu", "2"}}}}},
      {"/router/service/type", "NodePort"},
      {"/router/service/port", 8080},
      {"/router/drainSeconds", 10},
      {"/router/progressDeadlineSeconds", 60},
      {"/router/nodeSelector", {{"a", "b"}}},
      {"/router/tolerations", Json::array({{{"key", "gpu"}}})},
      {"/router/affinity", {{"nodeAffinity", Json::object()}, {"podAffinity", {{"x", 1}}}}},
      {"/router/priorityClassName", "high"},
      {"/router/imagePullSecrets", Json::array({{{"name", "s"}}})},
      // Of the engine in the Job.
      {"/calibration/engine", {{"job", {{"image", "engine:2"}, {"imagePullPolicy", "Always"}}}}},
      // Last: the result that it judges makes a Job needless.
      {"/calibration/minimumRho", "0.9"},
  };
  add_workers(4, 2);
  cluster.put(kube::kConfigMaps, {{"metadata", {{"name", "prompts2"}, {"namespace", "serving"}}},
                                  {"data", {{"prompts.jsonl", "{\"prompt\": \"z\"}"}}}});
  settle();  // the Job runs; fields of the Job must reach it while it does
  const auto picture = [this] {
    std::string text;
    for (const kube::Resource& resource :
         {kube::kConfigMaps, kube::kJobs, kube::kServices, kube::kDeployments, kube::kPods})
      for (Json object : cluster.all(resource)) {
        for (const char* field : {"resourceVersion", "generation", "uid", "creationTimestamp"})
          object["metadata"].erase(field);
        text += object.dump();
      }
    for (const char* type : {kDatasetAvailable, kWorkersAvailable, kCalibrated, kRouterUpdated})
      text += condition(type) + message(type);
    return text;
  };
  std::set<std::string> pictures;
  for (const auto& [pointer, value] : kMutations) {
    SCOPED_TRACE(pointer + " = " + value.dump());
    if (pointer == "/calibration/minimumRho") {
      finish_calibration(0.5);
      settle();
    }
    const std::string before = picture();
    const Json old_spec = policy()["spec"];
    change_policy([&, at = pointer, to = value](Json& p) {
      p["spec"][Json::json_pointer(at)] = to;
      if (at == "/prefill/selector/matchLabels") p["spec"]["prefill"]["selector"][("matchLabels")] = to;
    });
    clock.advance(std::chrono::seconds(31));
    go();
    clock.advance(std::chrono::seconds(31));
    go();
    EXPECT_NE(picture(), before);
    change_policy([&](Json& p) { p["spec"] = old_spec; });
    scale_decode(4);
    go();
    clock.advance(std::chrono::seconds(31));
    go();
  }
}

}  // namespace
}  // namespace eldr::op::testing
