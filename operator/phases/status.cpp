// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/status.h"

#include <algorithm>
#include <set>

#include "lib/kube/object.h"
#include "operator/api/conditions.h"
#include "operator/api/decimal.h"
#include "operator/api/labels.h"

namespace eldr::op {
namespace {

constexpr std::size_t kMaxMessage = 4096;
constexpr std::size_t kMaxHistory = 64;

const ConditionStatus* find_condition(const PolicyStatus& status, std::string_view type) {
  const auto found =
      std::find_if(status.conditions.begin(), status.conditions.end(),
                   [type](const ConditionStatus& condition) { return condition.type == type; });
  return found == status.conditions.end() ? nullptr : &*found;
}

/// Ready holds when all hold; else it lends its reason from the first that does not, in the order of
/// dependence.
Outcome summary(const Scope& scope) {
  for (const std::string_view type : kConditionTypes) {
    if (type == kReady) continue;
    const auto found = scope.conditions.find(std::string(type));
    if (found == scope.conditions.end()) continue;
    if (found->second.status != "True")
      return {found->second.status, found->second.reason, std::string(type) + ": " + found->second.message};
  }
  std::string message = "every router uses ";
  message += scope.active_config ? scope.active_config->name : "the load of the workers";
  return {"True", reason::kAllReady, message};
}

std::string rho_of(const PublishedConfig& config) {
  const Json* rho = kube::find(config.summary, {"rho"});
  return rho != nullptr && rho->is_number() ? decimal_text(rho->get<double>()) : "";
}

void add_conditions(const Scope& scope, PolicyStatus& status) {
  std::map<std::string, Outcome> outcomes = scope.conditions;
  for (const std::string_view type : kConditionTypes)
    if (type != kReady && outcomes.count(std::string(type)) == 0)
      outcomes[std::string(type)] = {"Unknown", reason::kNotEvaluated, "waits for the conditions before it"};
  outcomes[kReady] = summary(scope);
  for (const std::string_view type : kConditionTypes) {
    const Outcome& outcome = outcomes[std::string(type)];
    ConditionStatus condition{std::string(type),
                              outcome.status,
                              outcome.reason,
                              outcome.message.substr(0, kMaxMessage),
                              format_rfc3339(scope.now),
                              scope.policy.generation};
    const ConditionStatus* before = find_condition(scope.policy.status, type);
    if (before != nullptr && before->status == condition.status)
      condition.last_transition_time = before->last_transition_time;
    status.conditions.push_back(std::move(condition));
  }
}

/// An event for each condition that newly does not hold for a reason that needs a person, and when all is
/// ready.
void record_transitions(const Scope& scope, const PolicyStatus& status) {
  static const std::set<std::string_view> kWarnings = {reason::kInvalidSpec,
                                                       reason::kConfigMapNotFound,
                                                       reason::kKeyNotFound,
                                                       reason::kDatasetInvalid,
                                                       reason::kClaimNotFound,
                                                       reason::kScaleTargetNotFound,
                                                       reason::kScaleTargetUnsupported,
                                                       reason::kScaleRejected,
                                                       reason::kPoolTooLarge,
                                                       reason::kJobFailed,
                                                       reason::kJobRejected,
                                                       reason::kResultInvalid,
                                                       reason::kRhoTooLow,
                                                       reason::kRolloutFailed,
                                                       reason::kRouterRejected};
  static const std::set<std::string_view> kNews = {reason::kQueued, reason::kSuspended, reason::kStabilizing,
                                                   reason::kPoolEmpty, reason::kRolledOut};
  for (const ConditionStatus& condition : status.conditions) {
    const ConditionStatus* before = find_condition(scope.policy.status, condition.type);
    if (before != nullptr && before->reason == condition.reason) continue;
    if (condition.type == kReady) {
      if (condition.status == "True")
        scope.event(kube::EventType::kNormal, "Ready", "Reconciling", condition.message);
    } else if (kWarnings.count(condition.reason) > 0) {
      scope.event(kube::EventType::kWarning, condition.reason, "Reconciling", condition.message);
    } else if (kNews.count(condition.reason) > 0) {
      scope.event(kube::EventType::kNormal, condition.reason, "Reconciling", condition.message);
    }
  }
}

/// An apply leaves fields that somebody else wrote into the status; they would differ for ever. Rare: one
/// more write.
Status remove_foreign_fields(const Scope& scope, const Json& written, const Json& wanted) {
  const Json* status = kube::find(written, {"status"});
  if (status == nullptr || *status == wanted) return {};
  const Json patch = Json::array(
      {{{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", kube::resource_version_of(written)}},
       {{"op", "replace"}, {"path", "/status"}, {"value", wanted}}});
  const auto replaced =
      scope.client().patch(kube::kEldrPolicies, scope.policy.key, kube::PatchType::kJson, patch, "status");
  if (!replaced && replaced.error().code != Code::kNotFound) return failure(replaced.error());
  return {};
}

}  // namespace

PolicyStatus derive_status(const Scope& scope) {
  const PolicyStatus& before = scope.policy.status;
  PolicyStatus status;
  status.observed_generation = scope.policy.generation;
  // What could not be read keeps its last value: an autoscaler reads these two.
  status.decode_replicas = scope.pool ? scope.pool->replicas : before.decode_replicas;
  status.decode_replicas_since = scope.pool ? scope.pool_since : before.decode_replicas_since;
  status.selector = scope.pool ? scope.pool->selector : before.selector;
  status.active_config = scope.router_status ? scope.active_config : before.active_config;
  status.calibration = scope.calibration;
  status.router = scope.router_status ? scope.router_status : before.router;
  if (!scope.published_known) status.history = before.history;
  for (const PublishedConfig& config : scope.published) {
    if (status.history.size() == kMaxHistory) break;
    status.history.push_back({config.name, config.clusters, rho_of(config), config.published_at});
  }
  add_conditions(scope, status);
  return status;
}

Status write_status(Scope& scope) {
  const PolicyStatus status = derive_status(scope);
  const Json wanted = to_json(status);
  const Json* present = kube::find(scope.object, {"status"});
  if (present != nullptr && *present == wanted) return {};
  record_transitions(scope, status);
  const auto written = scope.client().apply_status(
      kube::kEldrPolicies, scope.policy.key.ns,
      {{"metadata", {{"name", scope.policy.key.name}, {"uid", scope.policy.uid}}}, {"status", wanted}},
      {.field_manager = kStatusFieldManager});
  if (!written) return written.error().code == Code::kNotFound ? Status() : failure(written.error());
  return remove_foreign_fields(scope, *written, wanted);
}

}  // namespace eldr::op
