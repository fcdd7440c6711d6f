// SPDX-License-Identifier: Apache-2.0
// KV cache blocks of a worker, and the leases under which a prefill worker keeps them for a decode worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/status.h"

namespace eldr::sim {

inline constexpr std::uint32_t kBlockTokens = 16;
/// Blocks that hold so many tokens.
constexpr std::uint32_t blocks_for(std::uint64_t tokens) {
  return static_cast<std::uint32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

/// Counts blocks; which ones does not matter here. Thread-safe.
class KvPool {
 public:
  explicit KvPool(std::uint32_t blocks) : total_(blocks) {}
  bool reserve(std::uint32_t blocks);  ///< false: not so many are free
  void release(std::uint32_t blocks);
  std::uint32_t total() const { return total_; }
  std::uint32_t used() const;

 private:
  const std::uint32_t total_;
  mutable std::mutex mutex_;
  std::uint32_t used_ = 0;
};

/// What a prefill worker remembers of a request that awaits its decode leg.
struct Lease {
  std::uint32_t blocks = 0;
  std::uint32_t tokens = 0;
  std::uint64_t prompt_hash = 0;
  std::string request_id;  ///< X-Request-Id of the prefill leg, may be empty
  Clock::Steady expires{};
};

/// Holds blocks until they are pulled or their lease ends. Thread-safe. The clock and the pool must outlive
/// it.
class LeaseTable {
 public:
  LeaseTable(const Clock& clock, KvPool& pool, std::chrono::milliseconds duration)
      : clock_(clock), pool_(pool), duration_(duration) {}

  /// Takes over blocks that are reserved already.
  void hold(const std::string& remote_request_id, Lease lease);
  /// Ends the lease and frees its blocks. kNotFound: never held, pulled already, or expired.
  Result<Lease> pull(const std::string& remote_request_id);
  /// Frees what has expired.
  void expire();

  struct Totals {
    std::uint64_t held = 0, pulled = 0, expired = 0;
    std::size_t now = 0;
  };
  Totals totals();

 private:
  void expire_locked();

  const Clock& clock_;
  KvPool& pool_;
  const std::chrono::milliseconds duration_;
  std::mutex mutex_;
  std::map<std::string, Lease> leases_;
  Totals totals_;
};

}  // namespace eldr::sim
