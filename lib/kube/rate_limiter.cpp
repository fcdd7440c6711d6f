// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/rate_limiter.h"

#include <algorithm>

namespace eldr::kube {

std::chrono::nanoseconds ItemBackoff::next(const ObjectKey& key) {
  constexpr int kMostDoublings = 62;
  int& failures = failures_[key];
  const int doublings = std::min(failures, kMostDoublings);
  failures = std::min(failures + 1, 1'000'000);
  // Compared before it is multiplied, so that nothing overflows.
  if (first_.count() > (longest_.count() >> doublings)) {
    return longest_;
  }
  return first_ * (std::int64_t{1} << doublings);
}

int ItemBackoff::failures(const ObjectKey& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

std::chrono::nanoseconds TokenBucket::reserve(Clock::Steady now) {
  if (started_ && now > last_) {
    tokens_ = std::min(burst_, tokens_ + std::chrono::duration<double>(now - last_).count() * rate_);
  }
  last_ = started_ ? std::max(last_, now) : now;
  started_ = true;
  tokens_ -= 1;
  if (tokens_ >= 0) {
    return std::chrono::nanoseconds(0);
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(-tokens_ / rate_));
}

}  // namespace eldr::kube
