// SPDX-License-Identifier: Apache-2.0
// The desired objects of the routers: Deployment, Service, disruption budget, and the right to watch pods.
// Pure functions.
#pragma once

#include <string>

#include "operator/api/eldr_policy.h"

namespace eldr::op {

struct RouterPodInputs {
  std::string image;          ///< used where spec.router.image is empty
  std::string centroids;      ///< ConfigMap; empty: none is mounted
  std::string router_config;  ///< ConfigMap
};
/// The pod template. Its annotations name both ConfigMaps and its own hash.
Json router_pod_template(const EldrPolicy& policy, const RouterPodInputs& inputs);

/// What the Deployment remembers between reconciles, as annotations (see phases/router_rollout.h).
struct RolloutMemory {
  std::string last_good;       ///< template hash
  std::string failed;          ///< template hash
  std::string failed_because;  ///< for people
  bool operator==(const RolloutMemory&) const = default;
};
/// Rolls with maxUnavailable 0, so that a roll-out that cannot succeed takes nothing away.
Json router_deployment(const EldrPolicy& policy, const Json& pod_template, const RolloutMemory& memory);

Json router_service(const EldrPolicy& policy);
Json router_disruption_budget(const EldrPolicy& policy);
Json router_service_account(const EldrPolicy& policy);
Json router_role(const EldrPolicy& policy);
Json router_role_binding(const EldrPolicy& policy);

/// "http://qwen3-router.serving:80"
std::string router_url(const EldrPolicy& policy);

}  // namespace eldr::op
