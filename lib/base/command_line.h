// SPDX-License-Identifier: Apache-2.0
// A command line in the form that CLI11 parses without a surprise.
#pragma once

#include <string>
#include <vector>

namespace eldr {

/// The words after the program's name, last first, for CLI::App::parse. CLI11 takes the next word for the
/// value of "--option="; written as two words, an empty value stays one.
std::vector<std::string> words_last_first(int argc, const char* const* argv);

}  // namespace eldr
