// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "calibrator/cli/commands.h"
#include "calibrator/report/placement_file.h"
#include "calibrator/report/summary.h"
#include "lib/signature/safetensors.h"

namespace eldr::calibrator {
namespace {

Result<std::unique_ptr<FitBackend>> choose_backend(const std::string& name, unsigned threads) {
  if (name == "cuda") {
    return failure(Code::kInvalid, "--backend cuda: this build has no CUDA backend; use cpu or auto");
  }
  if (name != "cpu" && name != "auto") {
    return failure(Code::kInvalid, "--backend \"" + name + "\": must be auto, cpu or cuda");
  }
  if (name == "auto") {
    spdlog::debug("no CUDA backend in this build: fitting on the CPU");
  }
  return make_cpu_backend(threads);
}

Result<FitOptions> to_fit_options(const FitCommandOptions& options, unsigned cpus) {
  FitOptions fit;
  fit.clusters = options.clusters;
  fit.ep_ranks = options.ep_ranks;
  fit.ep_batch = options.ep_batch;
  fit.seed = options.seed;
  fit.max_layers = options.max_layers;
  fit.held_out = !options.no_held_out;
  fit.restarts = options.restarts;
  fit.threads = options.threads > 0 ? options.threads : cpus;
  fit.tau = options.tau;
  fit.fit_hash = options.fit_hash;
  fit.transform.reset();
  if (options.transform != "auto") {
    const auto transform = signature::transform_from(options.transform);
    if (!transform) {
      return failure(transform.error().with_context("--transform"));
    }
    fit.transform = *transform;
  }
  return fit;
}

}  // namespace

tl::expected<signature::Trace, Failure> load_trace_file(const std::string& path) {
  auto trace = signature::load_trace(path);
  if (!trace) {
    return fail(trace.error().with_context("trace " + path));
  }
  return std::move(*trace);
}

tl::expected<FitResult, Failure> fit_trace(const signature::Trace& trace, const FitCommandOptions& options,
                                           Context& context) {
  const auto fit = to_fit_options(options, context.threads);
  if (!fit) {
    return fail(fit.error(), kExitUsage);
  }
  if (!options.placement_out.empty() && options.ep_ranks == 1) {
    return fail({Code::kInvalid, "--placement-out needs --ep-ranks above 1", 0}, kExitUsage);
  }
  auto backend = choose_backend(options.backend, fit->threads);
  if (!backend) {
    return fail(backend.error(), kExitConfig);
  }
  auto result =
      fit_centroids(trace, *fit, **backend, context.clock, [&](std::size_t done, std::size_t total) {
        context.progress.update(Stage::kFitting, done, total);
        return !context.stop.stop_requested();
      });
  if (!result) {
    return fail(result.error());
  }
  for (const std::string& warning : result->warnings) {
    spdlog::warn("{}", warning);
  }
  if (!options.placement_out.empty()) {
    if (const Status written = write_placement(options.placement_out, *result, trace); !written) {
      return fail(written.error().with_context("--placement-out"));
    }
  }
  return std::move(*result);
}

Outcome fit_command(const Options& options, Context& context) {
  const auto trace = load_trace_file(options.trace);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  const auto result = fit_trace(*trace, options.fit, context);
  if (!result) {
    return tl::unexpected(result.error());
  }
  const auto bytes = signature::serialize_centroids(result->set);
  if (!bytes) {
    return fail(bytes.error());
  }
  if (const Status written = signature::write_file_atomically(options.out, *bytes); !written) {
    return fail(written.error().with_context("--out"));
  }
  context.out << (options.json ? report_of(*result).dump() + "\n" : text_of(*result));
  return {};
}

}  // namespace eldr::calibrator
