// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/workers.h"

#include <algorithm>

#include "lib/kube/object.h"
#include "operator/api/conditions.h"

namespace eldr::op {
namespace {

/// The first sentence that says why a pod is not Ready: an image that cannot be pulled, a crash, no node.
std::string why_not_ready(const std::vector<Json>& pods) {
  for (const Json& pod : pods) {
    if (is_ready_worker(pod)) continue;
    const std::string why = pod_trouble(pod);
    if (!why.empty()) return "; pod " + kube::object_name(pod) + ": " + why;
  }
  return "";
}

}  // namespace

bool is_ready_worker(const Json& pod) {
  return !kube::is_deleting(pod) && kube::condition_is_true(pod, "Ready");
}

std::string pod_trouble(const Json& pod) {
  for (const char* member : {"initContainerStatuses", "containerStatuses"}) {
    const Json* statuses = kube::find(pod, {"status", member});
    if (statuses == nullptr || !statuses->is_array()) continue;
    for (const Json& status : *statuses) {
      const std::string waiting = kube::string_at(status, {"state", "waiting", "reason"});
      if (waiting.empty() || waiting == "ContainerCreating" || waiting == "PodInitializing") continue;
      const std::string message = kube::string_at(status, {"state", "waiting", "message"});
      return "container " + kube::string_at(status, {"name"}) + " " + waiting +
             (message.empty() ? "" : " (" + message.substr(0, 300) + ")");
    }
  }
  const Json* scheduled = kube::find_condition(pod, "PodScheduled");
  if (scheduled != nullptr && kube::string_at(*scheduled, {"status"}) == "False")
    return "not scheduled: " + kube::string_at(*scheduled, {"message"}).substr(0, 300);
  return "";
}

void find_workers(Scope& scope) {
  if (!scope.pool) return;  // the pool phase said why
  const auto decode =
      scope.client().list(kube::kPods, scope.policy.key.ns, {.label_selector = scope.pool->selector});
  const std::string prefill_selector = selector_text(scope.policy.spec.prefill.selector);
  const auto prefill =
      scope.client().list(kube::kPods, scope.policy.key.ns, {.label_selector = prefill_selector});
  for (const auto* list : {&decode, &prefill}) {
    if (*list) continue;
    scope.errors.push_back(list->error());
    return scope.set_unknown(kWorkersAvailable, reason::kApiError, list->error().to_string());
  }
  scope.decode_pods = decode->items;
  const auto ready = [](const std::vector<Json>& pods) {
    return std::count_if(pods.begin(), pods.end(), is_ready_worker);
  };
  const auto decode_ready = ready(decode->items);
  const auto prefill_ready = ready(prefill->items);
  const std::int64_t wanted = scope.pool->replicas;
  const std::string counts = std::to_string(decode_ready) + " of " + std::to_string(wanted) + " decode and " +
                             std::to_string(prefill_ready) + " prefill workers are Ready";
  scope.workers_ready = decode_ready > 0 && prefill_ready > 0;

  if (wanted == 0)
    return scope.set(kWorkersAvailable, false, reason::kPoolEmpty,
                     "the decode pool is scaled to 0; scale it up to serve and to calibrate");
  if (wanted > kMaxClusters)
    return scope.set(kWorkersAvailable, false, reason::kPoolTooLarge,
                     "the decode pool has " + std::to_string(wanted) + " workers; at most " +
                         std::to_string(kMaxClusters) + " can be clustered");
  if (decode_ready == 0)
    return scope.set(kWorkersAvailable, false, reason::kDecodeWorkersNotReady,
                     counts + " (decode pods: " + scope.pool->selector + ")" + why_not_ready(decode->items));
  if (prefill_ready == 0)
    return scope.set(kWorkersAvailable, false, reason::kPrefillWorkersNotReady,
                     counts + " (prefill pods: " + prefill_selector + ")" + why_not_ready(prefill->items));
  const bool all = decode_ready >= wanted;
  scope.set(kWorkersAvailable, true, all ? reason::kWorkersReady : reason::kWorkersPartlyReady,
            counts + (all ? "" : why_not_ready(decode->items)));
}

}  // namespace eldr::op
