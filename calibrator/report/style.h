// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace eldr::calibrator {

/// The report's style sheet: light and dark, screen and print, one column to two.
extern const std::string_view kReportStyle;

}  // namespace eldr::calibrator
