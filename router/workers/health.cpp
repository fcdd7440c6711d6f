// SPDX-License-Identifier: Apache-2.0
#include "router/workers/health.h"

#include <algorithm>

namespace eldr::router {

Health::Standing Health::standing(Clock::Steady now) const {
  if (!suspect_.load(std::memory_order_acquire)) return Standing::kHealthy;
  const std::lock_guard lock(mutex_);
  if (!ejected_) return Standing::kHealthy;
  return now < ejected_until_ || probe_out_ ? Standing::kEjected : Standing::kProbing;
}

bool Health::claim_probe(Clock::Steady now) {
  if (!suspect_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  if (!ejected_ || now < ejected_until_ || probe_out_) return false;
  probe_out_ = true;
  return true;
}

void Health::succeeded() {
  if (!suspect_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  failures_ = 0;
  ejections_ = 0;
  ejected_ = false;
  probe_out_ = false;
  suspect_.store(false, std::memory_order_release);
}

bool Health::failed(Clock::Steady now) {
  const std::lock_guard lock(mutex_);
  suspect_.store(true, std::memory_order_release);
  ++failures_;
  // Requests that were on their way when the worker was ejected say nothing new: only the probe counts.
  if (ejected_ && !probe_out_) return false;
  if (!ejected_ && failures_ < config_.failures) return false;
  const auto doublings = std::min<std::uint32_t>(ejections_, 20);
  ejected_until_ = now + std::min<Milliseconds>(config_.max_eject, config_.eject * (1LL << doublings));
  ++ejections_;
  ejected_ = true;
  probe_out_ = false;
  return true;
}

void Health::abandon_probe() {
  if (!suspect_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  probe_out_ = false;
}

std::uint32_t Health::consecutive_failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

bool Health::is_ejected() const {
  const std::lock_guard lock(mutex_);
  return ejected_;
}

}  // namespace eldr::router
