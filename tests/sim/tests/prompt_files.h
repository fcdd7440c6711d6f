// SPDX-License-Identifier: Apache-2.0
// Prompts for tests: the project's own, and real ones where ELDR_REAL_DATA is set.
#pragma once

#include <string>
#include <vector>

namespace eldr::sim::testing {

struct LabelledPrompt {
  std::string prompt;
  std::string label;
};

/// The output of tests/prompts/`script` (generate.py, real.py). Empty when it failed.
std::vector<LabelledPrompt> read_prompts(const std::string& script, int count, int seed);

}  // namespace eldr::sim::testing
