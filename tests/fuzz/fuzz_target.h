// SPDX-License-Identifier: Apache-2.0
// A fuzz target: a function that takes any bytes, and must neither crash nor break a property. Each target is
// compiled twice: into <name>_fuzzer with libFuzzer (preset "fuzz", clang), and into fuzz_smoke_test, which
// feeds it its seeds and some thousand deterministic mutations of them, so that every build and every
// sanitizer covers it. To add one, write a file like trace_fuzz.cpp and name it in CMakeLists.txt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace eldr::fuzz {

using Bytes = std::vector<std::byte>;

struct Target {
  const char* name;
  void (*run)(std::span<const std::byte> input);
  std::vector<Bytes> (*seeds)();  ///< small valid inputs, and tricky ones
};

/// Every target linked into this program.
std::vector<Target>& targets();

/// Ends the process, naming `what`, unless `holds`: how a target reports a broken property.
void require(bool holds, const char* what);

struct Registration {
  explicit Registration(const Target& target) { targets().push_back(target); }
};

}  // namespace eldr::fuzz

/// At namespace scope, once in a target's file.
#define ELDR_FUZZ_TARGET(name, run, seeds) \
  const ::eldr::fuzz::Registration name##_registration({#name, run, seeds})
