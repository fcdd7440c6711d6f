// SPDX-License-Identifier: Apache-2.0
// What a command gets from main: everything that touches the outside, so that tests can own it.
#pragma once

#include <ostream>
#include <stop_token>
#include <string>

#include "calibrator/cuda/plugin_loader.h"
#include "calibrator/failure.h"
#include "calibrator/progress/progress.h"
#include "lib/base/clock.h"
#include "lib/kube/config.h"

namespace eldr::calibrator {

/// References must outlive the command.
struct Context {
  const Clock& clock;
  Progress& progress;
  std::ostream& out;     ///< results
  std::stop_token stop;  ///< set by SIGTERM and SIGINT
  std::string temp_directory;
  unsigned threads = 1;  ///< CPUs that may be used
  kube::Environment kube_environment;
  cuda::PluginPlaces cuda_plugin;
};

}  // namespace eldr::calibrator
