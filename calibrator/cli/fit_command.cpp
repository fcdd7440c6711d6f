// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <set>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "calibrator/cli/choose_backend.h"
#include "calibrator/cli/commands.h"
#include "calibrator/cli/output_path.h"
#include "calibrator/report/placement_file.h"
#include "calibrator/report/summary.h"
#include "lib/signature/safetensors.h"

namespace eldr::calibrator {
namespace {

Result<FitOptions> to_fit_options(const FitCommandOptions& options, unsigned cpus) {
  FitOptions fit;
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

Status check_outputs(const FitCommandOptions& options) {
  if (const Status named = check_name("--report", options.report, options.clusters.size()); !named) {
    return named;
  }
  if (!options.placement_out.empty() && options.ep_ranks == 1) {
    return failure(Code::kInvalid, "--placement-out needs --ep-ranks above 1");
  }
  return check_name("--placement-out", options.placement_out, options.clusters.size());
}

/// The fit whose numbers are kept; nullopt where none is named.
Result<std::optional<signature::CentroidSet>> load_previous(const std::string& path,
                                                            const signature::Trace& trace) {
  if (path.empty()) {
    return std::nullopt;
  }
  auto set = signature::load_centroids(path);
  if (!set) {
    return failure(set.error().with_context("--match"));
  }
  if (set->model != trace.model) {
    return failure(Code::kInvalid, "--match " + path + ": was fitted for model \"" + set->model +
                                       "\"; the trace is of \"" + trace.model + "\"");
  }
  return std::move(*set);
}

Status write_plans(const FitCommandOptions& options, const FitResult& result, const signature::Trace& trace) {
  if (options.placement_out.empty()) {
    return {};
  }
  const Status written =
      write_placement(path_for(options.placement_out, result.set.clusters()), result, trace);
  return written ? written : failure(written.error().with_context("--placement-out"));
}

/// Logs each warning once, however many fits repeat it.
class WarningLog {
 public:
  void add(const FitResult& result) {
    for (const std::string& warning : result.warnings) {
      if (logged_.insert(warning).second) {
        spdlog::warn("{}", warning);
      }
    }
  }

 private:
  std::set<std::string> logged_;
};

}  // namespace

tl::expected<signature::Trace, Failure> load_trace_file(const std::string& path) {
  auto trace = signature::load_trace(path);
  if (!trace) {
    return fail(trace.error().with_context("--trace"));
  }
  return std::move(*trace);
}

Outcome fit_trace(const signature::Trace& trace, const FitCommandOptions& options, Context& context,
                  const std::function<Status(FitResult)>& take) {
  auto fit = to_fit_options(options, context.threads);
  if (!fit) {
    return fail(fit.error(), kExitUsage);
  }
  if (const Status good = check_outputs(options); !good) {
    return fail(good.error(), kExitUsage);
  }
  const auto previous = load_previous(options.match, trace);
  if (!previous) {
    return fail(previous.error());
  }
  fit->match = *previous ? &**previous : nullptr;
  auto backend = choose_backend(options.backend, context.cuda_plugin,
                                {trace.requests(), trace.layers.size(), trace.experts}, fit->threads);
  if (!backend) {
    return fail(backend.error(), kExitConfig);
  }
  const auto progress = [&](std::size_t done, std::size_t total) {
    context.progress.update(Stage::kFitting, done, total);
    return !context.stop.stop_requested();
  };
  WarningLog warnings;
  const Status done = fit_each(trace, *fit, options.clusters, **backend, context.clock, progress,
                               [&](FitResult result) -> Status {
                                 warnings.add(result);
                                 if (const Status written = write_plans(options, result, trace); !written) {
                                   return written;
                                 }
                                 return take(std::move(result));
                               });
  return done ? Outcome() : fail(done.error());
}

Outcome fit_command(const Options& options, Context& context) {
  if (const Status named = check_name("--out", options.out, options.fit.clusters.size()); !named) {
    return fail(named.error(), kExitUsage);
  }
  const bool several = options.fit.clusters.size() > 1;
  const auto trace = load_trace_file(options.trace);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  const auto source = trace_source(options.fit.report, options.trace);
  if (!source) {
    return fail(source.error());
  }
  nlohmann::json reports = nlohmann::json::array();
  std::string text = several ? comparison_header() : "";
  auto fitted = fit_trace(*trace, options.fit, context, [&](const FitResult& result) -> Status {
    const std::string path = path_for(options.out, result.set.clusters());
    const auto bytes = signature::serialize_centroids(result.set);
    if (!bytes) {
      return failure(bytes.error());
    }
    if (const Status written = signature::write_file_atomically(path, *bytes); !written) {
      return failure(written.error().with_context("--out"));
    }
    if (const Status shown =
            write_report(path_for(options.fit.report, result.set.clusters()), *trace, *source, *bytes, path);
        !shown) {
      return shown;
    }
    reports.push_back(report_of(result));
    text += several ? comparison_row(result, path) : text_of(result);
    return {};
  });
  if (!fitted) {
    return fitted;
  }
  context.out << (options.json ? (several ? reports : reports.front()).dump() + "\n" : text);
  return {};
}

}  // namespace eldr::calibrator
