// SPDX-License-Identifier: Apache-2.0
// What a centroid file remembers of the layer selection beyond the layers kept (metadata layer_order,
// layer_rhos and held_out_rhos; docs/reference/formats.md), so that the choice can be shown and judged later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "lib/signature/centroids.h"

namespace eldr::calibrator {

struct HeldOutRho {
  std::string transform;
  double rho = 0;
};

struct SelectionRecord {
  std::vector<std::int32_t> layers;  ///< model layer numbers in the greedy order
  std::vector<double> rhos;          ///< rho with the layers up to each; same length
  std::vector<HeldOutRho> held_out;  ///< by transform; empty where nothing was measured
};

/// Rho is kept to six decimals, what a correlation of thousands of requests is good for.
void keep_selection_record(const SelectionRecord& record, signature::CentroidSet& set);

/// nullopt: the file does not have it. kInvalid: what it has is not a record, or one of other layers than the
/// file's own.
Result<std::optional<SelectionRecord>> selection_record_of(const signature::CentroidSet& set);

/// Metadata held_out_rho, of the transform used. nullopt: it was not measured. kInvalid: not a number from -1
/// to 1.
Result<std::optional<double>> held_out_rho_of(const signature::CentroidSet& set);

}  // namespace eldr::calibrator
