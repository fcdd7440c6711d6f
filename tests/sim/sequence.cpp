// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sequence.h"

namespace eldr::sim {

void Progress::advance(std::size_t sequence) {
  const std::lock_guard lock(mutex_);
  ++tokens_[sequence];
  ++version_;
  changed_.notify_all();
}

void Progress::fail() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  ++version_;
  changed_.notify_all();
}

Progress::Snapshot Progress::wait(std::uint64_t& version, std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return version_ != version; });
  version = version_;
  return {tokens_, failed_};
}

}  // namespace eldr::sim
