// SPDX-License-Identifier: Apache-2.0
// What a fit found, as text for people and as JSON for programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "calibrator/fit/fit.h"
#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// The operator's view, the annotation eldr.dev/summary: rho, rhoAllLayers, layersKept, maxClusterShare,
/// requests, clusters, and heldOutRho where it was measured.
nlohmann::json summary_of(const signature::CentroidSet& set);

/// A whole fit: the summary, the rho curve, held-out quality, sizes, warnings, time by stage.
nlohmann::json report_of(const FitResult& result);
std::string text_of(const FitResult& result);

/// Fits of several numbers of clusters, a line for each.
std::string comparison_header();
std::string comparison_row(const FitResult& result, const std::string& file);

/// A centroid file.
nlohmann::json describe(const signature::CentroidSet& set);
std::string text_of(const signature::CentroidSet& set);

/// A trace file.
nlohmann::json describe(const signature::Trace& trace);
std::string text_of(const signature::Trace& trace);

}  // namespace eldr::calibrator
