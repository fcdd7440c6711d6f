// SPDX-License-Identifier: Apache-2.0
// The pieces of HTML that a report is made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eldr::calibrator::html {

/// Cells are text and get escaped; the first column of a row is its heading, the others are numbers.
struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string table(const Table& table);

struct Key {
  std::string css;  ///< class of the sample mark
  std::string text;
};
std::string legend(const std::vector<Key>& keys);

/// A chart with everything around it. `svgs` are markup, `lead` and `notes` are text.
struct Figure {
  std::string id;
  std::string heading;
  std::string lead = {};  ///< what there is to see, in a sentence or two
  std::vector<Key> keys = {};
  std::vector<std::string> svgs = {};
  std::vector<std::string> notes = {};  ///< how to read it
  Table numbers = {};                   ///< the same for those who cannot see it
  bool wide = false;                    ///< over both columns; scrolls sideways by itself on a narrow screen
};
std::string figure(const Figure& figure);

}  // namespace eldr::calibrator::html
