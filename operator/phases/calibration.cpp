// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/calibration.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "lib/kube/object.h"
#include "operator/api/conditions.h"
#include "operator/api/decimal.h"
#include "operator/api/time_text.h"
#include "operator/desired/calibration.h"
#include "operator/desired/names.h"
#include "operator/phases/calibration_job.h"
#include "operator/phases/children.h"
#include "operator/phases/result.h"

namespace eldr::op {
namespace {

void waits(Scope& scope, const char* reason, const std::string& message) {
  scope.set(kCalibrated, false, reason, message);
}

void api_error(Scope& scope, const Error& error) {
  scope.errors.push_back(error);
  scope.set_unknown(kCalibrated, reason::kApiError, error.to_string());
}

/// A write of the Job or of what it needs failed: by chance, or because the API server will not have it.
void write_failed(Scope& scope, const Error& error) {
  if (error.retryable()) return api_error(scope, error);
  scope.errors.push_back(error);
  waits(scope, reason::kJobRejected, error.message);
}

const PublishedConfig* find_published(const Scope& scope, const std::string& fit_hash) {
  const auto found = std::find_if(scope.published.begin(), scope.published.end(),
                                  [&](const PublishedConfig& config) { return config.fit_hash == fit_hash; });
  return found == scope.published.end() ? nullptr : &*found;
}

/// What routers keep while there is nothing better: what they have, else what they had.
void keep_present_config(Scope& scope) {
  const auto is_there = [&scope](const std::string& name) {
    return std::any_of(scope.published.begin(), scope.published.end(),
                       [&name](const PublishedConfig& config) { return config.name == name; });
  };
  if (scope.router && !scope.router->centroids.empty() && is_there(scope.router->centroids))
    scope.wanted_config = scope.router->centroids;
  else if (scope.policy.status.active_config && is_there(scope.policy.status.active_config->name))
    scope.wanted_config = scope.policy.status.active_config->name;
}

std::string meanwhile(const Scope& scope) {
  return scope.wanted_config ? "; routers keep " + *scope.wanted_config
                             : "; routers choose by load alone until then";
}

/// The status of the calibration for the present inputs, carrying over what an earlier reconcile saw of the
/// same.
CalibrationStatus begin_status(const Scope& scope) {
  const auto& before = scope.policy.status.calibration;
  if (before && before->input_hash == scope.inputs->fit_hash) return *before;
  CalibrationStatus status;
  status.input_hash = scope.inputs->fit_hash;
  Json in_use;
  for (const PublishedConfig& config : scope.published)
    if (scope.wanted_config && config.name == *scope.wanted_config) in_use = config.parts;
  status.reason = calibration_reason(in_use, scope.inputs->parts);
  return status;
}

void fill_from_summary(CalibrationStatus& status, const PublishedConfig& config) {
  const auto decimal = [&config](const char* name) -> std::string {
    const Json* value = kube::find(config.summary, {name});
    if (value == nullptr) return "";
    if (value->is_number()) return decimal_text(value->get<double>());
    return value->is_string() ? value->get<std::string>().substr(0, 16) : "";
  };
  status.rho = decimal("rho");
  status.rho_all_layers = decimal("rhoAllLayers");
  status.layers_kept = kube::int_at(config.summary, {"layersKept"});
  status.max_cluster_share = decimal("maxClusterShare");
  status.requests = kube::int_at(config.summary, {"requests"});
  status.completion_time = config.published_at;
  status.stage = "Published";
  status.progress = "Published";
}

/// A published configuration for exactly these inputs: used, unless its quality is under what is asked for.
void use_published(Scope& scope, const PublishedConfig& config, const std::vector<Json>& jobs) {
  CalibrationStatus status = begin_status(scope);
  fill_from_summary(status, config);
  scope.calibration = status;
  if (const Status expired = expire_finished(scope, jobs); !expired) scope.errors.push_back(expired.error());

  const auto set = read_centroids(config.object);
  if (!set) {
    // Published things never change, so this is damage done by hand: say so, and let a deletion make it anew.
    waits(scope, reason::kResultInvalid,
          "ConfigMap " + config.name + " is damaged: " + set.error().message +
              "; delete it to calibrate again");
    return;
  }
  const std::string& minimum_text = scope.policy.spec.calibration.minimum_rho;
  const double minimum = parse_decimal(minimum_text).value_or(0);
  if (set->rho < minimum) {
    waits(scope, reason::kRhoTooLow,
          config.name + " has rho " + decimal_text(set->rho) + ", under spec.calibration.minimumRho " +
              minimum_text + meanwhile(scope) + "; use more or more separable prompts, or lower the minimum");
    return;
  }
  scope.wanted_config = config.name;
  scope.set(
      kCalibrated, true, reason::kPublished,
      config.name + ": " + std::to_string(config.clusters) + " clusters, rho " + decimal_text(set->rho));
}

/// Seconds that a new pool size must still hold; 0 when it has.
std::chrono::seconds left_to_stabilize(const Scope& scope) {
  const auto since = parse_rfc3339(scope.pool_since);
  if (!since) return std::chrono::seconds(0);
  const auto until = *since + std::chrono::seconds(scope.policy.spec.calibration.stabilization_seconds);
  return until <= scope.now ? std::chrono::seconds(0)
                            : std::chrono::ceil<std::chrono::seconds>(until - scope.now);
}

/// The ConfigMap for the result and the right to fill it.
Result<Json> ensure_result_place(Scope& scope) {
  auto result =
      ensure_created(scope.client(), kube::kConfigMaps, result_config_map(scope.policy, *scope.inputs));
  if (!result) return failure(result.error());
  const auto account =
      ensure_child(scope.client(), kube::kServiceAccounts, calibrator_service_account(scope.policy));
  if (!account) return failure(account.error());
  const auto role = ensure_child(scope.client(), kube::kRoles,
                                 calibrator_role(scope.policy, kube::object_name(result->object)));
  if (!role) return failure(role.error());
  const auto binding =
      ensure_child(scope.client(), kube::kRoleBindings, calibrator_role_binding(scope.policy));
  if (!binding) return failure(binding.error());
  return result->object;
}

/// The result is there: checked, published and used. False when it is not valid, with the reason in `why`.
bool publish_result(Scope& scope, const Json& result, const std::vector<Json>& jobs, std::string& why) {
  if (const Status good = check_result(result, *scope.inputs, scope.policy.spec.model.name); !good) {
    why = good.error().message;
    return false;
  }
  const auto published = publish(scope.client(), result, scope.now);
  if (!published) {
    api_error(scope, published.error());
    return true;
  }
  const PublishedConfig config = published_config(*published);
  scope.published.insert(scope.published.begin(), config);
  scope.event(kube::EventType::kNormal, "CalibrationPublished", "Calibrating",
              "Published " + config.name + " with " + std::to_string(config.clusters) + " clusters");
  use_published(scope, config, jobs);
  return true;
}

void report_running(Scope& scope, CalibrationStatus& status, const Json& job, const Json& result) {
  const auto progress = progress_of(result);
  status.stage = progress ? progress->stage : "Waiting";
  status.progress = progress ? progress->text : "Waiting";
  std::string detail = status.stage == status.progress ? status.stage : status.stage + " " + status.progress;
  // Before the calibrator says anything, what holds its pod up is the news: no GPU, no such image.
  if (!progress)
    if (const std::string trouble = job_trouble(scope.client(), job); !trouble.empty())
      detail += "; " + trouble;
  waits(scope, reason::kCalibrating, "Job " + kube::object_name(job) + " runs: " + detail + meanwhile(scope));
}

void report_failed(Scope& scope, CalibrationStatus& status, const Json& job) {
  const JobFailure failure = failure_of(scope.client(), job);
  status.stage = "Failed";
  status.progress = "Failed";
  const std::string message = "Job " + kube::object_name(job) + " failed: " + failure.message +
                              meanwhile(scope) + "; change the policy, or delete the Job to try again";
  waits(scope, reason::kJobFailed, message);
}

/// Sets the condition and the status from how the Job stands.
void report(Scope& scope, CalibrationStatus& status, const Json& job, const Json& result,
            const std::string& invalid_result) {
  status.job_name = kube::object_name(job);
  if (const std::string started = kube::string_at(job, {"status", "startTime"}); !started.empty())
    status.start_time = started;
  status.completion_time.clear();
  switch (state_of(&job)) {
    case JobState::kAbsent:
    case JobState::kGoing:
      status.stage = status.progress = "Waiting";
      return waits(scope, reason::kCalibrating,
                   "Job " + status.job_name + " is made anew" + meanwhile(scope));
    case JobState::kSuspended: {
      const bool by_policy = scope.policy.spec.calibration.suspend;
      status.stage = status.progress = by_policy ? "Suspended" : "Queued";
      if (by_policy)
        return waits(scope, reason::kSuspended,
                     "spec.calibration.suspend holds Job " + status.job_name + " back" + meanwhile(scope));
      return waits(scope, reason::kQueued,
                   "Job " + status.job_name + " waits until queue " +
                       scope.policy.spec.calibration.queue_name + " admits it" + meanwhile(scope));
    }
    case JobState::kRunning:
      return report_running(scope, status, job, result);
    case JobState::kFailed:
      return report_failed(scope, status, job);
    case JobState::kComplete:
      status.stage = status.progress = "Failed";
      return waits(scope, reason::kResultInvalid,
                   "Job " + status.job_name + " ended well, but ConfigMap " + kube::object_name(result) +
                       (invalid_result.empty() ? " holds no " + std::string("centroids.safetensors")
                                               : " is no good: " + invalid_result) +
                       meanwhile(scope) + "; delete the Job to try again");
  }
}

/// No published configuration: have one made.
void run_job(Scope& scope, const std::vector<Json>& jobs, const std::vector<Json>& results) {
  scope.calibration = begin_status(scope);
  CalibrationStatus& status = *scope.calibration;

  if (const auto left = left_to_stabilize(scope); left.count() > 0) {
    scope.come_back_in(left);
    status.stage = status.progress = "Stabilizing";
    return waits(scope, reason::kStabilizing,
                 "the pool has " + std::to_string(scope.pool->replicas) + " decode workers since " +
                     scope.pool_since + "; calibrates when that has held for " +
                     std::to_string(scope.policy.spec.calibration.stabilization_seconds) + " s" +
                     meanwhile(scope));
  }
  if (const Status removed = remove_superseded(scope, jobs, results); !removed)
    return write_failed(scope, removed.error());

  const JobChoice choice = choose_job(scope, jobs);
  if (choice.job == nullptr && scope.policy.spec.calibration.suspend) {
    status.stage = status.progress = "Suspended";
    return waits(scope, reason::kSuspended,
                 "spec.calibration.suspend is true, so no Job is started" + meanwhile(scope));
  }
  const auto result = ensure_result_place(scope);
  if (!result) return write_failed(scope, result.error());
  std::string invalid_result;
  if (has_result(*result) && publish_result(scope, *result, jobs, invalid_result)) return;
  const auto job = ensure_job(scope, choice);
  if (!job) return write_failed(scope, job.error());
  report(scope, status, *job, *result, invalid_result);
}

}  // namespace

void calibrate(Scope& scope) {
  auto results = list_children(scope.client(), kube::kConfigMaps, scope.policy, "eldr-centroids");
  if (!results) return api_error(scope, results.error());
  for (const Json& result : *results)
    if (is_published(result) && !kube::is_deleting(result))
      scope.published.push_back(published_config(result));
  std::sort(scope.published.begin(), scope.published.end(),
            [](const PublishedConfig& a, const PublishedConfig& b) {
              return std::tie(b.published_at, b.name) < std::tie(a.published_at, a.name);
            });
  scope.published_known = true;
  keep_present_config(scope);
  scope.calibration = scope.policy.status.calibration;

  if (!scope.dataset)
    return waits(scope, reason::kWaitingForDataset, "waits for DatasetAvailable" + meanwhile(scope));
  if (!scope.pool)
    return waits(scope, reason::kWaitingForWorkers,
                 "the size of the decode pool is not known" + meanwhile(scope));
  if (scope.pool->replicas < 1 || scope.pool->replicas > kMaxClusters)
    return waits(scope, reason::kWaitingForWorkers,
                 "a pool of " + std::to_string(scope.pool->replicas) + " decode workers cannot be clustered" +
                     meanwhile(scope));
  if (scope.pool->replicas > scope.policy.spec.dataset.sample_size)
    return waits(scope, reason::kWaitingForWorkers,
                 "the pool has " + std::to_string(scope.pool->replicas) +
                     " decode workers, more than spec.dataset.sampleSize (" +
                     std::to_string(scope.policy.spec.dataset.sample_size) + "); raise that" +
                     meanwhile(scope));

  scope.inputs =
      derive_inputs(scope.policy.spec, *scope.dataset, scope.pool->replicas, scope.env.calibrator_image);
  const auto jobs = list_children(scope.client(), kube::kJobs, scope.policy, "eldr-calibrator");
  if (!jobs) return api_error(scope, jobs.error());
  if (const PublishedConfig* config = find_published(scope, scope.inputs->fit_hash)) {
    const PublishedConfig found = *config;
    if (left_to_stabilize(scope).count() == 0)
      if (const Status removed = remove_superseded(scope, *jobs, *results); !removed)
        scope.errors.push_back(removed.error());
    return use_published(scope, found, *jobs);
  }
  run_job(scope, *jobs, *results);
}

}  // namespace eldr::op
