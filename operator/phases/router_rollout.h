// SPDX-License-Identifier: Apache-2.0
// Phase 6: the routers. They get the wanted configuration by an ordinary rolling update that takes no router
// away before its successor is Ready. A roll-out that makes no progress within its deadline goes back to the
// pod template that was rolled out completely last, and stays there until something about the wanted template
// changes.
//
// What was good last and what failed is remembered on the Deployment, in annotations, so that a restarted
// operator knows.
#pragma once

#include "operator/desired/router_workload.h"
#include "operator/phases/scope.h"

namespace eldr::op {

/// Fills scope.router: what runs before this reconcile changes anything.
void observe_router(Scope& scope);

/// Brings the router's objects to their wanted state; fills scope.active_config and router_status; sets
/// RouterUpdated. After a roll-back scope.cluster_ids are those of the configuration that is gone back to.
void roll_out_router(Scope& scope);

/// How a Deployment stands.
struct RolloutState {
  std::string template_hash;  ///< of the Deployment's template; empty: there is no Deployment
  bool complete = false;      ///< every router has it and is available
  bool deadline_exceeded = false;
};
RolloutState rollout_state(const Json& deployment);

/// What to remember and whether to go back. Pure. `workers_ready` guards against blaming a template for
/// routers that are not Ready because there are no workers.
struct RolloutPlan {
  RolloutMemory memory;
  bool roll_back = false;  ///< to memory.last_good
};
RolloutPlan plan_rollout(const std::string& wanted_hash, const RolloutState& state, RolloutMemory memory,
                         bool workers_ready, const std::string& failure);

}  // namespace eldr::op
