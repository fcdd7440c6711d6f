// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/ranks.h"

#include <algorithm>
#include <array>

#include "calibrator/fit/rank_sums.h"

namespace eldr::calibrator {
namespace {

// Keys have 31 bits. Two passes sort by the upper 22, after which few entries are out of place, and those not
// far: insertion mends that. Where it does not (many keys that differ in the lowest bits alone), a pass over
// those comes first.
constexpr unsigned kDigitBits = 11;
constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;
constexpr unsigned kLowBits = 31 - 2 * kDigitBits;
constexpr std::size_t kMovesAnEntry = 2;

std::size_t digit(std::uint64_t entry, unsigned shift) { return (entry >> (32U + shift)) & (kBuckets - 1); }

/// One stable counting sort by the digit at `shift`, from `from` into `to`. False: all share it, nothing was
/// moved.
bool counting_pass(const std::vector<std::uint64_t>& from, std::vector<std::uint64_t>& to, unsigned shift) {
  std::array<std::uint32_t, kBuckets> start{};
  for (const std::uint64_t entry : from) {
    ++start[digit(entry, shift)];
  }
  if (start[digit(from.front(), shift)] == from.size()) {
    return false;
  }
  std::uint32_t sum = 0;
  for (std::uint32_t& slot : start) {
    const std::uint32_t count = slot;
    slot = sum;
    sum += count;
  }
  for (const std::uint64_t entry : from) {
    to[start[digit(entry, shift)]++] = entry;
  }
  return true;
}

/// Sorts by key what is nearly sorted. False: it took too many moves and was given up half-way.
bool insertion_pass(std::vector<std::uint64_t>& entries) {
  std::size_t moves_left = kMovesAnEntry * entries.size();
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const std::uint64_t entry = entries[i];
    if (entry >> 32U >= entries[i - 1] >> 32U) {
      continue;
    }
    std::size_t hole = i;
    for (; hole > 0 && entry >> 32U < entries[hole - 1] >> 32U; --hole) {
      entries[hole] = entries[hole - 1];
    }
    entries[hole] = entry;
    if (i - hole > moves_left) {
      return false;
    }
    moves_left -= i - hole;
  }
  return true;
}

/// Calls body(begin, end) for each run of equal keys in sorted entries.
template <class Body>
void for_each_tie(const std::vector<std::uint64_t>& sorted, Body body) {
  for (std::size_t begin = 0; begin < sorted.size();) {
    const std::uint64_t key = sorted[begin] >> 32U;
    std::size_t end = begin + 1;
    while (end < sorted.size() && sorted[end] >> 32U == key) {
      ++end;
    }
    body(begin, end);
    begin = end;
  }
}

}  // namespace

std::uint64_t* SpearmanSorter::begin(std::size_t n) {
  entries_.resize(n);
  other_.resize(n);
  return entries_.data();
}

void SpearmanSorter::sort() {
  if (entries_.empty()) {
    return;
  }
  const auto pass = [&](unsigned shift) {
    if (counting_pass(entries_, other_, shift)) {
      entries_.swap(other_);
    }
  };
  pass(kLowBits);
  pass(kLowBits + kDigitBits);
  if (!insertion_pass(entries_)) {
    pass(0);
    pass(kDigitBits);
    pass(2 * kDigitBits);
  }
}

RankedTarget SpearmanSorter::rank(std::span<const std::uint32_t> keys) {
  begin(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    entries_[i] = pack(keys[i], static_cast<std::uint32_t>(i));
  }
  sort();
  RankedTarget target;
  target.doubled_ranks.resize(keys.size());
  Wide squares = 0;
  for_each_tie(entries_, [&](std::size_t first, std::size_t end) {
    const auto doubled = static_cast<std::uint32_t>(first + 1 + end);  // ranks first+1 … end
    for (std::size_t i = first; i < end; ++i) {
      target.doubled_ranks[static_cast<std::uint32_t>(entries_[i])] = doubled;
    }
    squares += static_cast<Wide>(doubled) * doubled * (end - first);
  });
  target.sum_of_squares = about_the_mean(squares, keys.size());
  return target;
}

double SpearmanSorter::rho(const RankedTarget& target) {
  sort();
  RankSums sums{0, 0};
  for_each_tie(entries_, [&](std::size_t first, std::size_t end) {
    const std::uint64_t doubled = first + 1 + end;
    std::uint64_t others = 0;
    for (std::size_t i = first; i < end; ++i) {
      others += static_cast<std::uint32_t>(entries_[i]);
    }
    sums.squares += static_cast<Wide>(doubled * doubled) * (end - first);
    sums.products += static_cast<Wide>(doubled) * others;
  });
  return spearman_rho(sums, entries_.size(), target.sum_of_squares);
}

double SpearmanSorter::rho(std::span<const std::uint32_t> keys, const RankedTarget& target) {
  begin(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    entries_[i] = pack(keys[i], target.doubled_ranks[i]);
  }
  return rho(target);
}

}  // namespace eldr::calibrator
