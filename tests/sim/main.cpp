// SPDX-License-Identifier: Apache-2.0
// eldr-sim-worker: one simulated vLLM worker.
#include <iostream>
#include <random>

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/exit_code.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "tests/sim/host.h"
#include "tests/sim/options.h"

namespace {

using namespace eldr;

Result<std::unique_ptr<sim::ExpertModel>> make_model(const sim::ProgramOptions& options) {
  if (options.trace.empty()) {
    return sim::make_profile_model(options.shape, options.seed);
  }
  auto trace = signature::load_trace(options.trace);
  if (!trace) {
    return failure(trace.error().with_context("--trace " + options.trace));
  }
  return sim::make_trace_model(std::move(*trace));
}

// Blocks the signals in every thread to come, so that main can wait for them.
sigset_t block_end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

// A second signal ends the wait.
void wait_lame_duck(const sigset_t& set, std::chrono::milliseconds time) {
  const timespec left{time.count() / 1000, time.count() % 1000 * 1'000'000};
  sigtimedwait(&set, nullptr, &left);
}

int run(sim::ProgramOptions options) {
  const sigset_t end_signals = block_end_signals();
  const auto model = make_model(options);
  if (!model) {
    spdlog::error("{}", model.error().message);
    return exit_code_for(model.error());
  }
  options.worker.instance = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  sim::WorkerHooks hooks;
  hooks.die = [] {
    spdlog::warn("fault: dies now");
    _exit(137);
  };
  const RealClock clock;
  const auto host = sim::Host::start(options.server, options.worker, **model, clock, hooks);
  if (!host) {
    spdlog::error("{}", host.error().message);
    return exit_code_for(host.error());
  }
  const auto& shape = (*model)->shape();
  spdlog::info("eldr-sim-worker {}: {} of {} on port {}, {} layers, {} experts, top {}", kVersion,
               sim::name_of(options.worker.role), options.worker.model, (*host)->port(), shape.layers.size(),
               shape.experts, shape.top_k);

  int signal = 0;
  sigwait(&end_signals, &signal);
  spdlog::info("signal {}: draining", signal);
  wait_lame_duck(end_signals, options.lame_duck);
  (*host)->stop(options.drain);
  spdlog::info("drained");
  return kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  sim::CommandLine line = sim::parse_command_line(argc, argv);
  if (!line.options) {
    (line.code == kExitOk ? std::cout : std::cerr) << line.text;
    return line.code;
  }
  if (const Status status =
          init_logging("eldr-sim-worker", line.options->log_format, line.options->log_level);
      !status) {
    std::cerr << status.error().message << "\n";
    return kExitUsage;
  }
  return run(std::move(*line.options));
}
