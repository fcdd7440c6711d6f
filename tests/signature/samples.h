// SPDX-License-Identifier: Apache-2.0
// Small traces, centroid sets and files for the tests of lib/signature. Deterministic: the seed decides
// everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"

namespace eldr::signature::samples {

struct TraceShape {
  std::size_t requests = 12;
  std::size_t layers = 3;
  std::uint32_t experts = 16;
  std::uint32_t top_k = 2;
};

/// Requests of two domains ("code", "law") that prefer different halves of the experts; decode_counts add up
/// decode_experts.
Trace trace(std::uint64_t seed, const TraceShape& shape = {});

struct CentroidShape {
  Eigen::Index clusters = 4;
  std::size_t layers = 3;
  std::uint32_t experts = 16;
  std::size_t requests = 20;
};

/// Random unit rows with non-negative entries, a skewed IDF, every metadata field set to something that is
/// not its default.
CentroidSet centroids(std::uint64_t seed, const CentroidShape& shape = {});

/// A file of that header and those data bytes, right or wrong.
std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes);
std::vector<std::byte> bytes_of_text(std::string_view text);

}  // namespace eldr::signature::samples
