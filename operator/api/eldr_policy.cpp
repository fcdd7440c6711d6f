// SPDX-License-Identifier: Apache-2.0
#include "operator/api/eldr_policy.h"

#include "lib/kube/object.h"
#include "operator/api/decimal.h"
#include "operator/api/fields.h"

namespace eldr::op {

// --- the fields of each type, once ------------------------------------------------------------------------
template <class V>
void fields(V& v, Model& x) {
  v("name", x.name);
  v("revision", x.revision);
}
template <class V>
void fields(V& v, ConfigMapKey& x) {
  v("name", x.name);
  v("key", x.key);
}
template <class V>
void fields(V& v, VolumeFile& x) {
  v("claimName", x.claim_name);
  v("path", x.path);
}
template <class V>
void fields(V& v, UrlFile& x) {
  v("url", x.url);
  v("sha256", x.sha256);
}
template <class V>
void fields(V& v, Dataset& x) {
  v("configMap", x.config_map);
  v("persistentVolumeClaim", x.persistent_volume_claim);
  v("url", x.url);
  v("trace", x.trace);
  v("revision", x.revision);
  v("sampleSize", x.sample_size);
  v("decodeTokens", x.decode_tokens);
}
template <class V>
void fields(V& v, SelectorRequirement& x) {
  v("key", x.key);
  v("operator", x.op);
  v("values", x.values);
}
template <class V>
void fields(V& v, LabelSelector& x) {
  v("matchLabels", x.match_labels);
  v("matchExpressions", x.match_expressions);
}
template <class V>
void fields(V& v, Prefill& x) {
  v("selector", x.selector);
  v("port", x.port);
}
template <class V>
void fields(V& v, ScaleTargetRef& x) {
  v("apiVersion", x.api_version);
  v("kind", x.kind);
  v("name", x.name);
}
template <class V>
void fields(V& v, ExpertParallel& x) {
  v("ranks", x.ranks);
}
template <class V>
void fields(V& v, Decode& x) {
  v("scaleTargetRef", x.scale_target_ref);
  v("replicas", x.replicas);
  v("port", x.port);
  v("expertParallel", x.expert_parallel);
}
template <class V>
void fields(V& v, NameRef& x) {
  v("name", x.name);
}
template <class V>
void fields(V& v, EngineJob& x) {
  v("image", x.image);
  v("imagePullPolicy", x.image_pull_policy);
  v("command", x.command);
  v("args", x.args);
  v("env", x.env);
  v("resources", x.resources);
  v("port", x.port);
  v("startupSeconds", x.startup_seconds);
  v("volumeMounts", x.volume_mounts);
  v("volumes", x.volumes);
  v("nodeSelector", x.node_selector);
  v("tolerations", x.tolerations);
  v("affinity", x.affinity);
  v("runtimeClassName", x.runtime_class_name);
  v("imagePullSecrets", x.image_pull_secrets);
  v("securityContext", x.security_context);
}
template <class V>
void fields(V& v, EngineService& x) {
  v("url", x.url);
}
template <class V>
void fields(V& v, Engine& x) {
  v("job", x.job);
  v("service", x.service);
}
template <class V>
void fields(V& v, Fit& x) {
  v("backend", x.backend);
  v("seed", x.seed);
  v("resources", x.resources);
}
template <class V>
void fields(V& v, ClaimRef& x) {
  v("claimName", x.claim_name);
}
template <class V>
void fields(V& v, Cache& x) {
  v("persistentVolumeClaim", x.persistent_volume_claim);
}
template <class V>
void fields(V& v, Calibration& x) {
  v("engine", x.engine);
  v("fit", x.fit);
  v("cache", x.cache);
  v("minimumRho", x.minimum_rho);
  v("stabilizationSeconds", x.stabilization_seconds);
  v("activeDeadlineSeconds", x.active_deadline_seconds);
  v("backoffLimit", x.backoff_limit);
  v("queueName", x.queue_name);
  v("suspend", x.suspend);
}
template <class V>
void fields(V& v, Routing& x) {
  v("policy", x.policy);
  v("tau", x.tau);
  v("loadWeight", x.load_weight);
  v("prefillPolicy", x.prefill_policy);
}
template <class V>
void fields(V& v, RouterService& x) {
  v("type", x.type);
  v("port", x.port);
}
template <class V>
void fields(V& v, Router& x) {
  v("replicas", x.replicas);
  v("image", x.image);
  v("resources", x.resources);
  v("service", x.service);
  v("drainSeconds", x.drain_seconds);
  v("progressDeadlineSeconds", x.progress_deadline_seconds);
  v("nodeSelector", x.node_selector);
  v("tolerations", x.tolerations);
  v("affinity", x.affinity);
  v("priorityClassName", x.priority_class_name);
  v("imagePullSecrets", x.image_pull_secrets);
}
template <class V>
void fields(V& v, Spec& x) {
  v("model", x.model);
  v("dataset", x.dataset);
  v("prefill", x.prefill);
  v("decode", x.decode);
  v("calibration", x.calibration);
  v("routing", x.routing);
  v("router", x.router);
  v("configHistoryLimit", x.config_history_limit);
}
template <class V>
void fields(V& v, ActiveConfig& x) {
  v("name", x.name);
  v("routerConfig", x.router_config);
  v("clusters", x.clusters);
  v("activatedAt", x.activated_at);
}
template <class V>
void fields(V& v, CalibrationStatus& x) {
  v("inputHash", x.input_hash);
  v("reason", x.reason);
  v("jobName", x.job_name);
  v("stage", x.stage);
  v("progress", x.progress);
  v("startTime", x.start_time);
  v("completionTime", x.completion_time);
  v("rho", x.rho);
  v("rhoAllLayers", x.rho_all_layers);
  v("layersKept", x.layers_kept);
  v("maxClusterShare", x.max_cluster_share);
  v("requests", x.requests);
}
template <class V>
void fields(V& v, RouterStatus& x) {
  v("replicas", x.replicas);
  v("updatedReplicas", x.updated_replicas);
  v("readyReplicas", x.ready_replicas);
  v("summary", x.summary);
  v("url", x.url);
}
template <class V>
void fields(V& v, HistoryEntry& x) {
  v("name", x.name);
  v("clusters", x.clusters);
  v("rho", x.rho);
  v("publishedAt", x.published_at);
}
template <class V>
void fields(V& v, ConditionStatus& x) {
  v("type", x.type);
  v("status", x.status);
  v("reason", x.reason);
  v("message", x.message);
  v("lastTransitionTime", x.last_transition_time);
  v("observedGeneration", x.observed_generation);
}
template <class V>
void fields(V& v, PolicyStatus& x) {
  v("observedGeneration", x.observed_generation);
  v("decodeReplicas", x.decode_replicas);
  v("decodeReplicasSince", x.decode_replicas_since);
  v("selector", x.selector);
  v("activeConfig", x.active_config);
  v("calibration", x.calibration);
  v("router", x.router);
  v("history", x.history);
  v("conditions", x.conditions);
}

namespace {

/// Collects what is wrong with a spec, each message with the field, what was found and what is allowed.
class Checker {
 public:
  explicit Checker(std::vector<std::string>& errors) : errors_(errors) {}
  void range(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high)
      add(field, std::to_string(value) + " is not in " + std::to_string(low) + ".." + std::to_string(high));
  }
  void decimal(const char* field, const std::string& value, double low, double high, bool may_be_empty) {
    if (value.empty() && may_be_empty) return;
    const auto parsed = parse_decimal(value);
    if (!parsed || *parsed < low || *parsed > high)
      add(field, "\"" + value + "\" is not a decimal in " + number_text(low) + ".." + number_text(high));
  }
  void one_of(const char* field, const std::string& value, std::initializer_list<const char*> allowed) {
    std::string list;
    for (const char* candidate : allowed) {
      if (value == candidate) return;
      list += std::string(list.empty() ? "" : ", ") + candidate;
    }
    add(field, "\"" + value + "\" is not one of " + list);
  }
  void not_empty(const char* field, const std::string& value) {
    if (value.empty()) add(field, "is empty or absent; a text is needed");
  }
  void add(const std::string& field, const std::string& what) { errors_.push_back(field + ": " + what); }

