// SPDX-License-Identifier: Apache-2.0
// Traces made for tests, and the method written down as plainly as possible to compare with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/signature/signature.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator::samples {

struct TraceShape {
  std::size_t requests = 60;
  std::size_t layers = 5;
  std::uint32_t experts = 16;
  std::uint32_t top_k = 2;
  std::uint32_t domains = 3;
  std::uint32_t prompt_tokens = 40;
  std::uint32_t decode_tokens = 20;
};
/// Requests of some domains ("d0", "d1" …), each with a preference for experts of its own in every layer but
/// the last, which is noise. Decode follows the domain as prefill does.
signature::Trace trace(std::uint64_t seed, const TraceShape& shape);

/// The folder of real recordings, from ELDR_REAL_DATA.
std::optional<std::string> real_data();

/// Average ranks from 1, by sorting.
std::vector<double> ranks(const std::vector<double>& values);
double pearson(const std::vector<double>& x, const std::vector<double>& y);
double spearman(const std::vector<double>& x, const std::vector<double>& y);

/// Cosines of all pairs i < j of rows; 0 with a zero row.
std::vector<double> pair_cosines(const std::vector<std::vector<double>>& rows);
/// Prefill signatures (not normalised) over some layers, with weights log((N + 1) / (df + 1)) where asked.
std::vector<std::vector<double>> signatures(const signature::Trace& trace,
                                            const std::vector<std::size_t>& layers,
                                            signature::Transform transform);
/// rho of those layers.
double rho(const signature::Trace& trace, const std::vector<std::size_t>& layers,
           signature::Transform transform);

}  // namespace eldr::calibrator::samples
