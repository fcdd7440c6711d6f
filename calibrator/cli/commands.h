// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each checks its options, does its work and leaves no part of a file behind.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "calibrator/cli/context.h"
#include "calibrator/cli/options.h"
#include "calibrator/fit/fit.h"
#include "calibrator/report/page.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// Data set and engine -> trace file.
Outcome collect_command(const Options& options, Context& context);
/// Trace file -> centroid file.
Outcome fit_command(const Options& options, Context& context);
/// Trace, from wherever -> ConfigMap or file.
Outcome run_command(const Options& options, Context& context);
/// Trace file and centroid file -> HTML page, numbers.
Outcome report_command(const Options& options, Context& context);
/// What a trace or centroid file holds, or with both what the report shows.
Outcome inspect_command(const Options& options, Context& context);

// Shared between them.

tl::expected<signature::Trace, Failure> load_trace_file(const std::string& path);
tl::expected<signature::Trace, Failure> collect_trace(const CollectOptions& options,
                                                      const std::string& resume_file, Context& context);
/// Fits with progress for each number of clusters in the options, logs the warnings, writes the placement
/// where it is asked for, and hands each result to `take`.
Outcome fit_trace(const signature::Trace& trace, const FitCommandOptions& options, Context& context,
                  const std::function<Status(FitResult)>& take);
/// How the page names the trace file: reads it whole for its digest, once for all pages of a run. nullopt
/// without a page to write or a file.
Result<std::optional<ReportSource>> trace_source(const std::string& report, const std::string& trace_path);
/// Writes the HTML page of a fit; does nothing with an empty `path`. `centroids` are the file's bytes, and
/// `centroid_path` is empty where there is no such file.
Status write_report(const std::string& path, const signature::Trace& trace,
                    const std::optional<ReportSource>& trace_source, std::span<const std::byte> centroids,
                    const std::string& centroid_path);
/// `inspect TRACE --centroids FILE`: the numbers of the report.
Outcome inspect_fit(const Options& options, Context& context);

}  // namespace eldr::calibrator
