// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/world.h"

#include <algorithm>

#include <yaml-cpp/yaml.h>

#include "lib/base/digest.h"
#include "lib/signature/centroids.h"
#include "tests/signature/samples.h"

namespace eldr::op::testing {

const char kSamplePolicy[] = R"(
apiVersion: eldr.dev/v1alpha1
kind: EldrPolicy
metadata: {name: qwen3, namespace: serving}
spec:
  model: {name: test/model, revision: ""}
  dataset:
    configMap: {name: prompts, key: prompts.jsonl}
    revision: ""
    sampleSize: 1000
    decodeTokens: 128
  prefill: {selector: {matchLabels: {app: prefill}}, port: 8000}
  decode:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: decode}
    port: 8000
    expertParallel: {ranks: 1}
  calibration:
    engine: {service: {url: "http://engine:8000"}}
    fit: {backend: Auto, seed: 0}
    minimumRho: "0.3"
    stabilizationSeconds: 30
    activeDeadlineSeconds: 3600
    backoffLimit: 2
    queueName: ""
    suspend: false
  routing: {policy: LocalityBand, tau: "0.1", loadWeight: "", prefillPolicy: PrefixHash}
  router:
    replicas: 2
    image: ""
    service: {type: ClusterIP, port: 80}
    drainSeconds: 300
    progressDeadlineSeconds: 600
  configHistoryLimit: 3
)";

namespace {

Json json_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& entry : node) object[entry.first.as<std::string>()] = json_of(entry.second);
      return object;
    }
    case YAML::NodeType::Sequence: {
      Json list = Json::array();
      for (const auto& entry : node) list.push_back(json_of(entry));
      return list;
    }
    case YAML::NodeType::Scalar: {
      const std::string text = node.as<std::string>();
      if (node.Tag() == "!") return text;  // quoted
      if (text == "true" || text == "false") return text == "true";
      if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 18)
        return std::stoll(text);
      return text;
    }
    default:
      return nullptr;
  }
}

