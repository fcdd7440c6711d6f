// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cli/program.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>
#include <system_error>

#include "calibrator/cli/command_line.h"
#include "calibrator/cli/commands.h"
#include "calibrator/progress/sinks.h"
#include "lib/base/log.h"

namespace eldr::calibrator {
namespace {

Outcome dispatch(const Options& options, Context& context) {
  if (options.command == "collect") {
    return collect_command(options, context);
  }
  if (options.command == "fit") {
    return fit_command(options, context);
  }
  if (options.command == "run") {
    return run_command(options, context);
  }
  if (options.command == "report") {
    return report_command(options, context);
  }
  return inspect_command(options, context);
}

/// Libraries may throw; only memory is expected to run out.
Outcome guarded(const Options& options, Context& context) {
  try {
    return dispatch(options, context);
  } catch (const std::bad_alloc&) {
    return fail({Code::kResourceExhausted,
                 "out of memory: use a smaller --sample-size, fewer --threads, or give the process more", 0});
  } catch (const std::system_error& error) {
    const bool passing = error.code() == std::errc::resource_unavailable_try_again;  // no room for a thread
    return fail({passing ? Code::kResourceExhausted : Code::kInternal, error.what(), 0});
  } catch (const std::exception& error) {
    return fail({Code::kInternal, error.what(), 0});
  }
}

/// One line, in the log's format on standard error and as text where Kubernetes looks for it.
void report(const Error& error, const std::string& termination_log) {
  const std::string line = error.message;
  spdlog::error("{}", line);
  // The usual place is written only where a container runtime has put the file; a place that was asked for is
  // made.
  const char* mode = termination_log == Options().termination_log ? "r+" : "w";
  if (std::FILE* file = std::fopen(termination_log.c_str(), mode); file != nullptr) {
    std::fwrite(line.data(), 1, std::min<std::size_t>(line.size(), 4000), file);
    std::fclose(file);
  }
}

}  // namespace

int run_program(int argc, const char* const* argv, const ProcessFacts& process, const Clock& clock,
                const std::stop_token& stop, std::ostream& out) {
  Options options;
  if (const auto exit_code = parse_command_line(argc, argv, options, out)) {
    return *exit_code;
  }
  if (const Status logging = init_logging("eldr-calibrate", options.log_format, options.log_level);
      !logging) {
    std::cerr << logging.error().message << '\n';
    return kExitUsage;
  }
  Progress progress(clock);
  const bool bar = process.terminal && options.log_format == "text";
  if (bar) {
    progress.add_sink(std::make_shared<TerminalBar>(stderr));
  } else {
    progress.add_sink(std::make_shared<LogLines>());
  }
  Context context{.clock = clock,
                  .progress = progress,
                  .out = out,
                  .stop = stop,
                  .temp_directory = process.temp_directory,
                  .threads = process.cpus,
                  .kube_environment = process.kube_environment,
                  .cuda_plugin = process.cuda_plugin};
  const Outcome outcome = guarded(options, context);
  out.flush();
  if (!outcome) {
    report(outcome.error().error, options.termination_log);
    return outcome.error().exit;
  }
  if (!out) {
    report({Code::kUnavailable, "standard output cannot be written", 0}, options.termination_log);
    return kExitTryAgain;
  }
  return kExitOk;
}

}  // namespace eldr::calibrator
