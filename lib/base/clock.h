// SPDX-License-Identifier: Apache-2.0
// Time behind an interface: nothing below a main() calls now() or sleep(), so tests own the time.
#pragma once

#include <chrono>
#include <string>

namespace eldr {

/// Thread-safe.
class Clock {
 public:
  using Steady = std::chrono::steady_clock::time_point;
  using Wall = std::chrono::system_clock::time_point;
  virtual ~Clock() = default;
  virtual Steady steady() const = 0;  ///< for deadlines and durations
  virtual Wall wall() const = 0;      ///< for timestamps that people read
};

class RealClock final : public Clock {
 public:
  Steady steady() const override { return std::chrono::steady_clock::now(); }
  Wall wall() const override { return std::chrono::system_clock::now(); }
};

/// RFC 3339 in UTC with seconds, as Kubernetes writes metav1.Time: "2026-11-30T01:31:54Z".
std::string format_rfc3339(Clock::Wall time);
/// RFC 3339 with microseconds, metav1.MicroTime: "2026-11-30T01:31:54.123456Z".
std::string format_rfc3339_micro(Clock::Wall time);

}  // namespace eldr
