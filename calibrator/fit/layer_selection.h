// SPDX-License-Identifier: Apache-2.0
// Greedy choice of the layers whose prefill use tells most about decode use (ELDR, step 3 of the signature).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "calibrator/fit/backend.h"

namespace eldr::calibrator {

/// The whole greedy path and its best prefix.
struct LayerSelection {
  std::vector<std::size_t> order;  ///< layers in the order they were added (indices into the features)
  std::vector<double> rhos;        ///< rho after each addition, same length
  std::size_t keep = 0;            ///< length of the best prefix: the highest rho, ties to the shorter

  std::span<const std::size_t> kept() const { return std::span(order).first(keep); }
  double rho() const { return rhos[keep - 1]; }
};

/// Start empty; again and again add the layer that raises rho the most (ties: the lower index), to the last
/// layer; keep the prefix with the highest rho among those of at most `max_layers` (0: no limit).
/// `scorer` has nothing added yet; `layers` is how many it knows; `step(done, layers)` is called after each
/// addition and returns false to stop (kCancelled).
Result<LayerSelection> select_layers(LayerScorer& scorer, std::size_t layers, std::size_t max_layers,
                                     const std::function<bool(std::size_t, std::size_t)>& step);

}  // namespace eldr::calibrator