 private:
  std::vector<std::string>& errors_;
};

void check_dataset(const Dataset& dataset, Checker& check) {
  const int sources = int(dataset.config_map.has_value()) + int(dataset.persistent_volume_claim.has_value()) +
                      int(dataset.url.has_value()) + int(dataset.trace.has_value());
  if (sources != 1)
    check.add("spec.dataset", std::to_string(sources) +
                                  " sources are set; exactly one of configMap, persistentVolumeClaim, url "
                                  "and trace is needed");
  if (dataset.config_map) {
    check.not_empty("spec.dataset.configMap.name", dataset.config_map->name);
    check.not_empty("spec.dataset.configMap.key", dataset.config_map->key);
  }
  const auto file = [&check](const std::string& field, const VolumeFile& volume) {
    check.not_empty((field + ".claimName").c_str(), volume.claim_name);
    const std::string padded = "/" + volume.path + "/";
    if (volume.path.empty() || volume.path.front() == '/' || padded.find("/../") != std::string::npos)
      check.add(field + ".path", "\"" + volume.path + "\" must be a relative path without '..'");
  };
  if (dataset.persistent_volume_claim)
    file("spec.dataset.persistentVolumeClaim", *dataset.persistent_volume_claim);
  if (dataset.trace) file("spec.dataset.trace", *dataset.trace);
  if (dataset.url) {
    if (dataset.url->url.rfind("https://", 0) != 0)
      check.add("spec.dataset.url.url", "\"" + dataset.url->url + "\" does not begin with https://");
    if (dataset.url->sha256.size() != 64 ||
        dataset.url->sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
      check.add("spec.dataset.url.sha256", "\"" + dataset.url->sha256 + "\" is not 64 lower-case hex digits");
  }
  check.range("spec.dataset.sampleSize", dataset.sample_size, 1, 100000);
  check.range("spec.dataset.decodeTokens", dataset.decode_tokens, 2, 8192);
}

void check_selector(const LabelSelector& selector, Checker& check) {
  if (selector.match_labels.empty() && selector.match_expressions.empty())
    check.add("spec.prefill.selector", "is empty and would select all pods of the namespace");
  for (std::size_t i = 0; i < selector.match_expressions.size(); ++i) {
    const auto& term = selector.match_expressions[i];
    const std::string field = "spec.prefill.selector.matchExpressions[" + std::to_string(i) + "]";
    check.not_empty((field + ".key").c_str(), term.key);
    check.one_of((field + ".operator").c_str(), term.op, {"In", "NotIn", "Exists", "DoesNotExist"});
    const bool needs_values = term.op == "In" || term.op == "NotIn";
    if (needs_values == term.values.empty())
      check.add(field + ".values", needs_values ? "is empty; " + term.op + " needs at least one value"
                                                : "must be empty with " + term.op);
  }
}

void check_calibration(const Spec& spec, Checker& check) {
  const Calibration& calibration = spec.calibration;
  if (spec.dataset.trace) {
    if (calibration.engine)
      check.add("spec.calibration.engine", "is set; a recorded trace (spec.dataset.trace) needs no engine");
    if (calibration.cache)
      check.add("spec.calibration.cache", "is set; a recorded trace (spec.dataset.trace) is its own cache");
  } else if (!calibration.engine) {
    check.add("spec.calibration.engine",
              "is absent; set engine.job or engine.service, or give a recorded trace in spec.dataset.trace");
  }
  if (calibration.engine) {
    const Engine& engine = *calibration.engine;
    if (engine.job.has_value() == engine.service.has_value())
      check.add("spec.calibration.engine", "exactly one of job and service must be set");
    if (engine.job) {
      check.not_empty("spec.calibration.engine.job.image", engine.job->image);
      check.range("spec.calibration.engine.job.port", engine.job->port, 1, 65535);
      check.range("spec.calibration.engine.job.startupSeconds", engine.job->startup_seconds, 1, 86400);
      if (!engine.job->image_pull_policy.empty())
        check.one_of("spec.calibration.engine.job.imagePullPolicy", engine.job->image_pull_policy,
                     {"Always", "IfNotPresent", "Never"});
    }
    if (engine.service) {
      const std::string& url = engine.service->url;
      if (url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0)
        check.add("spec.calibration.engine.service.url",
                  "\"" + url + "\" does not begin with http:// or https://");
    }
  }
  if (calibration.cache)
    check.not_empty("spec.calibration.cache.persistentVolumeClaim.claimName",
                    calibration.cache->persistent_volume_claim.claim_name);
  check.one_of("spec.calibration.fit.backend", calibration.fit.backend, {"Auto", "CPU", "CUDA"});
  check.range("spec.calibration.fit.seed", calibration.fit.seed, 0, 9007199254740991);
  check.decimal("spec.calibration.minimumRho", calibration.minimum_rho, 0, 1, false);
  check.range("spec.calibration.stabilizationSeconds", calibration.stabilization_seconds, 0, 3600);
  check.range("spec.calibration.activeDeadlineSeconds", calibration.active_deadline_seconds, 1, 604800);
  check.range("spec.calibration.backoffLimit", calibration.backoff_limit, 0, 100);
}

void check_spec(const Spec& spec, Checker& check) {
  check.not_empty("spec.model.name", spec.model.name);
  check_dataset(spec.dataset, check);
  check_selector(spec.prefill.selector, check);
  check.range("spec.prefill.port", spec.prefill.port, 1, 65535);
  check.not_empty("spec.decode.scaleTargetRef.apiVersion", spec.decode.scale_target_ref.api_version);
  check.not_empty("spec.decode.scaleTargetRef.kind", spec.decode.scale_target_ref.kind);
  check.not_empty("spec.decode.scaleTargetRef.name", spec.decode.scale_target_ref.name);
  if (spec.decode.replicas) check.range("spec.decode.replicas", *spec.decode.replicas, 0, kMaxClusters);
  check.range("spec.decode.port", spec.decode.port, 1, 65535);
  check.range("spec.decode.expertParallel.ranks", spec.decode.expert_parallel.ranks, 1, 256);
  check_calibration(spec, check);
  check.one_of(
      "spec.routing.policy", spec.routing.policy,
      {"LocalityBand", "LoadAwareBand", "JoinShortestQueue", "PowerOfTwoChoices", "RoundRobin", "Random"});
  check.one_of("spec.routing.prefillPolicy", spec.routing.prefill_policy,
               {"PrefixHash", "JoinShortestQueue", "PowerOfTwoChoices", "RoundRobin", "Random"});
  check.decimal("spec.routing.tau", spec.routing.tau, 0, 2, false);
  check.decimal("spec.routing.loadWeight", spec.routing.load_weight, 0, 100, true);
  check.range("spec.router.replicas", spec.router.replicas, 0, 256);
  check.one_of("spec.router.service.type", spec.router.service.type,
               {"ClusterIP", "NodePort", "LoadBalancer"});
  check.range("spec.router.service.port", spec.router.service.port, 1, 65535);
  check.range("spec.router.drainSeconds", spec.router.drain_seconds, 0, 86400);
  check.range("spec.router.progressDeadlineSeconds", spec.router.progress_deadline_seconds, 30, 86400);
  check.range("spec.configHistoryLimit", spec.config_history_limit, 0, 50);
}

}  // namespace

std::string selector_text(const LabelSelector& selector) {
  return kube::label_selector_text(FieldWriter::object_of(selector));
}

Result<EldrPolicy> parse_policy(const Json& object) {
  EldrPolicy policy;
  policy.key = kube::key_of(object);
  policy.uid = kube::uid_of(object);
  policy.generation = kube::generation_of(object);

  std::vector<std::string> errors;
  const Json* spec = kube::find(object, {"spec"});
  if (spec == nullptr || !spec->is_object()) {
    errors.emplace_back("spec: is absent or no object");
  } else {
    FieldReader reader(*spec, "spec", errors);
    fields(reader, policy.spec);
    Checker check(errors);
    check_spec(policy.spec, check);
  }
  policy.status = parse_status(object);
  if (errors.empty()) return policy;
  std::string all;
  for (const std::string& error : errors) all += (all.empty() ? "" : "; ") + error;
  return failure(Code::kInvalid, all);
}

Result<Spec> read_spec_unchecked(const Json& object) {
  Spec read;
  std::vector<std::string> errors;
  const Json* spec = kube::find(object, {"spec"});
  if (spec == nullptr || !spec->is_object()) return failure(Code::kInvalid, "spec: is absent or no object");
  FieldReader reader(*spec, "spec", errors);
  fields(reader, read);
  if (!errors.empty()) return failure(Code::kInvalid, errors.front());
  return read;
}

PolicyStatus parse_status(const Json& object) {
  PolicyStatus status;
  std::vector<std::string> errors;
  const Json* found = kube::find(object, {"status"});
  if (found == nullptr || !found->is_object()) return status;
  FieldReader reader(*found, "status", errors);
  fields(reader, status);
  return errors.empty() ? status : PolicyStatus{};
}

Json to_json(const Spec& spec) { return FieldWriter::object_of(spec); }
Json to_json(const PolicyStatus& status) { return FieldWriter::object_of(status); }

}  // namespace eldr::op
