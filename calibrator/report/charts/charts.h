// SPDX-License-Identifier: Apache-2.0
// The report's figures, each a pure function of the analysis.
#pragma once

#include "calibrator/report/analysis/analysis.h"
#include "calibrator/report/html.h"

namespace eldr::calibrator::charts {

/// Rho over the layers in the order chosen; without a record of the selection, a figure that says so.
html::Figure rho_figure(const Analysis& analysis);
/// Mean cosine of each label's requests with each centroid.
html::Figure similarity_figure(const Analysis& analysis);
/// Requests of each label in each cluster.
html::Figure label_counts_figure(const Analysis& analysis);
/// Requests by cluster: assigned, nearest, capacity.
html::Figure cluster_sizes_figure(const Analysis& analysis);
/// The map coloured by label and the map coloured by cluster.
html::Figure label_map_figure(const Analysis& analysis);
html::Figure cluster_map_figure(const Analysis& analysis);
/// Distinct experts by batch size with and without locality.
html::Figure experts_figure(const Analysis& analysis);
/// Requests by the width of their band at the chosen tau; mean width by tau.
html::Figure band_figure(const Analysis& analysis);
html::Figure tau_figure(const Analysis& analysis);

}  // namespace eldr::calibrator::charts
