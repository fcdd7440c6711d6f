// SPDX-License-Identifier: Apache-2.0
// Randomness for jitter, behind an interface so that tests own it. Not for secrets.
#pragma once

#include <cstdint>
#include <memory>

namespace eldr::kube {

/// Thread-safe.
class Random {
 public:
  virtual ~Random() = default;
  /// Uniform in [0, 1).
  virtual double uniform() = 0;
};

/// Seeded once from the system's entropy.
std::unique_ptr<Random> make_random();
/// The same numbers every time.
std::unique_ptr<Random> make_random(std::uint64_t seed);

}  // namespace eldr::kube
