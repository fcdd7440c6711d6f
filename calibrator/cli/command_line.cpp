// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cli/command_line.h"

#include <iostream>

#include <CLI/CLI.hpp>

#include "calibrator/number_ranges.h"
#include "lib/base/command_line.h"
#include "lib/base/exit_code.h"
#include "lib/base/version.h"

namespace eldr::calibrator {
namespace {

constexpr std::int32_t kMostClusters = 4096;

void add_dataset_options(CLI::App& app, DatasetOptions& options, bool required) {
  auto* source = app.add_option_group("data set", "Prompts as JSON lines; exactly one source");
  source->add_option(
      "--dataset", options.file,
      "File of JSON lines, or - for standard input: {\"prompt\": …}, {\"messages\": […]} or OpenAI "
      "request bodies, each with an optional \"label\"");
  source->add_option("--dataset-url", options.url, "The same from an http or https URL");
  source->require_option(required ? 1 : 0, 1);
  app.add_option("--dataset-sha256", options.sha256, "What the data set's SHA-256 must be, 64 hex digits");
  app.add_option("--sample-size", options.sample_size, "Prompts to draw, by label where there are labels")
      ->check(CLI::Range(2, 1000000))
      ->capture_default_str();
}

void add_collect_options(CLI::App& app, CollectOptions& options, bool all_required) {
  auto* model = app.add_option("--model", options.model, "Model name as served by the engine");
  auto* engine = app.add_option("--engine", options.engine, "Base URL of the engine, http://host:port");
  if (all_required) {
    model->required();
    engine->required();
  }
  app.add_option("--model-revision", options.model_revision,
                 "Revision of the model, kept with the trace's identity");
  add_dataset_options(app, options.dataset, all_required);
  app.add_option("--decode-tokens", options.decode_tokens, "Tokens to generate for each prompt")
      ->check(CLI::Range(2, 32768))
      ->capture_default_str();
  app.add_option("--concurrency", options.concurrency, "Most requests in flight at the engine")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--retries", options.retries, "Tries again for a request that failed for a passing reason")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--engine-wait", options.engine_wait_seconds, "Seconds to wait for the engine to be healthy")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--request-timeout", options.request_timeout_seconds, "Seconds that one request may take")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app.add_option("--experts", options.experts,
                 "Logical experts a layer; default: the smallest usual number above the ids seen")
      ->check(CLI::Range(2, 4096));
  app.add_option("--top-k", options.top_k,
                 "Experts a token and layer; needed only for engines that do not send the shape (SGLang)")
      ->check(CLI::Range(1, 64));
  app.add_option("--layer-numbers", options.layer_numbers,
                 "Model layer numbers of the rows the engine sends, like 1-26 or 0,2,4; default 0, 1, 2 …");
  app.add_flag("--keep-decode-experts", options.keep_decode_experts,
               "Keep the experts of each decode token in the trace, for simulation");
}

/// Numbers and ranges of clusters. CLI11 prints what a transform throws as the option's error.
std::vector<std::uint32_t> parse_clusters(const std::string& text, std::size_t most) {
  const auto numbers = parse_number_ranges(text, kMostClusters, most);
  if (!numbers || numbers->front() == 0) {
    throw CLI::ValidationError(
        "--clusters", "\"" + text.substr(0, 100) + "\": must be " +
                          (most == 1 ? "a number" : "ascending numbers and ranges like 4-16 or 8,16,32,") +
                          " from 1 to " + std::to_string(kMostClusters));
  }
  return {numbers->begin(), numbers->end()};
}

void add_clusters_option(CLI::App& app, std::vector<std::uint32_t>& clusters, std::size_t most) {
  app.add_option_function<std::string>(
         "--clusters", [&clusters, most](const std::string& text) { clusters = parse_clusters(text, most); },
         most == 1
             ? "Clusters, one for each decode worker"
             : "Clusters, one for each decode worker; ranges and lists like 4-16 or 8,16,32 make a file "
               "for each number")
      ->required()
      ->type_name(most == 1 ? "UINT" : "RANGES");
}

void add_backend_options(CLI::App& app, BackendOptions& options) {
  app.add_option("--backend", options.backend,
                 "Where to compute; auto takes a GPU where there is one, and says why where there is none")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_option(
      "--cuda-library", options.cuda_library,
      "The CUDA backend, libeldr_calibrate_cuda.so; default: beside the program or in ../lib/eldr");
  app.add_option("--cuda-memory-limit", options.cuda_memory_limit,
                 "Most GPU memory to take, in MiB; 0: four fifths of what is free")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
}

