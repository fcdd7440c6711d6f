// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_target.h"

#include <cstdio>
#include <cstdlib>

namespace eldr::fuzz {

std::vector<Target>& targets() {
  static std::vector<Target> all;  // made on first use: registrations run before main in any order
  return all;
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: property broken: %s\n", what);
  std::abort();
}

}  // namespace eldr::fuzz
