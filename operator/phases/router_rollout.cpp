// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/router_rollout.h"

#include <algorithm>

#include "lib/kube/object.h"
#include "operator/api/conditions.h"
#include "operator/api/labels.h"
#include "operator/desired/names.h"
#include "operator/desired/router_config.h"
#include "operator/phases/children.h"
#include "operator/phases/workers.h"

namespace eldr::op {
namespace {

std::string annotation(const Json& object, const char* name) {
  return kube::annotation_of(object, name).value_or("");
}
std::string template_annotation(const Json& workload, const char* name) {
  return kube::string_at(workload, {"spec", "template", "metadata", "annotations", name});
}

RolloutMemory memory_of(const Json& deployment) {
  return {annotation(deployment, kLastGoodAnnotation), annotation(deployment, kFailedAnnotation),
          annotation(deployment, kFailureAnnotation)};
}

void api_error(Scope& scope, const Error& error) {
  scope.errors.push_back(error);
  scope.set_unknown(kRouterUpdated, reason::kApiError, error.to_string());
}

void rejected(Scope& scope, const Error& error) {
  if (error.retryable()) return api_error(scope, error);
  scope.errors.push_back(error);
  scope.set(kRouterUpdated, false, reason::kRouterRejected, error.message);
}

/// What holds up the routers of a template: the trouble of the first pod that has some.
std::string router_trouble(const Scope& scope, const std::string& template_hash) {
  const auto pods =
      scope.client().list(kube::kPods, scope.policy.key.ns,
                          {.label_selector = std::string(kPolicyLabel) + "=" + scope.policy.key.name + "," +
                                             kNameLabel + "=eldr-router"});
  if (!pods) return "";
  for (const Json& pod : pods->items) {
    if (annotation(pod, kTemplateAnnotation) != template_hash || is_ready_worker(pod)) continue;
    const std::string trouble = pod_trouble(pod);
    if (!trouble.empty()) return "pod " + kube::object_name(pod) + ": " + trouble;
  }
  return "";
}

/// The pod template that a ReplicaSet keeps of an earlier roll-out.
std::optional<Json> kept_template(const Scope& scope, const std::string& template_hash) {
  const auto sets =
      scope.client().list(kube::kReplicaSets, scope.policy.key.ns,
                          {.label_selector = std::string(kPolicyLabel) + "=" + scope.policy.key.name + "," +
                                             kNameLabel + "=eldr-router"});
  if (!sets) return {};
  for (const Json& set : sets->items) {
    if (!kube::is_controlled_by(set, kube::uid_of(scope.router->deployment))) continue;
    if (template_annotation(set, kTemplateAnnotation) != template_hash) continue;
    Json kept = set["spec"]["template"];
    kept["metadata"]["labels"].erase("pod-template-hash");
    kept["metadata"].erase("creationTimestamp");
    return kept;
  }
  return {};
}

/// The objects around the Deployment. Returns the name of the router ConfigMap.
Result<std::string> ensure_surroundings(const Scope& scope, const RouterConfigInputs& inputs) {
  const kube::Client& client = scope.client();
  const EldrPolicy& policy = scope.policy;
  const Json config = router_config_map(policy, inputs);
  if (const auto made = ensure_created(client, kube::kConfigMaps, config); !made)
    return failure(made.error());
  for (const auto& [resource, object] :
       {std::pair(&kube::kServiceAccounts, router_service_account(policy)),
        std::pair(&kube::kRoles, router_role(policy)),
        std::pair(&kube::kRoleBindings, router_role_binding(policy)),
        std::pair(&kube::kServices, router_service(policy)),
        std::pair(&kube::kPodDisruptionBudgets, router_disruption_budget(policy))})
    if (const auto made = ensure_child(client, *resource, object); !made) return failure(made.error());
  return kube::object_name(config);
}

void fill_router_status(Scope& scope, const Json& deployment, bool is_wanted) {
  RouterStatus status;
  status.replicas = kube::int_at(deployment, {"status", "replicas"}).value_or(0);
  const bool current = kube::int_at(deployment, {"status", "observedGeneration"}).value_or(0) >=
                       kube::generation_of(deployment);
  status.updated_replicas =
      is_wanted && current ? kube::int_at(deployment, {"status", "updatedReplicas"}).value_or(0) : 0;
  status.ready_replicas = kube::int_at(deployment, {"status", "readyReplicas"}).value_or(0);
  status.summary = std::to_string(std::min(*status.updated_replicas, *status.ready_replicas)) + "/" +
                   std::to_string(scope.policy.spec.router.replicas);
  status.url = router_url(scope.policy);
  scope.router_status = status;
}

/// The configuration that every router has, when they all have the same; else the one of before.
void fill_active_config(Scope& scope, const Json& deployment, const RolloutState& state) {
  const auto& before = scope.policy.status.active_config;
  const auto find = [&scope](const std::string& name) {
    return std::find_if(scope.published.begin(), scope.published.end(),
                        [&name](const PublishedConfig& config) { return config.name == name; });
  };
  if (!state.complete) {
    if (before && find(before->name) != scope.published.end()) scope.active_config = before;
    return;
  }
  ActiveConfig active;
  active.name = template_annotation(deployment, kCentroidsAnnotation);
  if (active.name.empty()) return;  // routers choose by load alone
  active.router_config = template_annotation(deployment, kRouterConfigAnnotation);
  if (const auto config = find(active.name); config != scope.published.end())
    active.clusters = config->clusters;
  const bool same = before && before->name == active.name && before->router_config == active.router_config &&
                    !before->activated_at.empty();
  active.activated_at = same ? before->activated_at : format_rfc3339(scope.now);
  scope.active_config = active;
}

void report(Scope& scope, const std::string& wanted_hash, const RolloutState& state,
            const RolloutPlan& plan) {
  const std::string counts = scope.router_status->summary + " routers are updated and ready";
  const std::string config = scope.wanted_config ? *scope.wanted_config : "no centroids, by load alone";
  if (plan.roll_back)
    return scope.set(
        kRouterUpdated, false, reason::kRolledBack,
        "the roll-out of " + config + " failed (" + plan.memory.failed_because +
            "); routers went back to the last good configuration; change the policy to try again, or "
            "remove the annotation " +
            kFailedAnnotation + " of Deployment " + router_name(scope.policy.key.name));
  if (state.template_hash == wanted_hash && state.complete)
    return scope.set(kRouterUpdated, true, reason::kRolledOut, counts + " with " + config);
  const std::string trouble = router_trouble(scope, wanted_hash);
  const std::string detail = counts + " with " + config + (trouble.empty() ? "" : "; " + trouble);
  if (state.template_hash == wanted_hash && state.deadline_exceeded)
    return scope.set(kRouterUpdated, false, reason::kRolloutFailed,
                     detail + "; no progress within spec.router.progressDeadlineSeconds");
  scope.set(kRouterUpdated, false, reason::kRollingOut, detail);
}

/// The ids that pods should have while the routers run an earlier template.
void use_ids_of(Scope& scope, const std::string& router_config) {
  const auto map = scope.client().get(kube::kConfigMaps, {scope.policy.key.ns, router_config});
  if (map) scope.cluster_ids = cluster_ids_of(*map);
}

}  // namespace

RolloutState rollout_state(const Json& deployment) {
  RolloutState state;
  if (!deployment.is_object()) return state;
  state.template_hash = template_annotation(deployment, kTemplateAnnotation);
  if (kube::int_at(deployment, {"status", "observedGeneration"}).value_or(0) <
      kube::generation_of(deployment))
    return state;  // its controller has not seen the present template
  const std::int64_t wanted = kube::int_at(deployment, {"spec", "replicas"}).value_or(1);
  const auto count = [&deployment](const char* name) {
    return kube::int_at(deployment, {"status", name}).value_or(0);
  };
  state.complete = count("updatedReplicas") == wanted && count("replicas") == wanted &&
                   count("availableReplicas") == wanted;
  const Json* progressing = kube::find_condition(deployment, "Progressing");
  state.deadline_exceeded =
      progressing != nullptr && kube::string_at(*progressing, {"reason"}) == "ProgressDeadlineExceeded";
  return state;
}

RolloutPlan plan_rollout(const std::string& wanted_hash, const RolloutState& state, RolloutMemory memory,
                         bool workers_ready, const std::string& failure) {
  if (state.complete) memory.last_good = state.template_hash;
  const bool failed = state.template_hash == wanted_hash && state.deadline_exceeded && !state.complete;
  if (failed && workers_ready && !memory.last_good.empty() && memory.last_good != wanted_hash) {
    memory.failed = wanted_hash;
    memory.failed_because = failure;
  }
  if (memory.failed != wanted_hash || memory.last_good == wanted_hash) {
    memory.failed.clear();
    memory.failed_because.clear();
  }
  return {memory, !memory.failed.empty()};
}

void observe_router(Scope& scope) {
  auto deployment =
      scope.client().get(kube::kDeployments, {scope.policy.key.ns, router_name(scope.policy.key.name)});
  if (!deployment) {
    if (deployment.error().code != Code::kNotFound) api_error(scope, deployment.error());
    return;
  }
  if (!kube::is_controlled_by(*deployment, scope.policy.uid)) return;  // ensure_child says so
  LiveRouter live;
  live.template_hash = template_annotation(*deployment, kTemplateAnnotation);
  live.centroids = template_annotation(*deployment, kCentroidsAnnotation);
  live.router_config = template_annotation(*deployment, kRouterConfigAnnotation);
  live.deployment = std::move(*deployment);
  if (!live.router_config.empty()) {
    auto map = scope.client().get(kube::kConfigMaps, {scope.policy.key.ns, live.router_config});
    if (map)
      live.router_config_map = std::move(*map);
    else if (map.error().code != Code::kNotFound)
      return api_error(scope, map.error());
  }
  scope.router = std::move(live);
}

void roll_out_router(Scope& scope) {
  if (scope.conditions.count(kRouterUpdated) > 0) return;  // what runs could not be read
  if (!scope.published_known)
    return scope.set_unknown(kRouterUpdated, reason::kApiError,
                             "the published configurations could not be read");
  const std::string selector = scope.pool ? scope.pool->selector : scope.policy.status.selector;
  if (selector.empty())
    return scope.set_unknown(kRouterUpdated, reason::kNotEvaluated,
                             "the decode pods are not known yet; see WorkersAvailable");
  const std::string centroids = scope.cluster_ids.empty() ? "" : scope.wanted_config.value_or("");
  const auto config = ensure_surroundings(scope, {selector, centroids, scope.cluster_ids});
  if (!config) return rejected(scope, config.error());

  Json pod_template = router_pod_template(scope.policy, {scope.env.router_image, centroids, *config});
  const std::string wanted_hash =
      kube::string_at(pod_template, {"metadata", "annotations", kTemplateAnnotation});

  const Json no_deployment;
  const Json& live = scope.router ? scope.router->deployment : no_deployment;
  const RolloutState before = rollout_state(live);
  std::string failure;
  if (before.deadline_exceeded) {
    failure = router_trouble(scope, wanted_hash);
    if (failure.empty()) failure = "routers did not become ready within spec.router.progressDeadlineSeconds";
  }
  const RolloutMemory remembered = live.is_object() ? memory_of(live) : RolloutMemory{};
  RolloutPlan plan = plan_rollout(wanted_hash, before, remembered, scope.workers_ready, failure);
  if (plan.roll_back) {
    if (auto kept = kept_template(scope, plan.memory.last_good)) {
      pod_template = std::move(*kept);
      use_ids_of(scope, kube::string_at(pod_template, {"metadata", "annotations", kRouterConfigAnnotation}));
    } else {
      plan.roll_back = false;  // nothing to go back to
    }
  }
  const auto deployment = ensure_child(scope.client(), kube::kDeployments,
                                       router_deployment(scope.policy, pod_template, plan.memory));
  if (!deployment) return rejected(scope, deployment.error());

  const RolloutState after = rollout_state(deployment->object);
  if (after.template_hash != before.template_hash)
    scope.event(plan.roll_back ? kube::EventType::kWarning : kube::EventType::kNormal,
                plan.roll_back ? "RolloutRolledBack" : "RolloutStarted", "RollingOut",
                plan.roll_back
                    ? "Went back to the last good configuration: " + plan.memory.failed_because
                    : "Rolling routers to " + (centroids.empty() ? *config : centroids + " with " + *config));
  fill_router_status(scope, deployment->object, after.template_hash == wanted_hash);
  fill_active_config(scope, deployment->object, after);
  report(scope, wanted_hash, after, plan);
}

}  // namespace eldr::op
