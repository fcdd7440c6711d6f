// SPDX-License-Identifier: Apache-2.0
// Small seeded random numbers that are the same on every machine (the standard library's distributions are
// not).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace eldr::sim {

/// FNV-1a, 64 bit, then mixed: for seeds only.
inline std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t h = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  h ^= h >> 31U;
  h *= 0x7fb5d329728ea185ULL;
  h ^= h >> 27U;
  h *= 0x81dadef4bc2dd44dULL;
  return h ^ (h >> 33U);
}

/// SplitMix64 (Steele, Lea, Flood 2014). A value type.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
  /// In [0, n); n > 0.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// Standard normal (Box and Muller).
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace eldr::sim
