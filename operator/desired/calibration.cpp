// SPDX-License-Identifier: Apache-2.0
#include "operator/desired/calibration.h"

#include <algorithm>
#include <cctype>

#include "lib/kube/object.h"
#include "operator/api/labels.h"
#include "operator/desired/child.h"
#include "operator/desired/names.h"

namespace eldr::op {
namespace {

constexpr char kCalibratorComponent[] = "eldr-calibrator";
constexpr char kDataDirectory[] = "/data";
constexpr char kTraceDirectory[] = "/trace";
constexpr char kCacheDirectory[] = "/cache";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

Json mount(const char* volume, const char* path, bool read_only) {
  Json made = {{"name", volume}, {"mountPath", path}};
  if (read_only) made["readOnly"] = true;
  return made;
}

Json claim_volume(const char* name, const std::string& claim, bool read_only) {
  Json source = {{"claimName", claim}};
  if (read_only) source["readOnly"] = true;
  return {{"name", name}, {"persistentVolumeClaim", source}};
}

/// The service account's token, mounted into the calibrator's container alone: the engine is other people's
/// code.
Json token_volume() {
  return {{"name", "eldr-token"},
          {"projected",
           {{"sources",
             Json::array({{{"serviceAccountToken", {{"path", "token"}, {"expirationSeconds", 3607}}}},
                          {{"configMap",
                            {{"name", "kube-root-ca.crt"},
                             {"items", Json::array({{{"key", "ca.crt"}, {"path", "ca.crt"}}})}}}},
                          {{"downwardAPI",
                            {{"items", Json::array({{{"path", "namespace"},
                                                     {"fieldRef",
                                                      {{"apiVersion", "v1"},
                                                       {"fieldPath", "metadata.namespace"}}}}})}}}}})}}}};
}

/// Collects what the calibrator's container needs from each of the policy's parts.
struct Calibrator {
  Json args = Json::array({"run"});
  Json mounts = Json::array();
  Json volumes = Json::array();

