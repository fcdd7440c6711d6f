// SPDX-License-Identifier: Apache-2.0
// The desired objects, whole, against the files in golden/. After a wanted change: ELDR_UPDATE_GOLDEN=1 and
// read the diff.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "operator/desired/calibration.h"
#include "operator/desired/router_config.h"
#include "operator/desired/router_workload.h"
#include "tests/operator/world.h"

namespace eldr::op::testing {
namespace {

void expect_golden(const std::string& name, const std::string& made) {
  const std::string path = std::string(ELDR_SOURCE_DIR) + "/tests/operator/golden/" + name;
  if (std::getenv("ELDR_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << made;
  std::ifstream in(path);
  ASSERT_TRUE(in) << path << " is missing";
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(made, text.str()) << name;
}
void expect_golden(const std::string& name, const Json& made) { expect_golden(name, made.dump(2) + "\n"); }

EldrPolicy policy(const std::function<void(Json&)>& change = {}) {
  Json object = sample_policy();
  object["metadata"]["uid"] = "0f2b";
  if (change) change(object);
  const auto parsed = parse_policy(object);
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  return parsed ? *parsed : EldrPolicy{};
}

CalibrationInputs inputs_of(const EldrPolicy& policy) {
  return derive_inputs(policy.spec, {{"sha256", std::string(64, 'a')}}, 4, "calibrate:1");
}

void engine_in_job(Json& p) {
  p["spec"]["calibration"]["engine"] = from_yaml(R"(
job:
  image: vllm:1
  command: [vllm, serve]
  args: [--enable-return-routed-experts]
  env: [{name: HF_HOME, value: /models}]
  resources: {limits: {nvidia.com/gpu: 1}}
  volumeMounts: [{name: models, mountPath: /models}]
  volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]
  nodeSelector: {gpu: h200}
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  imagePullSecrets: [{name: registry}]
)");
  p["spec"]["calibration"]["cache"] = {{"persistentVolumeClaim", {{"claimName", "traces"}}}};
  p["spec"]["calibration"]["queueName"] = "gpus";
}

TEST(Golden, CalibrationJobWithAnEngineService) {
  const EldrPolicy p = policy();
  expect_golden("job-engine-service.json",
                calibration_job(p, inputs_of(p), {.calibrator_image = "calibrate:1"}));
}

TEST(Golden, CalibrationJobWithAnEngineAsASidecar) {
  const EldrPolicy p = policy(engine_in_job);
  expect_golden("job-engine-sidecar.json",
                calibration_job(p, inputs_of(p), {.calibrator_image = "calibrate:1"}));
}

TEST(Golden, FitJobFromTheCache) {
  const EldrPolicy p = policy(engine_in_job);
  expect_golden("job-from-cache.json",
                calibration_job(p, inputs_of(p), {.calibrator_image = "calibrate:1", .from_cache = true}));
}

TEST(Golden, CalibrationJobFromATrace) {
  const EldrPolicy p = policy([](Json& o) {
    o["spec"]["dataset"].erase("configMap");
    o["spec"]["dataset"]["trace"] = {{"claimName", "traces"}, {"path", "qwen3.safetensors"}};
    o["spec"]["calibration"].erase("engine");
  });
  expect_golden("job-trace.json", calibration_job(p, inputs_of(p), {.calibrator_image = "calibrate:1"}));
}

TEST(Golden, ResultAndTheRightToFillIt) {
  const EldrPolicy p = policy();
  const Json result = result_config_map(p, inputs_of(p));
  expect_golden("calibrator-objects.json",
                Json::array({result, calibrator_service_account(p),
                             calibrator_role(p, kube::object_name(result)), calibrator_role_binding(p)}));
}

TEST(Golden, RouterConfiguration) {
  const EldrPolicy p = policy([](Json& o) {
    o["spec"]["routing"] = {
        {"policy", "LoadAwareBand"}, {"tau", "0.2"}, {"loadWeight", "1.5"}, {"prefillPolicy", "Random"}};
  });
  expect_golden("router.yaml", router_yaml(p, {"app=decode", "qwen3-c-1234567890", {0, 2, 3, 5}}));
  expect_golden("router-by-load.yaml", router_yaml(p, {"app=decode", "", {}}));
  const Json map = router_config_map(p, {"app=decode", "qwen3-c-1234567890", {0, 2, 3, 5}});
  EXPECT_EQ(cluster_ids_of(map), (std::vector<std::int32_t>{0, 2, 3, 5}));
}

TEST(Golden, RouterObjects) {
  const EldrPolicy p = policy([](Json& o) {
    o["spec"]["router"]["resources"] = {{"requests", {{"cpu", "1"}}}};
  });
  const Json pod_template = router_pod_template(p, {"router:1", "qwen3-c-1234567890", "qwen3-r-0987654321"});
  expect_golden("router-objects.json",
                Json::array({router_deployment(p, pod_template, {"good", "bad", "because"}),
                             router_service(p), router_disruption_budget(p), router_service_account(p),
                             router_role(p), router_role_binding(p)}));
}

}  // namespace
}  // namespace eldr::op::testing
