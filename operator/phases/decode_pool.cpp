// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/decode_pool.h"

#include "operator/api/conditions.h"

namespace eldr::op {
namespace {

std::string target_text(const Scope& scope) {
  const ScaleTargetRef& target = scope.policy.spec.decode.scale_target_ref;
  return target.kind + " " + scope.policy.key.ns + "/" + target.name;
}

void api_error(Scope& scope, const Error& error) {
  scope.errors.push_back(error);
  scope.set_unknown(kWorkersAvailable, reason::kApiError, error.to_string());
}

void unsupported(Scope& scope, const std::string& why) {
  scope.set(kWorkersAvailable, false, reason::kScaleTargetUnsupported, "spec.decode.scaleTargetRef: " + why);
  scope.come_back_in(scope.env.poll);
}

/// The target's scale, or nothing with a condition that says why.
std::optional<kube::Scale> read_scale(Scope& scope, kube::Resource& resource) {
  const ScaleTargetRef& target = scope.policy.spec.decode.scale_target_ref;
  const auto found = scope.client().discover(target.api_version, target.kind);
  if (!found) {
    if (found.error().code == Code::kNotFound)
      unsupported(scope, "the API server knows no kind " + target.kind + " in " + target.api_version +
                             "; check the spelling, or install what provides it");
    else
      api_error(scope, found.error());
    return {};
  }
  resource = *found;
  const ObjectKey key{scope.policy.key.ns, target.name};
  auto scale = scope.client().get_scale(resource, key);
  if (scale) return *scale;
  if (scale.error().code == Code::kForbidden) {
    unsupported(scope, "the operator may not read the scale of " + target_text(scope) + ": " +
                           scale.error().message + "; grant it get and patch on " + resource.plural +
                           "/scale");
    return {};
  }
  if (scale.error().code != Code::kNotFound) {
    api_error(scope, scale.error());
    return {};
  }
  const auto scalable = scope.client().has_subresource(resource, "scale");
  if (!scalable) {
    api_error(scope, scalable.error());
  } else if (!*scalable) {
    unsupported(scope, "kind " + target.kind +
                           " has no scale subresource; name a Deployment, a StatefulSet or another kind "
                           "that has one");
  } else {
    scope.set(kWorkersAvailable, false, reason::kScaleTargetNotFound,
              "spec.decode.scaleTargetRef: " + target_text(scope) +
                  " does not exist; create it in the policy's namespace or name another");
    scope.come_back_in(scope.env.poll);
  }
  return {};
}

/// Brings the target to spec.decode.replicas. False with a condition when that is refused.
bool scale_target(Scope& scope, const kube::Resource& resource, kube::Scale& scale) {
  const auto& wanted = scope.policy.spec.decode.replicas;
  if (!wanted || *wanted == scale.replicas) return true;
  const auto result = scope.client().set_scale(
      resource, {scope.policy.key.ns, scope.policy.spec.decode.scale_target_ref.name},
      static_cast<int>(*wanted));
  if (!result) {
    if (result.error().retryable()) {
      api_error(scope, result.error());
    } else {
      scope.set(kWorkersAvailable, false, reason::kScaleRejected,
                target_text(scope) + " cannot be scaled to spec.decode.replicas " + std::to_string(*wanted) +
                    ": " + result.error().message);
      scope.errors.push_back(result.error());
    }
    return false;
  }
  scope.event(kube::EventType::kNormal, "DecodePoolScaled", "Scaling",
              "Scaled " + target_text(scope) + " from " + std::to_string(scale.replicas) + " to " +
                  std::to_string(*wanted) + " decode workers");
  scale = *result;
  return true;
}

/// Since when the pool has this size; the very first size counts as held for ever.
std::string size_since(const Scope& scope, std::int64_t replicas) {
  const PolicyStatus& before = scope.policy.status;
  if (!before.decode_replicas || *before.decode_replicas == replicas) return before.decode_replicas_since;
  return format_rfc3339(scope.now);
}

}  // namespace

void find_decode_pool(Scope& scope) {
  kube::Resource resource;
  auto scale = read_scale(scope, resource);
  if (!scale || !scale_target(scope, resource, *scale)) return;
  if (scale->selector.empty())
    return unsupported(scope,
                       "the scale of " + target_text(scope) +
                           " names no pods (status.selector is empty), so its workers cannot be found");
  scope.pool = Pool{resource, scale->replicas, scale->selector};
  scope.pool_since = size_since(scope, scale->replicas);
  scope.come_back_in(is_watched_target(resource) ? scope.env.resync : scope.env.poll);
}

bool is_watched_target(const kube::Resource& resource) {
  return resource == kube::kDeployments || resource == kube::kStatefulSets;
}

}  // namespace eldr::op
