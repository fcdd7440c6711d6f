// SPDX-License-Identifier: Apache-2.0
// Why a command failed, with the exit code that says whether trying again can help.
#pragma once

#include <tl/expected.hpp>

#include "lib/base/exit_code.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

struct Failure {
  Error error;
  ExitCode exit = kExitBug;
};
using Outcome = tl::expected<void, Failure>;

/// A failure whose exit code follows from the error's code.
inline tl::unexpected<Failure> fail(const Error& error) {
  return tl::unexpected<Failure>({error, exit_code_for(error)});
}
inline tl::unexpected<Failure> fail(const Error& error, ExitCode exit) {
  return tl::unexpected<Failure>({error, exit});
}

}  // namespace eldr::calibrator
