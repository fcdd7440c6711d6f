// SPDX-License-Identifier: Apache-2.0
// The report as one HTML page that needs nothing else: no network, no scripts, no fonts.
#pragma once

#include <string>
#include <vector>

#include "calibrator/report/analysis/analysis.h"

namespace eldr::calibrator {

/// A file that the report was made from. Only its name is shown, never the folders.
struct ReportSource {
  std::string kind;  ///< "trace", "centroids"
  std::string name;
  std::string sha256;  ///< 64 hex digits
};

/// Same analysis and sources, same bytes: no time and no machine is in it.
std::string report_page(const Analysis& analysis, const std::vector<ReportSource>& sources);

}  // namespace eldr::calibrator
