// SPDX-License-Identifier: Apache-2.0
// The command line of eldr-sim-worker.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lib/base/status.h"
#include "lib/http/server.h"
#include "tests/sim/worker.h"

namespace eldr::sim {

struct ProgramOptions {
  http::ServerOptions server;
  WorkerOptions worker;
  ModelShape shape;
  std::uint64_t seed = 0;
  std::string trace;  ///< file, empty: profiles
  std::chrono::milliseconds lame_duck{0};
  std::chrono::milliseconds drain{30'000};
  std::string log_format = "text";
  std::string log_level = "info";
};

/// What to do: run with the options, or print `text` and exit with `code`.
struct CommandLine {
  std::optional<ProgramOptions> options;
  int code = 0;
  std::string text;
};

CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace eldr::sim
