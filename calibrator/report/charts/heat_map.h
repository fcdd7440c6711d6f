// SPDX-License-Identifier: Apache-2.0
// A matrix as coloured cells: labels down, clusters across.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <string>
#include <vector>

namespace eldr::calibrator::charts {

struct HeatMap {
  std::string id;
  std::string title;
  std::string description;
  std::vector<std::string> rows;     ///< shortened where they are long
  std::vector<std::string> columns;  ///< left out where they would not fit
  Eigen::MatrixXd values = {};       ///< [rows][columns]; NaN: an empty cell
  double low = 0;                    ///< of the colours
  double high = 1;
  std::string low_text = {};  ///< beside the colours
  std::string high_text = {};
  std::string quantity = {};                                                       ///< what the columns are
  std::function<std::string(std::size_t row, std::size_t column)> cell_text = {};  ///< inside, where it fits
  std::function<std::string(std::size_t row, std::size_t column)> tooltip = {};
};

/// Whether so many columns need the width of the page.
bool heat_map_is_wide(std::size_t columns);
std::string draw_heat_map(const HeatMap& map);

}  // namespace eldr::calibrator::charts
