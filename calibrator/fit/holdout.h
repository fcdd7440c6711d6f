// SPDX-License-Identifier: Apache-2.0
// How good a signature design is on requests that did not choose it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calibrator/fit/backend.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// Two halves of the requests named, drawn by seed, label by label where there are labels.
struct Halves {
  std::vector<std::size_t> first;
  std::vector<std::size_t> second;
};
Halves split_in_halves(const signature::Trace& trace, std::span<const std::size_t> requests,
                       std::uint64_t seed);

struct HeldOut {
  double rho = 0;     ///< mean of both directions
  double layers = 0;  ///< mean number of layers kept
};

/// IDF and layers are chosen on one half and rho is measured on the other, then the other way round.
/// `requests`: at least 4. `step()` returns false to stop (kCancelled).
Result<HeldOut> held_out_rho(FitBackend& backend, const signature::Trace& trace, const Halves& halves,
                             signature::Transform transform, std::size_t max_layers,
                             const std::function<bool()>& step);

}  // namespace eldr::calibrator
