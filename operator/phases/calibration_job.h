// SPDX-License-Identifier: Apache-2.0
// The Job of a calibration: making it, suspending it, deleting superseded ones, and reading how it ended.
#pragma once

#include <optional>
#include <string>

#include "operator/phases/scope.h"

namespace eldr::op {

enum class JobState { kAbsent, kGoing, kSuspended, kRunning, kComplete, kFailed };
JobState state_of(const Json* job);

/// How a failed Job ended: the calibrator's own words where its pod is still there.
struct JobFailure {
  std::optional<int> exit_code;
  std::string message;  ///< "exit code 65: data.jsonl line 3: …"
};
JobFailure failure_of(const kube::Client& client, const Json& job);

/// What holds the pods of a Job up: no node that fits, an image that cannot be pulled. Empty: nothing known.
std::string job_trouble(const kube::Client& client, const Json& job);

/// The exit code in a Job's condition: "Container calibrate for pod serving/x failed with exit code 65
/// matching …".
std::optional<int> exit_code_in(const std::string& condition_message);

/// What runs the calibration for scope.inputs, of the Jobs that exist.
struct JobChoice {
  const Json* job = nullptr;  ///< the one to judge, or nullptr: none yet
  bool from_cache = false;    ///< it is, or the next one is to be, a fit of the cached trace
};
/// A fit of the cached trace is tried first where the trace should be there; when that Job ends with exit
/// code 66 (no such file) the full one follows.
JobChoice choose_job(const Scope& scope, const std::vector<Json>& jobs);

/// Creates or replaces, suspends or resumes the Job. Errors are the API server's.
Result<Json> ensure_job(Scope& scope, const JobChoice& choice);

/// Deletes Jobs that were made for other inputs, and their unpublished results.
Status remove_superseded(Scope& scope, const std::vector<Json>& jobs, const std::vector<Json>& results);

/// Lets Kubernetes delete a Job whose result is published.
Status expire_finished(Scope& scope, const std::vector<Json>& jobs);

}  // namespace eldr::op
