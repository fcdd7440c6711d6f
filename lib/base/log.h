// SPDX-License-Identifier: Apache-2.0
// Logs of every program: spdlog to standard error, as text for people or one JSON object a line for
// collectors.
#pragma once

#include <string>

#include <spdlog/spdlog.h>

#include "lib/base/status.h"

namespace eldr {

/// Sets spdlog's default logger. `format`: "text" or "json"; `level`: trace, debug, info, warn, error, off.
/// Call once in main. In JSON, `program` becomes the field "logger". Messages are escaped, so a value can
/// never break a line.
Status init_logging(const std::string& program, const std::string& format, const std::string& level);

}  // namespace eldr
