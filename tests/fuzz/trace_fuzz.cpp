// SPDX-License-Identifier: Apache-2.0
// The trace: what is accepted is consistent, and writing and reading it again changes nothing.
#include "lib/signature/trace.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/signature/samples.h"

namespace eldr::fuzz {
namespace {

using namespace signature;

void run(std::span<const std::byte> input) {
  const auto trace = parse_trace(input);
  if (!trace) {
    require(trace.error().code == Code::kInvalid && !trace.error().message.empty(), "a refusal has a reason");
    return;
  }
  const std::size_t row = trace->layers.size() * trace->experts;
  require(trace->requests() > 0 && row > 0, "a trace is not empty");
  for (std::size_t r = 0; r < trace->requests(); ++r) {
    require(trace->prefill(r).size() == row && trace->decode(r).size() == row, "every request has its rows");
  }
  const auto written = serialize_trace(*trace);
  require(written.has_value(), "what was read can be written");
  const auto again = parse_trace(*written);
  require(again.has_value(), "what was written can be read");
  const auto twice = serialize_trace(*again);
  require(twice.has_value() && *twice == *written, "reading and writing changes nothing");
}

std::vector<Bytes> seeds() {
  const auto small = samples::trace(1, {.requests = 2, .layers = 2, .experts = 4, .top_k = 2});
  auto bare = samples::trace(2, {.requests = 1, .layers = 1, .experts = 2, .top_k = 1});
  bare.labels.clear();
  bare.decode_experts.clear();
  bare.decode_offsets.clear();
  const auto wide = samples::trace(3, {.requests = 1, .layers = 1, .experts = 300, .top_k = 2});
  return {serialize_trace(small).value(), serialize_trace(bare).value(), serialize_trace(wide).value()};
}

ELDR_FUZZ_TARGET(trace, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
