// SPDX-License-Identifier: Apache-2.0
// The .npy reader of the calibrator: what is accepted has the size that its shape says.
#include <string>

#include "calibrator/collect/npy.h"
#include "calibrator/collect/routed_experts.h"
#include "lib/base/digest.h"
#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {
namespace {

void run(std::span<const std::byte> input) {
  const auto cube = calibrator::parse_npy(input);
  if (!cube) {
    require(cube.error().code == Code::kInvalid && !cube.error().message.empty(), "a refusal has a reason");
  } else {
    require(cube->values.size() == cube->shape[0] * cube->shape[1] * cube->shape[2], "every cell is there");
  }
  // The same bytes as an engine's answer, in either form.
  const auto routed = calibrator::decode_routed_experts(base64_encode(input), 2, 2, 2);
  if (routed) {
    const auto counts = calibrator::count_experts(*routed, 2, true);
    require(!counts || counts->prefill.size() == counts->decode.size(), "both counts have one shape");
  }
}

Bytes file(const std::string& header, std::size_t data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  bytes += header + std::string(data, '\x01');
  const auto view = as_bytes(bytes);
  return {view.begin(), view.end()};
}

std::vector<Bytes> seeds() {
  return {file("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2), }\n", 12),
          file("{'descr': '<u2', 'fortran_order': False, 'shape': (3, 1, 2), }\n", 12),
          file("{'shape': (0, 2, 2), 'fortran_order': False, 'descr': \"|u1\"}", 0), Bytes(48, std::byte{0})};
}

ELDR_FUZZ_TARGET(npy, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
