// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every platform: the standard fixes the engine, not the distributions.
#pragma once

#include <cstdint>
#include <random>

namespace eldr::calibrator {

class Random {
 public:
  /// `stream` separates users of one seed.
  Random(std::uint64_t seed, std::uint64_t stream) : engine_(seed ^ (stream * 0x9E3779B97F4A7C15ULL)) {}
  std::uint64_t bits() { return engine_(); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11U) * 0x1.0p-53; }
  /// In [0, bound); bound > 0. The bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(engine_()) * bound) >> 64U);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace eldr::calibrator
