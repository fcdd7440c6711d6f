// SPDX-License-Identifier: Apache-2.0
// The EldrPolicy resource as C++ types: crds/eldrpolicies.yaml field by field. Plain values without
// behaviour; thread-safe as such. What each field means stands in the schema (kubectl explain eldrpolicy) and
// in docs/reference/eldrpolicy.md.
//
// Parts of a pod that are passed on untouched are JSON (null when absent).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/status.h"
#include "lib/kube/json.h"
#include "lib/kube/resource.h"

namespace eldr::op {

using kube::Json;
using kube::ObjectKey;
using Strings = std::vector<std::string>;
using StringMap = std::map<std::string, std::string>;

/// Most decode workers, hence clusters, of one policy.
inline constexpr std::int64_t kMaxClusters = 256;

struct Model {
  std::string name;
  std::string revision;
};

struct ConfigMapKey {
  std::string name;
  std::string key;
};
struct VolumeFile {
  std::string claim_name;
  std::string path;
};
struct UrlFile {
  std::string url;
  std::string sha256;
};

struct Dataset {
  std::optional<ConfigMapKey> config_map;
  std::optional<VolumeFile> persistent_volume_claim;
  std::optional<UrlFile> url;
  std::optional<VolumeFile> trace;
  std::string revision;
  std::int64_t sample_size = 1000;
  std::int64_t decode_tokens = 128;
};

struct SelectorRequirement {
  std::string key;
  std::string op;  ///< In, NotIn, Exists, DoesNotExist
  Strings values;
};
struct LabelSelector {
  StringMap match_labels;
  std::vector<SelectorRequirement> match_expressions;
};
struct Prefill {
  LabelSelector selector;
  std::int64_t port = 8000;
};

struct ScaleTargetRef {
  std::string api_version;
  std::string kind;
  std::string name;
};
struct ExpertParallel {
  std::int64_t ranks = 1;
};
struct Decode {
  ScaleTargetRef scale_target_ref;
  std::optional<std::int64_t> replicas;
  std::int64_t port = 8000;
  ExpertParallel expert_parallel;
};

struct NameRef {
  std::string name;
};
struct EngineJob {
  std::string image;
  std::string image_pull_policy;
  Strings command;
  Strings args;
  Json env;
  Json resources;
  std::int64_t port = 8000;
  std::int64_t startup_seconds = 1800;
  Json volume_mounts;
  Json volumes;
  StringMap node_selector;
  Json tolerations;
  Json affinity;
  std::string runtime_class_name;
  std::vector<NameRef> image_pull_secrets;
  Json security_context;
};
struct EngineService {
  std::string url;
};
struct Engine {
  std::optional<EngineJob> job;
  std::optional<EngineService> service;
};
struct Fit {
  std::string backend = "Auto";  ///< Auto, CPU, CUDA
  std::int64_t seed = 0;
  Json resources;
};
struct ClaimRef {
  std::string claim_name;
};
struct Cache {
  ClaimRef persistent_volume_claim;
};
struct Calibration {
  std::optional<Engine> engine;
  Fit fit;
  std::optional<Cache> cache;
  std::string minimum_rho = "0.3";
  std::int64_t stabilization_seconds = 30;
  std::int64_t active_deadline_seconds = 3600;
  std::int64_t backoff_limit = 2;
  std::string queue_name;
  bool suspend = false;
};

struct Routing {
  std::string policy = "LocalityBand";
  std::string tau = "0.1";
  std::string load_weight;
  std::string prefill_policy = "PrefixHash";
};

struct RouterService {
  std::string type = "ClusterIP";
  std::int64_t port = 80;
};
struct Router {
  std::int64_t replicas = 2;
  std::string image;
  Json resources;
  RouterService service;
  std::int64_t drain_seconds = 300;
  std::int64_t progress_deadline_seconds = 600;
  StringMap node_selector;
  Json tolerations;
  Json affinity;
  std::string priority_class_name;
  std::vector<NameRef> image_pull_secrets;
};

struct Spec {
  Model model;
  Dataset dataset;
  Prefill prefill;
  Decode decode;
  Calibration calibration;
  Routing routing;
  Router router;
  std::int64_t config_history_limit = 3;
};

struct ActiveConfig {
  std::string name;
  std::string router_config;
  std::optional<std::int64_t> clusters;
  std::string activated_at;
};
struct CalibrationStatus {
  std::string input_hash;
  std::string reason;
  std::string job_name;
  std::string stage;
  std::string progress;
  std::string start_time;
  std::string completion_time;
  std::string rho;
  std::string rho_all_layers;
  std::optional<std::int64_t> layers_kept;
  std::string max_cluster_share;
  std::optional<std::int64_t> requests;
};
struct RouterStatus {
  std::optional<std::int64_t> replicas;
  std::optional<std::int64_t> updated_replicas;
  std::optional<std::int64_t> ready_replicas;
  std::string summary;
  std::string url;
};
struct HistoryEntry {
  std::string name;
  std::optional<std::int64_t> clusters;
  std::string rho;
  std::string published_at;
};
struct ConditionStatus {
  std::string type;
  std::string status;  ///< "True", "False", "Unknown"
  std::string reason;
  std::string message;
  std::string last_transition_time;
  std::optional<std::int64_t> observed_generation;
};
struct PolicyStatus {
  std::optional<std::int64_t> observed_generation;
  std::optional<std::int64_t> decode_replicas;
  std::string decode_replicas_since;
  std::string selector;
  std::optional<ActiveConfig> active_config;
  std::optional<CalibrationStatus> calibration;
  std::optional<RouterStatus> router;
  std::vector<HistoryEntry> history;
  std::vector<ConditionStatus> conditions;
};

struct EldrPolicy {
  ObjectKey key;
  std::string uid;
  std::int64_t generation = 0;
  Spec spec;
  PolicyStatus status;
};

/// The text of a selector as the API takes it: "app=decode,tier in (a,b)".
std::string selector_text(const LabelSelector& selector);

/// Reads an object as the API server gives it. Absent fields have the schema's defaults, unknown ones are
/// ignored (a newer schema may have them). kInvalid lists every wrong field: "spec.dataset.sampleSize: 0 is
/// not in 1..100000; …". What the schema cannot say and this can is refused here too. A malformed status is
/// read as an empty one, since the operator writes it anew.
Result<EldrPolicy> parse_policy(const Json& object);

/// The spec by its types alone, without the checks of values: for comparing types with the schema.
Result<Spec> read_spec_unchecked(const Json& object);
/// The status alone; empty where it is absent or malformed.
PolicyStatus parse_status(const Json& object);

/// The reverse, for the tests and for writing status. Empty fields are left out.
Json to_json(const Spec& spec);
Json to_json(const PolicyStatus& status);

}  // namespace eldr::op
