// SPDX-License-Identifier: Apache-2.0
// The desired objects of one calibration: the Job, the empty ConfigMap for its result and the rights to fill
// it. Pure functions of the policy and the inputs.
#pragma once

#include <string>

#include "operator/inputs/calibration_inputs.h"

namespace eldr::op {

/// The ConfigMap that the calibrator fills: named by the fit hash, annotated with the inputs, empty.
Json result_config_map(const EldrPolicy& policy, const CalibrationInputs& inputs);

/// ServiceAccount, Role and RoleBinding `<policy>-calibrator`. The Role allows get and patch on that one
/// ConfigMap.
Json calibrator_service_account(const EldrPolicy& policy);
Json calibrator_role(const EldrPolicy& policy, const std::string& result_name);
Json calibrator_role_binding(const EldrPolicy& policy);

struct CalibrationJobOptions {
  std::string calibrator_image;
  bool from_cache = false;  ///< fit a cached trace: no engine, no data set, no GPU
};
/// The Job `<policy>-cal-<hash>` or, from the cache, `<policy>-fit-<hash>`. Its annotation
/// eldr.dev/intent-hash tells a Job that was made for other resources or deadlines, which the name does not
/// show.
Json calibration_job(const EldrPolicy& policy, const CalibrationInputs& inputs,
                     const CalibrationJobOptions& options);

}  // namespace eldr::op
