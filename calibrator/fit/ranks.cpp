// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/ranks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace eldr::calibrator {
namespace {

// Products of two doubled ranks, summed over 2^31 pairs, need 95 bits.
__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

constexpr unsigned kDigitBits = 11;
constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;
constexpr unsigned kPasses = 3;  // 33 bits >= 31

std::size_t digit(std::uint64_t entry, unsigned pass) {
  return (entry >> (32U + pass * kDigitBits)) & (kBuckets - 1);
}

/// Sum of (doubled rank - mean)^2, from the sum of squares: the mean of n doubled ranks is n + 1, ties or
/// not.
double about_the_mean(Wide sum, std::size_t n) {
  const Wide mean = n + 1;
  return static_cast<double>(static_cast<SignedWide>(sum) - static_cast<SignedWide>(mean * mean * n));
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
  // Least significant digit first; one sweep counts the digits of all passes.
  std::array<std::array<std::uint32_t, kBuckets>, kPasses> starts{};
  for (const std::uint64_t entry : entries_) {
    for (unsigned pass = 0; pass < kPasses; ++pass) {
      ++starts[pass][digit(entry, pass)];
    }
  }
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    auto& start = starts[pass];
    if (std::find(start.begin(), start.end(), entries_.size()) != start.end()) {
      continue;  // all entries share this digit
    }
    std::uint32_t sum = 0;
    for (std::uint32_t& slot : start) {
      const std::uint32_t count = slot;
      slot = sum;
      sum += count;
    }
    for (const std::uint64_t entry : entries_) {
      other_[start[digit(entry, pass)]++] = entry;
    }
    entries_.swap(other_);
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
  Wide squares = 0;
  Wide products = 0;
  for_each_tie(entries_, [&](std::size_t first, std::size_t end) {
    const std::uint64_t doubled = first + 1 + end;
    std::uint64_t others = 0;
    for (std::size_t i = first; i < end; ++i) {
      others += static_cast<std::uint32_t>(entries_[i]);
    }
    squares += static_cast<Wide>(doubled * doubled) * (end - first);
    products += static_cast<Wide>(doubled) * others;
  });
  const double own = about_the_mean(squares, entries_.size());
  if (own <= 0 || target.sum_of_squares <= 0) {
    return 0;
  }
  return about_the_mean(products, entries_.size()) / std::sqrt(own * target.sum_of_squares);
}

double SpearmanSorter::rho(std::span<const std::uint32_t> keys, const RankedTarget& target) {
  begin(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    entries_[i] = pack(keys[i], target.doubled_ranks[i]);
  }
  return rho(target);
}

}  // namespace eldr::calibrator
