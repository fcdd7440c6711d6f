// SPDX-License-Identifier: Apache-2.0
#include "lib/base/command_line.h"

#include <utility>

namespace eldr {

std::vector<std::string> words_last_first(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      word.pop_back();
      words.emplace_back();
    }
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace eldr
