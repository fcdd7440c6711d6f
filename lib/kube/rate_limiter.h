// SPDX-License-Identifier: Apache-2.0
// When a failed key may be tried again. The time is always given by the caller. Not thread-safe: the work
// queue guards them with its own lock.
#pragma once

#include <chrono>
#include <unordered_map>

#include "lib/base/clock.h"
#include "lib/kube/resource.h"

namespace eldr::kube {

/// Per key: first · 2^failures, at most `longest`.
class ItemBackoff {
 public:
  ItemBackoff(std::chrono::nanoseconds first, std::chrono::nanoseconds longest)
      : first_(first), longest_(longest) {}
  /// The wait before the next try; counts one more failure.
  std::chrono::nanoseconds next(const ObjectKey& key);
  void forget(const ObjectKey& key) { failures_.erase(key); }
  int failures(const ObjectKey& key) const;

 private:
  std::chrono::nanoseconds first_, longest_;
  std::unordered_map<ObjectKey, int> failures_;
};

/// `rate` tokens a second, `burst` at most. A reservation may go into debt: it is told how long to wait.
class TokenBucket {
 public:
  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), tokens_(burst) {}
  std::chrono::nanoseconds reserve(Clock::Steady now);

 private:
  double rate_, burst_, tokens_;
  Clock::Steady last_{};
  bool started_ = false;
};

}  // namespace eldr::kube
