// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/kv_pool.h"

#include <algorithm>

namespace eldr::sim {

bool KvPool::reserve(std::uint32_t blocks) {
  const std::lock_guard lock(mutex_);
  if (blocks > total_ - used_) {
    return false;
  }
  used_ += blocks;
  return true;
}

void KvPool::release(std::uint32_t blocks) {
  const std::lock_guard lock(mutex_);
  used_ -= std::min(blocks, used_);
}

std::uint32_t KvPool::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

void LeaseTable::hold(const std::string& remote_request_id, Lease lease) {
  const std::lock_guard lock(mutex_);
  lease.expires = clock_.steady() + duration_;
  leases_[remote_request_id] = std::move(lease);
  ++totals_.held;
}

Result<Lease> LeaseTable::pull(const std::string& remote_request_id) {
  const std::lock_guard lock(mutex_);
  expire_locked();
  const auto it = leases_.find(remote_request_id);
  if (it == leases_.end()) {
    return failure(Code::kNotFound, "remote_request_id \"" + remote_request_id +
                                        "\": not held here (pulled, expired or never seen)");
  }
  Lease lease = std::move(it->second);
  leases_.erase(it);
  pool_.release(lease.blocks);
  ++totals_.pulled;
  return lease;
}

void LeaseTable::expire() {
  const std::lock_guard lock(mutex_);
  expire_locked();
}

void LeaseTable::expire_locked() {
  const auto now = clock_.steady();
  for (auto it = leases_.begin(); it != leases_.end();) {
    if (it->second.expires <= now) {
      pool_.release(it->second.blocks);
      ++totals_.expired;
      it = leases_.erase(it);
    } else {
      ++it;
    }
  }
}

LeaseTable::Totals LeaseTable::totals() {
  const std::lock_guard lock(mutex_);
  expire_locked();
  Totals totals = totals_;
  totals.now = leases_.size();
  return totals;
}

}  // namespace eldr::sim