Json pod_named(const std::string& name, const std::string& app) {
  return {{"metadata", {{"name", name}, {"namespace", kPolicyKey.ns}, {"labels", {{"app", app}}}}},
          {"status",
           {{"phase", "Running"},
            {"podIP", "10.0.0.1"},
            {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

}  // namespace

std::size_t EventList::count(const std::string& reason) const {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [&](const std::string& event) {
    return event.find(" " + reason + ": ") != std::string::npos;
  }));
}

Json from_yaml(const std::string& text) { return json_of(YAML::Load(text)); }
Json sample_policy() { return from_yaml(kSamplePolicy); }

std::string centroids_base64(std::int64_t clusters, const std::string& fit_hash, double rho,
                             std::uint64_t seed) {
  auto set =
      signature::samples::centroids(seed, {.clusters = clusters, .layers = 2, .experts = 8, .requests = 40});
  set.fit_hash = fit_hash;
  set.rho = rho;
  const auto bytes = signature::serialize_centroids(set);
  EXPECT_TRUE(bytes) << bytes.error().to_string();
  return base64_encode(*bytes);
}

World::World() {
  restart_operator();
  cluster.put(kube::kConfigMaps,
              {{"metadata", {{"name", "prompts"}, {"namespace", "serving"}}},
               {"data", {{"prompts.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n"}}}});
  cluster.put(kube::kEldrPolicies, sample_policy());
}

void World::restart_operator() {
  client = std::make_unique<kube::Client>(server, kube::ClientOptions{}, clock);
  reconciler = std::make_unique<Reconciler>(Environment{.client = client.get(),
                                                        .clock = &clock,
                                                        .events = &events,
                                                        .calibrator_image = "calibrate:1",
                                                        .router_image = "router:1"});
}

Result<Reconciled> World::reconcile() { return reconciler->reconcile(kPolicyKey); }

void World::settle() {
  for (int i = 0; i < 20; ++i) {
    const std::size_t before = cluster.writes().size();
    const auto result = reconcile();
    if (result && cluster.writes().size() == before) return;
  }
  std::string log;
  for (const std::string& write : cluster.writes()) log += write + "\n";
  FAIL() << "still writing after 20 reconciles:\n" << log;
}

void World::run_to_ready() {
  settle();
  finish_calibration();
  settle();
  run_deployment_controller();
  settle();
  ASSERT_EQ(condition(kReady), "True/AllReady") << message(kReady);
}

void World::change_policy(const std::function<void(Json&)>& change) {
  cluster.edit(kube::kEldrPolicies, kPolicyKey, change);
}

void World::add_workers(int decode, int prefill) {
  cluster.put(kube::kDeployments,
              {{"metadata", {{"name", "decode"}, {"namespace", "serving"}}},
               {"spec", {{"replicas", decode}, {"selector", {{"matchLabels", {{"app", "decode"}}}}}}}});
  follow_decode_scale();
  for (int i = 0; i < prefill; ++i)
    cluster.put(kube::kPods, pod_named("prefill-" + std::to_string(i), "prefill"));
}

void World::scale_decode(int replicas) {
  cluster.edit(kube::kDeployments, {"serving", "decode"},
               [replicas](Json& d) { d["spec"]["replicas"] = replicas; });
  follow_decode_scale();
}

void World::follow_decode_scale() {
  const auto wanted =
      *kube::int_at(cluster.get(kube::kDeployments, {"serving", "decode"}), {"spec", "replicas"});
  std::vector<std::string> pods;
  for (const Json& pod : cluster.all(kube::kPods))
    if (kube::label_of(pod, "app") == "decode") pods.push_back(kube::object_name(pod));
  std::sort(pods.begin(), pods.end());
  while (static_cast<std::int64_t>(pods.size()) > wanted) {
    cluster.erase(kube::kPods, {"serving", pods.back()});
    pods.pop_back();
  }
  while (static_cast<std::int64_t>(pods.size()) < wanted) {
    const std::string name = "decode-" + std::to_string(1000 + pods_made_++);
    cluster.put(kube::kPods, pod_named(name, "decode"));
    pods.push_back(name);
  }
}

void World::run_deployment_controller(bool succeed) {
  const Json deployment = router();
  ASSERT_TRUE(deployment.is_object());
  const std::string hash =
      kube::string_at(deployment, {"spec", "template", "metadata", "annotations", kTemplateAnnotation});
  const std::int64_t wanted = *kube::int_at(deployment, {"spec", "replicas"});
  for (const Json& set : cluster.all(kube::kReplicaSets))
    cluster.edit(kube::kReplicaSets, kube::key_of(set), [&](Json& s) {
      if (succeed) s["spec"]["replicas"] = 0;
    });
  Json pod_template = deployment["spec"]["template"];
  Json set = {
      {"metadata",
       {{"name", "qwen3-router-" + hash},
        {"namespace", "serving"},
        {"labels", pod_template["metadata"]["labels"]},
        {"ownerReferences", Json::array({kube::controller_reference(kube::kDeployments, deployment)})}}},
      {"spec", {{"replicas", wanted}, {"template", pod_template}}}};
  set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = hash;
  cluster.put(kube::kReplicaSets, set);
  cluster.edit(kube::kDeployments, {"serving", "qwen3-router"}, [&](Json& d) {
    d["status"] = {{"observedGeneration", kube::generation_of(d)},
                   {"replicas", succeed ? wanted : wanted + 1},
                   {"updatedReplicas", succeed ? wanted : 1},
                   {"readyReplicas", wanted},
                   {"availableReplicas", wanted},
                   {"conditions",
                    Json::array({{{"type", "Progressing"},
                                  {"status", "True"},
                                  {"reason", succeed ? "NewReplicaSetAvailable" : "ReplicaSetUpdated"}}})}};
  });
}

void World::exceed_progress_deadline() {
  run_deployment_controller(false);
  cluster.edit(kube::kDeployments, {"serving", "qwen3-router"}, [](Json& d) {
    d["status"]["conditions"] =
        Json::array({{{"type", "Progressing"}, {"status", "False"}, {"reason", "ProgressDeadlineExceeded"}}});
  });
}

void World::finish_calibration(double rho, std::uint64_t seed) {
  const auto jobs = cluster.all(kube::kJobs);
  ASSERT_FALSE(jobs.empty());
  for (const Json& job : jobs) {
    if (kube::condition_is_true(job, "Complete") || kube::condition_is_true(job, "Failed")) continue;
    const std::string hash = *kube::annotation_of(job, kFitHashAnnotation);
    cluster.edit(kube::kConfigMaps, {"serving", "qwen3-c-" + hash.substr(0, 10)}, [&](Json& map) {
      const Json parts = Json::parse(*kube::annotation_of(map, kInputsAnnotation));
      map["binaryData"] = {{kCentroidsKey, centroids_base64(parts["poolSize"], hash, rho, seed)}};
      map["metadata"]["annotations"][kSummaryAnnotation] = Json{
          {"rho", rho},     {"rhoAllLayers", 0.5},          {"layersKept", 2}, {"maxClusterShare", 0.3},
          {"requests", 40}, {"clusters", parts["poolSize"]}}.dump();
    });
    complete_job(kube::object_name(job));
  }
}

void World::complete_job(const std::string& name) {
  cluster.edit(kube::kJobs, {"serving", name}, [&](Json& job) {
    job["status"] = {{"startTime", format_rfc3339(clock.wall())},
                     {"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}};
  });
}

void World::fail_job(const std::string& name, int exit_code, const std::string& message) {
  cluster.edit(kube::kJobs, {"serving", name}, [&](Json& job) {
    job["status"]["conditions"] = Json::array(
        {{{"type", "Failed"},
          {"status", "True"},
          {"reason", "PodFailurePolicy"},
          {"message", "Container calibrate for pod serving/" + name + "-x failed with exit code " +
                          std::to_string(exit_code) + " matching FailJob rule at index 0"}}});
  });
  if (message.empty()) return;
  cluster.put(kube::kPods, {{"metadata",
                             {{"name", name + "-x"},
                              {"namespace", "serving"},
                              {"labels", {{"batch.kubernetes.io/job-name", name}}}}},
                            {"status",
                             {{"phase", "Failed"},
                              {"containerStatuses", Json::array({{{"name", "calibrate"},
                                                                  {"state",
                                                                   {{"terminated",
                                                                     {{"exitCode", exit_code},
                                                                      {"finishedAt", "2026-11-30T00:00:00Z"},
                                                                      {"message", message}}}}}}})}}}});
}

std::string World::condition(const char* type) const {
  const Json object = policy();
  const Json* found = kube::find_condition(object, type);
  return found ? kube::string_at(*found, {"status"}) + "/" + kube::string_at(*found, {"reason"}) : "absent";
}

std::string World::message(const char* type) const {
  const Json object = policy();
  const Json* found = kube::find_condition(object, type);
  return found ? kube::string_at(*found, {"message"}) : "";
}

std::vector<std::string> World::job_names() const {
  std::vector<std::string> names;
  for (const Json& job : cluster.all(kube::kJobs)) names.push_back(kube::object_name(job));
  return names;
}

std::string World::only_job() const {
  const auto names = job_names();
  EXPECT_EQ(names.size(), 1U) << ::testing::PrintToString(names);
  return names.empty() ? "" : names.front();
}

Json World::router_config() const {
  const std::string name =
      kube::string_at(router(), {"spec", "template", "metadata", "annotations", kRouterConfigAnnotation});
  return cluster.get(kube::kConfigMaps, {"serving", name});
}
std::string World::router_yaml() const { return kube::string_at(router_config(), {"data", "router.yaml"}); }
std::string World::routed_centroids() const {
  return kube::string_at(router(), {"spec", "template", "metadata", "annotations", kCentroidsAnnotation});
}

std::vector<std::string> World::results() const {
  std::vector<std::string> names;
  for (const Json& map : cluster.all(kube::kConfigMaps))
    if (kube::object_name(map).rfind("qwen3-c-", 0) == 0) names.push_back(kube::object_name(map));
  return names;
}

std::map<std::string, std::string> World::cluster_labels() const {
  std::map<std::string, std::string> labels;
  for (const Json& pod : cluster.all(kube::kPods))
    if (kube::label_of(pod, "app") == "decode")
      labels[kube::object_name(pod)] = kube::label_of(pod, kClusterLabel).value_or("");
  return labels;
}

std::string World::status_text(std::initializer_list<std::string_view> path) const {
  const Json object = policy();
  const Json* status = kube::find(object, {"status"});
  if (!status) return "";
  const Json* found = kube::find(*status, path);
  if (!found) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

}  // namespace eldr::op::testing