  void arg(const std::string& option, const std::string& value) {
    args.push_back("--" + option);
    args.push_back(value);
  }
  void arg(const std::string& option, std::int64_t value) { arg(option, std::to_string(value)); }
};

void add_dataset(Calibrator& to, const Dataset& dataset, const std::string& sha256) {
  if (dataset.config_map) {
    const ConfigMapKey& source = *dataset.config_map;
    to.arg("dataset", std::string(kDataDirectory) + "/" + source.key);
    to.mounts.push_back(mount("eldr-data", kDataDirectory, true));
    to.volumes.push_back(
        {{"name", "eldr-data"},
         {"configMap",
          {{"name", source.name}, {"items", Json::array({{{"key", source.key}, {"path", source.key}}})}}}});
  } else if (dataset.persistent_volume_claim) {
    const VolumeFile& source = *dataset.persistent_volume_claim;
    to.arg("dataset", std::string(kDataDirectory) + "/" + source.path);
    to.mounts.push_back(mount("eldr-data", kDataDirectory, true));
    to.volumes.push_back(claim_volume("eldr-data", source.claim_name, true));
  } else if (dataset.url) {
    to.arg("dataset-url", dataset.url->url);
  }
  // An edit between here and the Job's start must not be published under the old content's hash.
  if (!sha256.empty()) to.arg("dataset-sha256", sha256);
}

void add_source(Calibrator& to, const Spec& spec, bool from_cache, const std::string& dataset_sha256) {
  if (from_cache) {
    to.args.push_back("--from-cache");
    return;
  }
  if (spec.dataset.trace) {
    to.arg("trace", std::string(kTraceDirectory) + "/" + spec.dataset.trace->path);
    to.mounts.push_back(mount("eldr-trace", kTraceDirectory, true));
    to.volumes.push_back(claim_volume("eldr-trace", spec.dataset.trace->claim_name, true));
    return;
  }
  const Engine& engine = *spec.calibration.engine;
  to.arg("engine",
         engine.service ? engine.service->url : "http://127.0.0.1:" + std::to_string(engine.job->port));
  add_dataset(to, spec.dataset, dataset_sha256);
}

/// The engine as a native sidecar: it starts first, is probed until it is healthy, and ends with the
/// calibrator.
Json engine_container(const EngineJob& engine) {
  constexpr std::int64_t kProbePeriod = 2;
  Json container = {
      {"name", kEngineContainer},
      {"image", engine.image},
      {"restartPolicy", "Always"},
      {"ports", Json::array({{{"name", "http"}, {"containerPort", engine.port}, {"protocol", "TCP"}}})},
      {"startupProbe",
       {{"httpGet", {{"path", "/health"}, {"port", engine.port}}},
        {"periodSeconds", kProbePeriod},
        {"timeoutSeconds", 5},
        {"failureThreshold", std::max<std::int64_t>(1, engine.startup_seconds / kProbePeriod)}}}};
  container["securityContext"] =
      engine.security_context.is_null() ? restricted_container_security(false) : engine.security_context;
  set_unless_empty(container, "imagePullPolicy", engine.image_pull_policy);
  set_unless_empty(container, "command", engine.command);
  set_unless_empty(container, "args", engine.args);
  // User 65532 has no home in most images, and engines keep caches there.
  Json env = Json::array({{{"name", "HOME"}, {"value", "/tmp"}}});
  if (engine.env.is_array())
    for (const Json& variable : engine.env) env.push_back(variable);  // a later HOME wins
  container["env"] = std::move(env);
  set_unless_empty(container, "resources", engine.resources);
  Json mounts = engine.volume_mounts.is_array() ? engine.volume_mounts : Json::array();
  const auto is_mounted = [&mounts](const char* path) {
    return std::any_of(mounts.begin(), mounts.end(),
                       [path](const Json& entry) { return kube::string_at(entry, {"mountPath"}) == path; });
  };
  if (!is_mounted("/tmp")) mounts.push_back(mount("eldr-engine-tmp", "/tmp", false));
  if (!is_mounted("/dev/shm")) mounts.push_back(mount("eldr-engine-shm", "/dev/shm", false));
  container["volumeMounts"] = std::move(mounts);
  return container;
}

void add_engine(Json& pod, const EngineJob& engine) {
  pod["initContainers"] = Json::array({engine_container(engine)});
  Json& volumes = pod["volumes"];
  volumes.push_back({{"name", "eldr-engine-tmp"}, {"emptyDir", Json::object()}});
  volumes.push_back({{"name", "eldr-engine-shm"}, {"emptyDir", {{"medium", "Memory"}}}});
  if (engine.volumes.is_array())
    for (const Json& volume : engine.volumes) volumes.push_back(volume);
  set_unless_empty(pod, "nodeSelector", engine.node_selector);
  set_unless_empty(pod, "tolerations", engine.tolerations);
  set_unless_empty(pod, "affinity", engine.affinity);
  set_unless_empty(pod, "runtimeClassName", engine.runtime_class_name);
  set_unless_empty(pod, "imagePullSecrets", references(engine.image_pull_secrets));
}

Json pod_failure_policy() {
  return {{"rules", Json::array({{{"action", "FailJob"},
                                  {"onExitCodes",
                                   {{"containerName", kCalibrateContainer},
                                    {"operator", "In"},
                                    {"values", Json::array({64, 65, 66, 78})}}}},
                                 {{"action", "Ignore"},
                                  {"onPodConditions",
                                   Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}}})}};
}

}  // namespace

Json result_config_map(const EldrPolicy& policy, const CalibrationInputs& inputs) {
  Json map = child_object(kube::kConfigMaps, policy, result_name(policy.key.name, inputs.short_hash()),
                          "eldr-centroids");
  map["metadata"]["annotations"] = {{kFitHashAnnotation, inputs.fit_hash},
                                    {kCollectHashAnnotation, inputs.collect_hash},
                                    {kInputsAnnotation, inputs.parts.dump()}};
  return map;
}

Json calibrator_service_account(const EldrPolicy& policy) {
  Json account =
      child_object(kube::kServiceAccounts, policy, calibrator_name(policy.key.name), kCalibratorComponent);
  account["automountServiceAccountToken"] = false;
  return account;
}

Json calibrator_role(const EldrPolicy& policy, const std::string& result_name) {
  Json role = child_object(kube::kRoles, policy, calibrator_name(policy.key.name), kCalibratorComponent);
  role["rules"] = Json::array({{{"apiGroups", Json::array({""})},
                                {"resources", Json::array({"configmaps"})},
                                {"resourceNames", Json::array({result_name})},
                                {"verbs", Json::array({"get", "patch"})}}});
  return role;
}

Json calibrator_role_binding(const EldrPolicy& policy) {
  const std::string name = calibrator_name(policy.key.name);
  Json binding = child_object(kube::kRoleBindings, policy, name, kCalibratorComponent);
  binding["roleRef"] = {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", name}};
  binding["subjects"] =
      Json::array({{{"kind", "ServiceAccount"}, {"name", name}, {"namespace", policy.key.ns}}});
  return binding;
}

Json calibration_job(const EldrPolicy& policy, const CalibrationInputs& inputs,
                     const CalibrationJobOptions& options) {
  const Spec& spec = policy.spec;
  const Calibration& calibration = spec.calibration;

  Calibrator calibrator;
  calibrator.arg("model", spec.model.name);
  if (!spec.model.revision.empty()) calibrator.arg("model-revision", spec.model.revision);
  add_source(calibrator, spec, options.from_cache, inputs.dataset_sha256);
  calibrator.arg("clusters", inputs.pool_size);
  calibrator.arg("ep-ranks", spec.decode.expert_parallel.ranks);
  calibrator.arg("sample-size", spec.dataset.sample_size);
  calibrator.arg("decode-tokens", spec.dataset.decode_tokens);
  calibrator.arg("seed", calibration.fit.seed);
  calibrator.arg("backend", lower(calibration.fit.backend));
  calibrator.arg("fit-hash", inputs.fit_hash);
  if (calibration.cache) {
    calibrator.arg("cache-dir", kCacheDirectory);
    calibrator.arg("collect-hash", inputs.collect_hash);
    calibrator.mounts.push_back(mount("eldr-cache", kCacheDirectory, false));
    calibrator.volumes.push_back(
        claim_volume("eldr-cache", calibration.cache->persistent_volume_claim.claim_name, false));
  }
  calibrator.arg("publish-configmap", result_name(policy.key.name, inputs.short_hash()));
  calibrator.arg("publish-namespace", policy.key.ns);
  calibrator.arg("log-format", "json");
  calibrator.mounts.push_back(mount("eldr-tmp", "/tmp", false));
  calibrator.mounts.push_back(mount("eldr-token", "/var/run/secrets/kubernetes.io/serviceaccount", true));
  calibrator.volumes.push_back({{"name", "eldr-tmp"}, {"emptyDir", Json::object()}});
  calibrator.volumes.push_back(token_volume());

  Json container = {{"name", kCalibrateContainer},
                    {"image", options.calibrator_image},
                    {"args", calibrator.args},
                    {"volumeMounts", calibrator.mounts},
                    {"securityContext", restricted_container_security(true)}};
  set_unless_empty(container, "resources", calibration.fit.resources);

  Json pod = {{"restartPolicy", "Never"},
              {"serviceAccountName", calibrator_name(policy.key.name)},
              {"automountServiceAccountToken", false},
              {"securityContext", restricted_pod_security()},
              {"containers", Json::array({container})},
              {"volumes", calibrator.volumes}};
  if (!options.from_cache && calibration.engine && calibration.engine->job)
    add_engine(pod, *calibration.engine->job);

  const std::string name = options.from_cache ? fit_job_name(policy.key.name, inputs.short_hash())
                                              : calibration_job_name(policy.key.name, inputs.short_hash());
  Json job = child_object(kube::kJobs, policy, name, kCalibratorComponent);
  if (!calibration.queue_name.empty()) job["metadata"]["labels"][kQueueLabel] = calibration.queue_name;
  job["spec"] = {
      {"completions", 1},
      {"parallelism", 1},
      {"backoffLimit", calibration.backoff_limit},
      {"activeDeadlineSeconds", calibration.active_deadline_seconds},
      {"podReplacementPolicy", "Failed"},
      {"podFailurePolicy", pod_failure_policy()},
      {"template",
       {{"metadata", {{"labels", selector_labels(policy, kCalibratorComponent)}}}, {"spec", pod}}}};
  // Kueue admits a Job by clearing this.
  if (!calibration.queue_name.empty()) job["spec"]["suspend"] = true;
  job["metadata"]["annotations"] = {{kFitHashAnnotation, inputs.fit_hash},
                                    {kCollectHashAnnotation, inputs.collect_hash},
                                    {kIntentAnnotation, hash_of(job)}};
  return job;
}

}  // namespace eldr::op
