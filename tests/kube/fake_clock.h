// SPDX-License-Identifier: Apache-2.0
// A clock that stands still until a test moves it. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "lib/base/clock.h"

namespace eldr::kube::testing {

class FakeClock final : public Clock {
 public:
  Steady steady() const override {
    return Steady(std::chrono::nanoseconds(elapsed_.load())) + std::chrono::hours(1);
  }
  Wall wall() const override {
    return Wall(std::chrono::duration_cast<Wall::duration>(std::chrono::seconds(1'796'000'000) +
                                                           std::chrono::nanoseconds(elapsed_.load())));
  }
  void advance(std::chrono::nanoseconds by) { elapsed_ += by.count(); }

 private:
  std::atomic<std::int64_t> elapsed_{0};
};

}  // namespace eldr::kube::testing
