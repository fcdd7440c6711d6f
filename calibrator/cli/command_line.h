// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <ostream>

#include "calibrator/cli/options.h"

namespace eldr::calibrator {

/// Fills `options`. A value: exit with it at once (0 after --help and --version, 64, 66 or 78 after an error
/// that was printed to standard error).
std::optional<int> parse_command_line(int argc, const char* const* argv, Options& options, std::ostream& out);

}  // namespace eldr::calibrator
