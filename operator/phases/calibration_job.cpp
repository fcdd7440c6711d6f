// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/calibration_job.h"

#include <algorithm>
#include <charconv>

#include "lib/base/exit_code.h"
#include "lib/kube/object.h"
#include "operator/api/labels.h"
#include "operator/desired/calibration.h"
#include "operator/desired/names.h"
#include "operator/phases/children.h"
#include "operator/phases/workers.h"

namespace eldr::op {
namespace {

/// How long a finished Job stays, for those who want to read its log.
constexpr int kFinishedJobSeconds = 3600;

std::string annotation(const Json& object, const char* name) {
  return kube::annotation_of(object, name).value_or("");
}

const Json* find_job(const std::vector<Json>& jobs, const std::string& name) {
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&name](const Json& job) { return kube::object_name(job) == name; });
  return found == jobs.end() ? nullptr : &*found;
}

bool is_finished(const Json& job) {
  const JobState state = state_of(&job);
  return state == JobState::kComplete || state == JobState::kFailed;
}

/// A trace for these inputs was collected into the cache once, as far as published results tell.
bool trace_should_be_cached(const Scope& scope) {
  return scope.policy.spec.calibration.cache &&
         std::any_of(scope.published.begin(), scope.published.end(), [&scope](const PublishedConfig& config) {
           return config.collect_hash == scope.inputs->collect_hash;
         });
}

Result<kube::ObjectList> pods_of(const kube::Client& client, const Json& job) {
  return client.list(kube::kPods, kube::object_namespace(job),
                     {.label_selector = "batch.kubernetes.io/job-name=" + kube::object_name(job)});
}

std::optional<int> exit_code_of(const kube::Client& client, const Json& job) {
  return failure_of(client, job).exit_code;
}

/// spec.calibration.suspend on a Job that exists. A Job in a queue is suspended and resumed by the queue: it
/// is only ever suspended here.
Result<Json> apply_suspend(Scope& scope, const Json& job) {
  const bool wanted = scope.policy.spec.calibration.suspend;
  const bool by_policy = kube::annotation_of(job, kSuspendedAnnotation).has_value();
  if (wanted == by_policy || is_finished(job)) return job;
  Json patch = {{"metadata",
                 {{"resourceVersion", kube::resource_version_of(job)},
                  {"annotations", {{kSuspendedAnnotation, wanted ? Json("true") : Json()}}}}}};
  const bool queued = kube::label_of(job, kQueueLabel).has_value();
  if (wanted || !queued) patch["spec"] = {{"suspend", wanted}};
  return scope.client().patch(kube::kJobs, kube::key_of(job), kube::PatchType::kMerge, patch);
}

}  // namespace

JobState state_of(const Json* job) {
  if (job == nullptr) return JobState::kAbsent;
  if (kube::is_deleting(*job)) return JobState::kGoing;
  if (kube::condition_is_true(*job, "Complete")) return JobState::kComplete;
  if (kube::condition_is_true(*job, "Failed")) return JobState::kFailed;
  if (kube::bool_at(*job, {"spec", "suspend"})) return JobState::kSuspended;
  return JobState::kRunning;
}

std::optional<int> exit_code_in(const std::string& condition_message) {
  static constexpr std::string_view kMark = "exit code ";
  const std::size_t at = condition_message.find(kMark);
  if (at == std::string::npos) return {};
  int code = 0;
  const char* begin = condition_message.data() + at + kMark.size();
  const auto result = std::from_chars(begin, condition_message.data() + condition_message.size(), code);
  return result.ec == std::errc() ? std::optional<int>(code) : std::nullopt;
}

std::string job_trouble(const kube::Client& client, const Json& job) {
  const auto pods = pods_of(client, job);
  if (!pods) return "";
  for (const Json& pod : pods->items)
    if (const std::string trouble = pod_trouble(pod); !trouble.empty())
      return "pod " + kube::object_name(pod) + ": " + trouble;
  return "";
}

JobFailure failure_of(const kube::Client& client, const Json& job) {
  JobFailure failure;
  const Json* condition = kube::find_condition(job, "Failed");
  const std::string reason = condition ? kube::string_at(*condition, {"reason"}) : "";
  const std::string text = condition ? kube::string_at(*condition, {"message"}) : "";
  failure.exit_code = exit_code_in(text);

  // The pod that ended last has the calibrator's words. A pod that is gone leaves the Job's own message.
  const auto pods = pods_of(client, job);
  std::string last_end, words, trouble;
  if (pods) {
    for (const Json& pod : pods->items) {
      if (trouble.empty()) trouble = pod_trouble(pod);
      const Json* statuses = kube::find(pod, {"status", "containerStatuses"});
      if (statuses == nullptr || !statuses->is_array()) continue;
      for (const Json& status : *statuses) {
        if (kube::string_at(status, {"name"}) != kCalibrateContainer) continue;
        const auto code = kube::int_at(status, {"state", "terminated", "exitCode"});
        const std::string end = kube::string_at(status, {"state", "terminated", "finishedAt"});
        if (!code || end < last_end) continue;
        last_end = end;
        if (*code != 0) failure.exit_code = static_cast<int>(*code);
        words = kube::string_at(status, {"state", "terminated", "message"});
        if (words.empty()) words = kube::string_at(status, {"state", "terminated", "reason"});
      }
    }
  }
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  if (failure.exit_code) failure.message = "exit code " + std::to_string(*failure.exit_code) + ": ";
  failure.message += words.empty() ? reason + (text.empty() ? "" : ": " + text) : words.substr(0, 2000);
  if (reason == "DeadlineExceeded") failure.message += " (spec.calibration.activeDeadlineSeconds has passed)";
  if (words.empty() && !trouble.empty()) failure.message += "; " + trouble;
  return failure;
}

