// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "calibrator/cli/commands.h"
#include "calibrator/fit/selection_record.h"
#include "calibrator/report/summary.h"
#include "lib/signature/safetensors.h"

namespace eldr::calibrator {
namespace {

template <class File>
void print(const File& file, bool as_json, std::ostream& out) {
  out << (as_json ? describe(file).dump(2) + "\n" : text_of(file));
}

}  // namespace

Outcome inspect_command(const Options& options, Context& context) {
  if (!options.centroids.empty()) {
    return inspect_fit(options, context);
  }
  const auto bytes = signature::read_file(options.file, signature::kMaxTraceFile);
  if (!bytes) {
    return fail(bytes.error());
  }
  const auto container = signature::SafetensorsFile::parse(*bytes);
  if (!container) {
    return fail(container.error().with_context(options.file));
  }
  const auto format = container->meta("format");
  if (format && *format == "eldr-trace/1") {
    const auto trace = signature::parse_trace(*bytes);
    if (!trace) {
      return fail(trace.error().with_context(options.file));
    }
    print(*trace, options.json, context.out);
    return {};
  }
  if (format && *format == "eldr-centroids/1") {
    const auto set = signature::parse_centroids(*bytes);
    if (!set) {
      return fail(set.error().with_context(options.file));
    }
    if (const auto selection = selection_record_of(*set); !selection) {
      return fail(selection.error().with_context(options.file));
    }
    print(*set, options.json, context.out);
    return {};
  }
  return fail({Code::kInvalid,
               options.file + ": metadata format is \"" + format.value_or("") +
                   "\"; must be eldr-trace/1 or eldr-centroids/1",
               0});
}

}  // namespace eldr::calibrator
