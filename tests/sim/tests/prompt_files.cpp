// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/tests/prompt_files.h"

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include <nlohmann/json.hpp>

namespace eldr::sim::testing {

std::vector<LabelledPrompt> read_prompts(const std::string& script, int count, int seed) {
  const std::string command = std::string("python3 '") + ELDR_SOURCE_DIR + "/tests/prompts/" + script +
                              "' --count " + std::to_string(count) + " --seed " + std::to_string(seed);
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return {};
  }
  std::array<char, 65536> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), n);
  }
  if (::pclose(pipe) != 0) {
    return {};
  }
  std::vector<LabelledPrompt> prompts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    prompts.push_back({json.at("prompt"), json.at("label")});
  }
  return prompts;
}

}  // namespace eldr::sim::testing
