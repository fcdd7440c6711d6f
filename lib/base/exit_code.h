// SPDX-License-Identifier: Apache-2.0
// Exit codes of every program, from sysexits.h. A Job's podFailurePolicy reads them: 64, 65, 66 and 78 fail
// at once.
#pragma once

#include "lib/base/status.h"

namespace eldr {

enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 64,        ///< the command line is wrong
  kExitBadData = 65,      ///< the input data are wrong
  kExitNoInput = 66,      ///< an input does not exist or cannot be read
  kExitUnavailable = 69,  ///< the engine or the API server does not answer
  kExitBug = 70,          ///< an internal error
  kExitTryAgain = 75,     ///< a temporary failure
  kExitConfig = 78,       ///< the configuration is wrong
};

/// The exit code that an error means when nothing more is known.
ExitCode exit_code_for(const Error& error);

}  // namespace eldr
