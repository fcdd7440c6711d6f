// SPDX-License-Identifier: Apache-2.0
// Which prompt blocks were computed before: what a prefix cache saves. First in, first out.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "tests/sim/kv_pool.h"

namespace eldr::sim {

/// Thread-safe.
class PrefixCache {
 public:
  explicit PrefixCache(std::size_t blocks) : capacity_(blocks) {}

  /// Tokens of the prompt that are cached (whole blocks, never the last token, which is computed again). The
  /// prompt is cached from now on.
  std::uint32_t look_up_and_add(const std::vector<std::uint32_t>& tokens) {
    const std::lock_guard lock(mutex_);
    std::uint64_t chain = 0;  // a block's identity includes all before it
    std::size_t hits = 0;
    bool hit = true;
    for (std::size_t end = kBlockTokens; end <= tokens.size(); end += kBlockTokens) {
      for (std::size_t i = end - kBlockTokens; i < end; ++i) {
        chain = (chain ^ tokens[i]) * 0x100000001b3ULL + 0x9e3779b97f4a7c15ULL;
      }
      hit = hit && known_.count(chain) != 0;
      hits += hit ? 1 : 0;
      if (known_.insert(chain).second) {
        order_.push_back(chain);
      }
    }
    while (order_.size() > capacity_) {
      known_.erase(order_.front());
      order_.pop_front();
    }
    return static_cast<std::uint32_t>(std::min(hits * kBlockTokens, tokens.size() - 1));
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::unordered_set<std::uint64_t> known_;
  std::deque<std::uint64_t> order_;
};

}  // namespace eldr::sim
