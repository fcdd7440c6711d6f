// SPDX-License-Identifier: Apache-2.0
// The placement of the experts of all layers, in the form in which engines load it (eldr-placement/1,
// docs/reference/formats.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "calibrator/fit/fit.h"
#include "lib/base/status.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// `plans` are of the trace's layers; `set` names the clusters.
nlohmann::json placement_json(const ExpertPlans& plans, const signature::Trace& trace,
                              const signature::CentroidSet& set);

/// Writes a fit's placement; whole or not at all. kInvalid: the fit made none (one rank).
Status write_placement(const std::string& path, const FitResult& result, const signature::Trace& trace);

}  // namespace eldr::calibrator
