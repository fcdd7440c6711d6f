// SPDX-License-Identifier: Apache-2.0
// eldr-calibrate, all but what only a main() may do.
#pragma once

#include <ostream>
#include <stop_token>
#include <string>

#include "calibrator/cuda/plugin_loader.h"
#include "lib/base/clock.h"
#include "lib/kube/config.h"

namespace eldr::calibrator {

struct ProcessFacts {
  std::string temp_directory = "/tmp";
  unsigned cpus = 1;
  bool terminal = false;  ///< standard error is one
  kube::Environment kube_environment;
  cuda::PluginPlaces cuda_plugin;
};

/// Parses the command line, runs the command, reports a failure as one line on standard error and in the
/// termination log. Returns the exit code (lib/base/exit_code.h).
int run_program(int argc, const char* const* argv, const ProcessFacts& process, const Clock& clock,
                const std::stop_token& stop, std::ostream& out);

}  // namespace eldr::calibrator
