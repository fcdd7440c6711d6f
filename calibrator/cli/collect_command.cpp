// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "calibrator/cli/commands.h"
#include "calibrator/collect/collector.h"
#include "calibrator/collect/curl_transport.h"
#include "calibrator/collect/trace_builder.h"
#include "calibrator/dataset/sampler.h"
#include "calibrator/dataset/source.h"
#include "calibrator/report/summary.h"
#include "lib/base/digest.h"

namespace eldr::calibrator {
namespace {

struct DrawnSample {
  Sample sample;
  std::string dataset_sha256;
};

Status check_sha256(const std::string& text) {
  const bool hex = text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!text.empty() && (text.size() != 64 || !hex)) {
    return failure(Code::kInvalid,
                   fmt::format("--dataset-sha256 \"{}\": must be 64 hex digits", text.substr(0, 80)));
  }
  return {};
}

tl::expected<DrawnSample, Failure> draw(const CollectOptions& options, Context& context) {
  const DatasetOptions& wanted = options.dataset;
  if (const Status good = check_sha256(wanted.sha256); !good) {
    return fail(good.error(), kExitUsage);
  }
  DatasetSource source;
  source.file = wanted.file;
  source.url = wanted.url;
  source.expected_sha256 = wanted.sha256;
  source.temp_directory = context.temp_directory;
  const auto dataset = obtain_dataset(source, make_curl_download(), context.stop);
  if (!dataset) {
    return fail(dataset.error());
  }
  auto sample = draw_sample(dataset->path(), wanted.sample_size, options.seed, context.stop);
  if (!sample) {
    return fail(sample.error());
  }
  if (sample->bad_lines > 0) {
    spdlog::warn("data set: {} of {} lines are bad and left out; the first, line {}: {}", sample->bad_lines,
                 sample->lines, sample->first_bad.front().number, sample->first_bad.front().reason);
  }
  if (sample->prompts.size() < wanted.sample_size) {
    spdlog::warn("data set: has {} prompts; {} were wanted", sample->prompts.size(), wanted.sample_size);
  }
  return DrawnSample{std::move(*sample), dataset->sha256()};
}

/// Names everything that the answers depend on.
std::string identity_of(const CollectOptions& options, const std::string& dataset_sha256) {
  const nlohmann::json inputs = {{"model", options.model},
                                 {"revision", options.model_revision},
                                 {"dataset", dataset_sha256},
                                 {"sample", options.dataset.sample_size},
                                 {"seed", options.seed},
                                 {"decode", options.decode_tokens},
                                 {"tokens", options.keep_decode_experts},
                                 {"topK", options.top_k}};
  return sha256_hex(inputs.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

tl::expected<signature::Trace, Failure> collect_trace(const CollectOptions& options,
                                                      const std::string& resume_path, Context& context) {
  TraceShape shape{.model = options.model, .experts = options.experts, .layer_numbers = {}};
  if (!options.layer_numbers.empty()) {
    auto numbers = parse_layer_numbers(options.layer_numbers);
    if (!numbers) {
      return fail(numbers.error(), kExitUsage);
    }
    shape.layer_numbers = std::move(*numbers);
  }
  auto drawn = draw(options, context);  // before the engine: a bad data set needs no GPU
  if (!drawn) {
    return tl::unexpected(drawn.error());
  }
  std::unique_ptr<ResumeFile> resume;
  if (!resume_path.empty()) {
    auto opened = ResumeFile::open(resume_path, identity_of(options, drawn->dataset_sha256),
                                   drawn->sample.prompts.size());
    if (!opened) {
      return fail(opened.error());
    }
    resume = std::move(*opened);
  }
  const auto transport = make_curl_transport();
  const EngineClient engine(*transport,
                            {.base_url = options.engine,
                             .model = options.model,
                             .decode_tokens = options.decode_tokens,
                             .top_k = options.top_k,
                             .keep_decode_experts = options.keep_decode_experts,
                             .request_timeout = std::chrono::seconds(options.request_timeout_seconds)});
  RealSleeper sleeper;
  Collector collector(engine,
                      {.concurrency = options.concurrency,
                       .retries = options.retries,
                       .engine_wait = std::chrono::seconds(options.engine_wait_seconds),
                       .seed = options.seed},
                      context.progress, context.clock, sleeper);
  if (auto ready = collector.wait_for_engine(context.stop); !ready) {
    return tl::unexpected(ready.error());
  }
  if (auto served = engine.check_model(context.stop); !served) {
    return tl::unexpected(served.error());
  }
  const auto counts = collector.collect(drawn->sample.prompts, resume.get(), context.stop);
  if (!counts) {
    return tl::unexpected(counts.error());
  }
  std::vector<std::string> labels;
  for (const Prompt& prompt : drawn->sample.prompts) {
    labels.push_back(prompt.label);
  }
  auto trace = build_trace(shape, *counts, labels);
  if (!trace) {
    return fail(trace.error(), kExitConfig);
  }
  spdlog::info("collected {} requests: {} layers, {} experts, top {}", trace->requests(),
               trace->layers.size(), trace->experts, trace->top_k);
  return std::move(*trace);
}

Outcome collect_command(const Options& options, Context& context) {
  const std::string resume_path = options.out + ".partial";
  const auto trace = collect_trace(options.collect, resume_path, context);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  if (const Status saved = signature::save_trace(options.out, *trace); !saved) {
    return fail(saved.error().with_context("--out"));
  }
  std::remove(resume_path.c_str());
  context.out << (options.json ? describe(*trace).dump() + "\n" : text_of(*trace));
  return {};
}

}  // namespace eldr::calibrator
