// SPDX-License-Identifier: Apache-2.0
// A strict reader of one kind of .npy file: unsigned integers of one or two bytes, C order, three dimensions
// (NumPy's NEP 1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/status.h"

namespace eldr::calibrator {

struct NpyCube {
  std::array<std::size_t, 3> shape{};
  std::vector<std::uint16_t> values;  ///< row-major
};

/// Whether bytes begin as a .npy file does.
bool is_npy(std::span<const std::byte> bytes);

/// kInvalid names what differs: magic, version, header, descr (|u1 or <u2), fortran_order, shape, size.
Result<NpyCube> parse_npy(std::span<const std::byte> bytes);

}  // namespace eldr::calibrator
