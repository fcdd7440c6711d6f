// SPDX-License-Identifier: Apache-2.0
// One reconcile's working state. The reconciler makes it; each phase fills its own part and reads the earlier
// ones; the status phase derives the whole status from it. Not thread-safe: it belongs to one reconcile.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/client.h"
#include "operator/api/eldr_policy.h"
#include "operator/events.h"
#include "operator/inputs/calibration_inputs.h"

namespace eldr::op {

/// How a condition stands, before it has times.
struct Outcome {
  std::string status = "Unknown";  ///< True, False, Unknown
  std::string reason;
  std::string message;
};

/// What all reconciles share. Everything it points to is thread-safe and outlives them.
struct Environment {
  const kube::Client* client = nullptr;
  const Clock* clock = nullptr;
  EventSink* events = nullptr;
  std::string calibrator_image;
  std::string router_image;
  /// How often the size of a scale target is read that cannot be watched.
  std::chrono::seconds poll{10};
  /// How often everything is looked at anyway: repairs children that were edited by hand.
  std::chrono::seconds resync{60};
};

/// The decode pool, as its scale says.
struct Pool {
  kube::Resource resource;    ///< of the target
  std::int64_t replicas = 0;  ///< wanted
  std::string selector;       ///< labels of the pods
};

/// A result that is published: immutable, valid.
struct PublishedConfig {
  std::string name;  ///< ConfigMap
  std::string fit_hash, collect_hash;
  std::int64_t clusters = 0;
  std::string published_at;
  Json summary;  ///< rho, rhoAllLayers, layersKept, maxClusterShare, requests
  Json parts;    ///< hashes of the inputs, see CalibrationInputs::parts
  Json object;   ///< the ConfigMap
};

/// The router Deployment and what it mounts, as found.
struct LiveRouter {
  Json deployment;
  std::string template_hash, centroids, router_config;
  Json router_config_map;  ///< null when it is missing
};

struct Scope {
  Scope(const Environment& environment, EldrPolicy read, Json as_read, Clock::Wall time)
      : env(environment), policy(std::move(read)), object(std::move(as_read)), now(time) {}

  // --- the reconciler ---
  const Environment& env;
  EldrPolicy policy;
  Json object;  ///< the policy as read
  Clock::Wall now;

  // --- phases/dataset ---
  std::optional<Json> dataset;  ///< identity of the content; absent when it cannot be had

  // --- phases/decode_pool ---
  std::optional<Pool> pool;
  std::string pool_since;  ///< RFC 3339; empty: it has never changed

  // --- phases/workers ---
  std::vector<Json> decode_pods;  ///< all that the selector finds
  bool workers_ready = false;     ///< at least one Ready of each kind

  // --- phases/router_rollout: observe_router ---
  std::optional<LiveRouter> router;

  // --- phases/calibration ---
  std::optional<CalibrationInputs> inputs;
  bool published_known = false;            ///< the list could be read; without it nothing is rolled or pruned
  std::vector<PublishedConfig> published;  ///< newest first
  std::optional<std::string> wanted_config;  ///< ConfigMap of the centroids that routers should use
  std::optional<CalibrationStatus> calibration;

  // --- phases/cluster_ids ---
  std::vector<std::int32_t> cluster_ids;  ///< of the rows of wanted_config

  // --- phases/router_rollout: roll_out_router ---
  std::optional<ActiveConfig> active_config;
  std::optional<RouterStatus> router_status;

  // --- all ---
  std::map<std::string, Outcome> conditions;
  std::optional<std::chrono::nanoseconds> requeue_after;
  std::vector<Error> errors;  ///< each makes the key come back with backoff

  void set(const char* type, bool holds, const char* reason, std::string message) {
    conditions[type] = {holds ? "True" : "False", reason, std::move(message)};
  }
  void set_unknown(const char* type, const char* reason, std::string message) {
    conditions[type] = {"Unknown", reason, std::move(message)};
  }
  bool holds(const char* type) const {
    const auto found = conditions.find(type);
    return found != conditions.end() && found->second.status == "True";
  }
  void come_back_in(std::chrono::nanoseconds delay) {
    if (!requeue_after || delay < *requeue_after) requeue_after = delay;
  }
  const kube::Client& client() const { return *env.client; }
  void event(kube::EventType type, const std::string& reason, const std::string& action,
             const std::string& note) const {
    if (env.events) env.events->record(object, type, reason, action, note);
  }
};

}  // namespace eldr::op
