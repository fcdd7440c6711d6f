// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "calibrator/cli/commands.h"
#include "calibrator/report/views.h"
#include "lib/base/digest.h"
#include "lib/signature/safetensors.h"

namespace eldr::calibrator {
namespace {

ReportSource source_of(const char* kind, const std::string& path, std::span<const std::byte> bytes) {
  return {kind, std::filesystem::path(path).filename().string(), sha256_hex(as_text(bytes))};
}

/// A file once in memory: what it says and which bytes said it come from one read.
template <class Content>
struct Loaded {
  Content content;
  ReportSource source;
};

template <class Content, class Parse>
tl::expected<Loaded<Content>, Failure> load(const char* kind, const std::string& path, std::size_t limit,
                                            Parse parse) {
  const auto bytes = signature::read_file(path, limit);
  if (!bytes) {
    return fail(bytes.error().with_context(kind));
  }
  Result<Content> content = parse(*bytes);
  if (!content) {
    return fail(content.error().with_context(std::string(kind) + " " + path));
  }
  return Loaded<Content>{std::move(*content), source_of(kind, path, *bytes)};
}

Status write_page(const std::string& path, const Analysis& analysis,
                  const std::vector<ReportSource>& sources) {
  const std::string page = report_page(analysis, sources);
  if (const Status written = signature::write_file_atomically(path, as_bytes(page)); !written) {
    return failure(written.error().with_context("report"));
  }
  spdlog::info("report {}: {} KiB", path, (page.size() + 1023) / 1024);
  return {};
}

struct LoadedFit {
  Analysis analysis;
  std::vector<ReportSource> sources;
};

tl::expected<LoadedFit, Failure> load_fit(const std::string& trace_path, const std::string& centroid_path) {
  const auto trace =
      load<signature::Trace>("trace", trace_path, signature::kMaxTraceFile, signature::parse_trace);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  const auto centroids = load<signature::CentroidSet>("centroids", centroid_path, signature::kMaxCentroidFile,
                                                      signature::parse_centroids);
  if (!centroids) {
    return tl::unexpected(centroids.error());
  }
  auto analysis = analyse(trace->content, centroids->content);
  if (!analysis) {
    return fail(analysis.error());
  }
  return LoadedFit{std::move(*analysis), {trace->source, centroids->source}};
}

void print(const Analysis& analysis, bool as_json, std::ostream& out) {
  out << (as_json ? to_json(analysis).dump(2) + "\n" : text_of(analysis));
}

}  // namespace

Result<std::optional<ReportSource>> trace_source(const std::string& report, const std::string& trace_path) {
  if (report.empty() || trace_path.empty()) {
    return std::nullopt;
  }
  const auto bytes = signature::read_file(trace_path, signature::kMaxTraceFile);
  if (!bytes) {
    return failure(bytes.error());
  }
  return source_of("trace", trace_path, *bytes);
}

Status write_report(const std::string& path, const signature::Trace& trace,
                    const std::optional<ReportSource>& trace_source, std::span<const std::byte> centroids,
                    const std::string& centroid_path) {
  if (path.empty()) {
    return {};
  }
  // What the file holds, not what the fit had: a report made later from the two files shows the same.
  const auto set = signature::parse_centroids(centroids);
  if (!set) {
    return failure(set.error());
  }
  const auto analysis = analyse(trace, *set);
  if (!analysis) {
    return failure(analysis.error());
  }
  std::vector<ReportSource> sources;
  if (trace_source) {
    sources.push_back(*trace_source);
  }
  sources.push_back(source_of("centroids", centroid_path, centroids));
  return write_page(path, *analysis, sources);
}

Outcome report_command(const Options& options, Context& context) {
  const auto fit = load_fit(options.trace, options.centroids);
  if (!fit) {
    return tl::unexpected(fit.error());
  }
  if (const Status written = write_page(options.out, fit->analysis, fit->sources); !written) {
    return fail(written.error());
  }
  print(fit->analysis, options.json, context.out);
  return {};
}

Outcome inspect_fit(const Options& options, Context& context) {
  const auto fit = load_fit(options.file, options.centroids);
  if (!fit) {
    return tl::unexpected(fit.error());
  }
  print(fit->analysis, options.json, context.out);
  return {};
}

}  // namespace eldr::calibrator
