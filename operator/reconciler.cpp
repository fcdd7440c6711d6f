// SPDX-License-Identifier: Apache-2.0
#include "operator/reconciler.h"

#include "lib/kube/object.h"
#include "operator/api/conditions.h"
#include "operator/phases/calibration.h"
#include "operator/phases/cluster_ids.h"
#include "operator/phases/dataset.h"
#include "operator/phases/decode_pool.h"
#include "operator/phases/history.h"
#include "operator/phases/router_rollout.h"
#include "operator/phases/status.h"
#include "operator/phases/workers.h"

namespace eldr::op {
namespace {

/// A spec that cannot be worked with: say so, keep everything else as it was. Only a change of it helps.
Status report_invalid(const Environment& env, const Json& object, const Error& error) {
  EldrPolicy policy;
  policy.key = kube::key_of(object);
  policy.uid = kube::uid_of(object);
  policy.generation = kube::generation_of(object);
  policy.status = parse_status(object);
  Scope scope(env, policy, object, env.clock->wall());
  scope.calibration = policy.status.calibration;
  scope.set(kAccepted, false, reason::kInvalidSpec, error.message);
  return write_status(scope);
}

}  // namespace

void Reconciler::run_phases(Scope& scope) {
  scope.set(kAccepted, true, reason::kSpecAccepted, "the spec is valid");
  find_dataset(scope);
  find_decode_pool(scope);
  find_workers(scope);
  observe_router(scope);
  calibrate(scope);
  choose_cluster_ids(scope);
  roll_out_router(scope);
  label_decode_pods(scope);
  prune_history(scope);
}

Result<Reconciled> Reconciler::reconcile(const ObjectKey& key) {
  const auto object = env_.client->get(kube::kEldrPolicies, key);
  if (!object) {
    if (object.error().code != Code::kNotFound) return failure(object.error());
    if (interest_) interest_->forget(key);
    return Reconciled{};
  }
  if (kube::is_deleting(*object)) return Reconciled{};  // its children go by their owner references

  auto policy = parse_policy(*object);
  if (!policy) {
    if (const Status written = report_invalid(env_, *object, policy.error()); !written)
      return failure(written.error());
    return Reconciled{.exists = true, .requeue_after = {}};
  }
  Scope scope(env_, std::move(*policy), *object, env_.clock->wall());
  run_phases(scope);
  if (interest_) interest_->wants(scope);
  if (const Status written = write_status(scope); !written) scope.errors.push_back(written.error());
  if (!scope.errors.empty()) {
    Error worst = scope.errors.front();
    for (const Error& error : scope.errors)
      worst.retry_after_seconds = std::max(worst.retry_after_seconds, error.retry_after_seconds);
    return failure(worst);
  }
  return Reconciled{.exists = true, .requeue_after = scope.requeue_after};
}

}  // namespace eldr::op