JobChoice choose_job(const Scope& scope, const std::vector<Json>& jobs) {
  const std::string& policy = scope.policy.key.name;
  const std::string hash = scope.inputs->short_hash();
  if (const Json* full = find_job(jobs, calibration_job_name(policy, hash))) return {full, false};
  const Json* fit = find_job(jobs, fit_job_name(policy, hash));
  if (fit != nullptr) {
    const bool no_trace =
        state_of(fit) == JobState::kFailed && exit_code_of(scope.client(), *fit) == kExitNoInput;
    return no_trace ? JobChoice{nullptr, false} : JobChoice{fit, true};
  }
  return {nullptr, trace_should_be_cached(scope)};
}

Result<Json> ensure_job(Scope& scope, const JobChoice& choice) {
  const Json desired =
      calibration_job(scope.policy, *scope.inputs,
                      {.calibrator_image = scope.env.calibrator_image, .from_cache = choice.from_cache});
  if (choice.job == nullptr) {
    auto created = ensure_created(scope.client(), kube::kJobs, desired);
    if (!created) return failure(created.error());
    if (created->written)
      scope.event(kube::EventType::kNormal, "CalibrationStarted", "Calibrating",
                  "Created Job " + kube::object_name(desired) + " for " +
                      std::to_string(scope.inputs->pool_size) + " clusters" +
                      (choice.from_cache ? " from the cached trace" : ""));
    return created->object;
  }
  // Another specification under the same name: other resources, nodes or deadlines. A Job cannot be changed,
  // so one that has not done its work is made anew.
  const bool differs = annotation(*choice.job, kIntentAnnotation) != annotation(desired, kIntentAnnotation);
  const JobState state = state_of(choice.job);
  if (differs && state != JobState::kComplete && state != JobState::kGoing) {
    if (const Status removed = remove_child(scope.client(), kube::kJobs, *choice.job); !removed)
      return failure(removed.error());
    scope.event(kube::EventType::kNormal, "CalibrationRestarted", "Calibrating",
                "Deleted Job " + kube::object_name(*choice.job) + " to run it with the changed settings");
    scope.come_back_in(std::chrono::seconds(1));
    Json going = *choice.job;
    going["metadata"]["deletionTimestamp"] = format_rfc3339(scope.now);
    return going;
  }
  if (state == JobState::kGoing) {
    scope.come_back_in(std::chrono::seconds(1));
    return *choice.job;
  }
  return apply_suspend(scope, *choice.job);
}

Status remove_superseded(Scope& scope, const std::vector<Json>& jobs, const std::vector<Json>& results) {
  for (const Json& job : jobs) {
    if (annotation(job, kFitHashAnnotation) == scope.inputs->fit_hash || kube::is_deleting(job)) continue;
    const bool was_running = !is_finished(job);
    // A finished one whose result is in use goes by itself, after its time.
    if (kube::find(job, {"spec", "ttlSecondsAfterFinished"}) != nullptr) continue;
    if (const Status removed = remove_child(scope.client(), kube::kJobs, job); !removed) return removed;
    if (was_running)
      scope.event(kube::EventType::kNormal, "CalibrationSuperseded", "Calibrating",
                  "Deleted Job " + kube::object_name(job) + ": its inputs are not the present ones any more");
  }
  for (const Json& result : results) {
    if (kube::bool_at(result, {"immutable"}) || kube::is_deleting(result) ||
        annotation(result, kFitHashAnnotation) == scope.inputs->fit_hash)
      continue;
    if (const Status removed = remove_child(scope.client(), kube::kConfigMaps, result); !removed)
      return removed;
  }
  return {};
}

Status expire_finished(Scope& scope, const std::vector<Json>& jobs) {
  for (const Json& job : jobs) {
    if (annotation(job, kFitHashAnnotation) != scope.inputs->fit_hash || !is_finished(job)) continue;
    if (kube::find(job, {"spec", "ttlSecondsAfterFinished"}) != nullptr || kube::is_deleting(job)) continue;
    const auto patched = scope.client().patch(kube::kJobs, kube::key_of(job), kube::PatchType::kMerge,
                                              {{"spec", {{"ttlSecondsAfterFinished", kFinishedJobSeconds}}}});
    if (!patched && patched.error().code != Code::kNotFound) return failure(patched.error());
  }
  return {};
}

}  // namespace eldr::op