void add_fit_options(CLI::App& app, FitCommandOptions& options) {
  app.add_option("--match", options.match,
                 "Centroid file of an earlier fit: clusters keep the numbers that they have there");
  app.add_option("--ep-ranks", options.ep_ranks,
                 "Expert-parallel ranks of a decode worker; above 1 a placement is made")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--ep-batch", options.ep_batch, "Tokens of a decode step that the placement is made for")
      ->check(CLI::Range(1.0, 65536.0))
      ->capture_default_str();
  app.add_option("--placement-out", options.placement_out,
                 "Also write the placement of the experts of all layers to this JSON file (with --ep-ranks)");
  add_backend_options(app, options.backend);
  app.add_option("--transform", options.transform,
                 "What is done to counts; auto takes the best by rho on held-out requests")
      ->check(CLI::IsMember({"count-idf", "count", "sqrt-count", "binary", "auto"}))
      ->capture_default_str();
  app.add_option("--max-layers", options.max_layers, "Most layers to keep; 0: as many as help")
      ->check(CLI::Range(0, 512))
      ->capture_default_str();
  app.add_option("--restarts", options.restarts, "Starts of k-means, of which the best is taken")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads; 0: all CPUs. The result does not depend on it")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--no-held-out", options.no_held_out, "Do not measure rho on held-out requests (faster)");
  app.add_option("--tau", options.tau, "Width of the locality band noted in the file")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  app.add_option("--report", options.report, "Also write an HTML page that shows the fit to this file");
  app.add_option("--fit-hash", options.fit_hash, "Identity of the inputs, noted in the file");
}

void add_run_options(CLI::App& app, RunOptions& options) {
  app.add_option("--trace", options.trace, "A recorded trace: nothing is collected, no engine is needed")
      ->excludes("--engine");
  app.add_option("--cache-dir", options.cache_directory, "Folder that keeps collected traces");
  app.add_option("--collect-hash", options.collect_hash,
                 "Identity of what is collected: the cached trace's name");
  app.add_flag("--from-cache", options.from_cache,
               "Never collect: fail with exit code 66 when the cache lacks the trace");
  app.add_option("--publish-configmap", options.publish.config_map, "ConfigMap that receives the result");
  app.add_option("--publish-namespace", options.publish.ns, "Its namespace; default: the pod's own");
  app.add_option("--kubeconfig", options.publish.kubeconfig,
                 "Kubeconfig file; default: as kubectl, or the pod's");
  app.add_option("--out", options.out, "Also write the centroids to this file");
}

int exit_code_of(const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) {
    return kExitNoInput;
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
    return kExitConfig;
  }
  return kExitUsage;
}

}  // namespace

std::optional<int> parse_command_line(int argc, const char* const* argv, Options& options,
                                      std::ostream& out) {
  CLI::App app("Learns one centroid of expert use for each decode worker of a mixture-of-experts model.",
               "eldr-calibrate");
  app.set_version_flag("--version", std::string("eldr-calibrate ") + kVersion);
  app.set_config("--config", "", "INI or TOML file with options; the command line wins");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--log-format", options.log_format, "Logs on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--log-level", options.log_level, "Least severe level that is logged")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.add_option("--termination-log", options.termination_log,
                 "File that gets the reason of a failure; ignored where it cannot be written")
      ->capture_default_str();

  auto* collect = app.add_subcommand("collect", "Run prompts through an engine and record their expert use");
  add_collect_options(*collect, options.collect, true);
  collect->add_option("--seed", options.collect.seed, "Seed of the sample")->capture_default_str();
  collect->add_option("--out", options.out, "Trace file to write")->required();
  collect->add_flag("--json", options.json, "Print what was collected as JSON");

  auto* fit = app.add_subcommand("fit", "Choose layers and clusters from a trace");
  fit->add_option("--trace", options.trace, "Trace file")->required();
  fit->add_option("--out", options.out,
                  "Centroid file to write; {clusters} in it stands for the number of clusters")
      ->required();
  add_clusters_option(*fit, options.fit.clusters, kMostClusters);
  add_fit_options(*fit, options.fit);
  fit->add_option("--seed", options.fit.seed, "Seed of clustering and held-out halves")
      ->capture_default_str();
  fit->add_flag("--json", options.json, "Print the report as JSON");

  auto* run = app.add_subcommand("run", "Collect (or take a trace), fit, and publish to a ConfigMap");
  add_collect_options(*run, options.run.collect, false);
  add_clusters_option(*run, options.run.fit.clusters, 1);
  add_fit_options(*run, options.run.fit);
  add_run_options(*run, options.run);
  run->add_option("--seed", options.run.fit.seed, "Seed of sample, clustering and held-out halves")
      ->capture_default_str();
  run->add_flag("--json", options.json, "Print the report as JSON");

  auto* report = app.add_subcommand("report", "Show a fit as an HTML page, its numbers as text");
  report->add_option("--trace", options.trace, "Trace that the centroids were fitted on")->required();
  report->add_option("--centroids", options.centroids, "Centroid file")->required();
  report->add_option("--out", options.out, "HTML page to write")->required();
  report->add_flag("--json", options.json, "Print the numbers as JSON");

  auto* inspect = app.add_subcommand("inspect", "Say what a trace or centroid file holds");
  inspect->add_option("file", options.file, "The file")->required();
  inspect->add_option(
      "--centroids", options.centroids,
      "With a trace: say what the centroids that were fitted on it make of it, the report's numbers");
  inspect->add_flag("--json", options.json, "As JSON");

  try {
    app.parse(words_last_first(argc, argv));
  } catch (const CLI::Success& success) {
    app.exit(success, out, std::cerr);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    app.exit(error, out, std::cerr);
    return exit_code_of(error);
  }
  options.command = app.get_subcommands().front()->get_name();
  options.run.collect.seed = options.run.fit.seed;
  return std::nullopt;
}

}  // namespace eldr::calibrator
