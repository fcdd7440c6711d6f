// SPDX-License-Identifier: Apache-2.0
// The container: what is accepted lies inside the input, covers its data, and survives being written again.
#include <algorithm>

#include "lib/signature/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/signature/samples.h"

namespace eldr::fuzz {
namespace {

using namespace signature;

void check_views(const SafetensorsFile& file, std::span<const std::byte> input) {
  std::size_t total = 0;
  for (const auto& [name, view] : file.tensors()) {
    require(view.bytes.empty() || (view.bytes.data() >= input.data() &&
                                   view.bytes.data() + view.bytes.size() <= input.data() + input.size()),
            "a tensor lies inside the file");
    std::size_t elements = 1;
    for (const std::size_t extent : view.shape) elements *= extent;
    require(elements == view.elements() && elements * size_of(view.dtype) == view.bytes.size(),
            "a shape takes its bytes");
    total += view.bytes.size();
  }
  require(total + 8 <= input.size(), "tensors do not overlap");
}

void run(std::span<const std::byte> input) {
  const auto file = SafetensorsFile::parse(input, {.max_header = 1U << 20U, .max_tensors = 32});
  if (!file) {
    require(file.error().code == Code::kInvalid && !file.error().message.empty(), "a refusal has a reason");
    return;
  }
  check_views(*file, input);
  std::vector<TensorData> tensors;
  for (const auto& [name, view] : file->tensors())
    tensors.push_back({name, view.dtype, view.shape, view.bytes});
  const auto written = serialize_safetensors(tensors, file->metadata());
  require(written.has_value(), "what was read can be written");
  const auto again = SafetensorsFile::parse(*written);
  require(again.has_value() && again->metadata() == file->metadata(), "what was written can be read");
  for (const auto& [name, view] : file->tensors()) {
    const auto same = again->get(name, view.dtype, view.shape);
    require(same.has_value() && std::ranges::equal(same->bytes, view.bytes), "tensors survive");
  }
}

std::vector<Bytes> seeds() {
  using samples::file_of;
  return {
      file_of("{}", 0),
      file_of(
          R"({"__metadata__":{"format":"x","\u00e9\n":"\ud83d\ude00"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
          4),
      file_of(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"b":{"dtype":"I8","shape":[2,1],"data_offsets":[0,2]}}  )",
          4),
      file_of(
          R"({"e":{"dtype":"F64","shape":[0,18446744073709551615],"data_offsets":[8,8]},"f":{"data_offsets":[0,8],"shape":[1,1,1],"dtype":"I64"}})",
          8),
      file_of(R"({"a":{"dtype":"F16","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
      file_of(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1)};
}

ELDR_FUZZ_TARGET(safetensors, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
