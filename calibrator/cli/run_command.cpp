// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "calibrator/cli/commands.h"
#include "calibrator/publish/annotation_progress.h"
#include "calibrator/publish/publisher.h"
#include "calibrator/report/summary.h"
#include "lib/kube/connect.h"
#include "lib/signature/safetensors.h"

namespace eldr::calibrator {
namespace {

/// A connection to the API server, and progress and result over it. Nothing without --publish-configmap.
class Destination {
 public:
  static tl::expected<std::unique_ptr<Destination>, Failure> open(const PublishOptions& options,
                                                                  Context& context) {
    auto destination = std::make_unique<Destination>(context.progress);
    if (options.config_map.empty()) {
      return destination;
    }
    auto connection =
        kube::connect(options.kubeconfig, context.kube_environment, "calibrator", context.clock, nullptr);
    if (!connection) {
      return fail(connection.error(), kExitConfig);
    }
    destination->connection_ = std::move(*connection);
    const std::string ns = options.ns.empty() ? destination->connection_.default_namespace : options.ns;
    destination->publisher_ = std::make_unique<Publisher>(
        *destination->connection_.client, kube::ObjectKey{ns, options.config_map}, destination->sleeper_);
    if (const Status there = destination->publisher_->check(context.stop); !there) {
      return fail(there.error(),
                  there.error().retryable() ? kExitUnavailable : exit_code_for_check(there.error()));
    }
    destination->annotations_ = std::make_shared<AnnotationProgress>(*destination->publisher_);
    context.progress.add_sink(destination->annotations_);
    return destination;
  }

  explicit Destination(Progress& progress) : progress_(progress) {}
  ~Destination() { end_annotations(); }
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  Outcome publish(const signature::CentroidSet& set, std::span<const std::byte> bytes, Context& context) {
    if (!publisher_) {
      return {};
    }
    context.progress.update(Stage::kPublishing, 0, 1);
    end_annotations();  // the operator seals the ConfigMap as soon as the result is in it
    if (const Status published = publisher_->publish(bytes, summary_of(set), context.stop); !published) {
      return fail(published.error());
    }
    context.progress.update(Stage::kPublishing, 1, 1);
    return {};
  }

 private:
  static ExitCode exit_code_for_check(const Error& error) {
    return error.code == Code::kCancelled ? kExitTryAgain : kExitConfig;
  }
  void end_annotations() {
    if (annotations_) {
      progress_.remove_sink(annotations_);
      annotations_.reset();  // joins its thread
    }
  }

  Progress& progress_;
  RealSleeper sleeper_;
  kube::Connection connection_;
  std::unique_ptr<Publisher> publisher_;
  std::shared_ptr<AnnotationProgress> annotations_;
};

Status check_options(const RunOptions& options) {
  const bool recorded = !options.trace.empty();
  const bool cached = !options.cache_directory.empty();
  const auto need = [](bool condition, const char* message) {
    return condition ? Status() : failure(Code::kInvalid, message);
  };
  for (const Status& status :
       {need(!options.publish.config_map.empty() || !options.out.empty(),
             "run needs --publish-configmap, --out or both"),
        need(cached == !options.collect_hash.empty(), "--cache-dir and --collect-hash go together"),
        need(options.collect_hash.find_first_not_of("0123456789abcdef") == std::string::npos,
             "--collect-hash must be lower-case hex digits"),
        need(!options.from_cache || cached, "--from-cache needs --cache-dir and --collect-hash"),
        need(recorded || options.from_cache || !options.collect.engine.empty(),
             "run needs --engine with --dataset or --dataset-url, or --trace, or --from-cache"),
        need(recorded || options.from_cache || !options.collect.model.empty(), "--engine needs --model"),
        need(recorded || options.from_cache || !options.collect.dataset.file.empty() ||
                 !options.collect.dataset.url.empty(),
             "--engine needs --dataset or --dataset-url")}) {
    if (!status) {
      return status;
    }
  }
  return {};
}

/// The cached trace, when it is there and good. A broken one is as good as none: it is collected again.
std::optional<signature::Trace> cached_trace(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  auto trace = signature::load_trace(path);
  if (!trace) {
    spdlog::warn("cached trace {}: {}; not used", path, trace.error().message);
    return std::nullopt;
  }
  spdlog::info("cached trace {}: {} requests", path, trace->requests());
  return std::move(*trace);
}

tl::expected<signature::Trace, Failure> obtain_trace(const RunOptions& options, Context& context) {
  if (!options.trace.empty()) {
    return load_trace_file(options.trace);
  }
  if (options.cache_directory.empty()) {
    return collect_trace(options.collect, "", context);
  }
  const std::string path = fmt::format("{}/{}.safetensors", options.cache_directory, options.collect_hash);
  if (auto trace = cached_trace(path)) {
    return std::move(*trace);
  }
  if (options.from_cache) {
    return fail({Code::kNotFound, fmt::format("cached trace {} is not there or not readable", path), 0});
  }
  const std::string resume_path = fmt::format("{}/{}.partial", options.cache_directory, options.collect_hash);
  auto trace = collect_trace(options.collect, resume_path, context);
  if (trace) {
    // A cache that cannot be written costs the next fit its speed, not this one its result.
    if (const Status saved = signature::save_trace(path, *trace); !saved) {
      spdlog::warn("cached trace {}: {}; not kept", path, saved.error().message);
    }
    std::remove(resume_path.c_str());
  }
  return trace;
}

/// A model that the trace was not recorded from would get signatures of other experts.
Outcome check_model(const signature::Trace& trace, const std::string& model) {
  if (!model.empty() && trace.model != model) {
    return fail({Code::kInvalid,
                 fmt::format("trace: was recorded from model \"{}\"; --model is \"{}\"", trace.model, model),
                 0});
  }
  return {};
}

}  // namespace

Outcome run_command(const Options& options, Context& context) {
  const RunOptions& run = options.run;
  if (const Status good = check_options(run); !good) {
    return fail(good.error(), kExitUsage);
  }
  const auto destination = Destination::open(run.publish, context);
  if (!destination) {
    return tl::unexpected(destination.error());
  }
  const auto trace = obtain_trace(run, context);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  if (auto same = check_model(*trace, run.collect.model); !same) {
    return same;
  }
  std::optional<FitResult> result;
  if (auto fitted = fit_trace(*trace, run.fit, context,
                              [&](FitResult only) -> Status {
                                result = std::move(only);
                                return {};
                              });
      !fitted) {
    return fitted;
  }
  const auto bytes = signature::serialize_centroids(result->set);
  if (!bytes) {
    return fail(bytes.error(), kExitConfig);
  }
  if (!run.out.empty()) {
    if (const Status written = signature::write_file_atomically(run.out, *bytes); !written) {
      return fail(written.error().with_context("--out"));
    }
  }
  if (auto published = (*destination)->publish(result->set, *bytes, context); !published) {
    return published;
  }
  const auto source = trace_source(run.fit.report, run.trace);
  if (!source) {
    return fail(source.error());
  }
  if (const Status shown = write_report(run.fit.report, *trace, *source, *bytes, run.out); !shown) {
    return fail(shown.error());
  }
  context.out << (options.json ? report_of(*result).dump() + "\n" : text_of(*result));
  return {};
}

}  // namespace eldr::calibrator
