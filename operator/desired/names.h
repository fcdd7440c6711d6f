// SPDX-License-Identifier: Apache-2.0
// Names of a policy's children. Deterministic, so that a create that was already done meets AlreadyExists.
#pragma once

#include <string>

namespace eldr::op {

inline std::string result_name(const std::string& policy, const std::string& short_hash) {
  return policy + "-c-" + short_hash;
}
inline std::string router_config_name(const std::string& policy, const std::string& short_hash) {
  return policy + "-r-" + short_hash;
}
/// A Job that collects and fits.
inline std::string calibration_job_name(const std::string& policy, const std::string& short_hash) {
  return policy + "-cal-" + short_hash;
}
/// A Job that fits a cached trace.
inline std::string fit_job_name(const std::string& policy, const std::string& short_hash) {
  return policy + "-fit-" + short_hash;
}
inline std::string calibrator_name(const std::string& policy) { return policy + "-calibrator"; }
inline std::string router_name(const std::string& policy) { return policy + "-router"; }

}  // namespace eldr::op
