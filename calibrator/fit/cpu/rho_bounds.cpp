// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/cpu/rho_bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "calibrator/fit/rank_sums.h"

namespace eldr::calibrator::cpu {
namespace {

constexpr std::size_t kFewestBuckets = 1024;
constexpr std::size_t kMostBuckets = 65536;  // stay in the second-level cache
constexpr std::size_t kPairsForABucket = 8;

/// Rounding of sums in double is far below these.
constexpr double kSlackOfSquares = 1e-9;
constexpr double kSlackOfRho = 1e-11;

/// Squares of n doubled ranks without ties, about their mean.
double squares_without_ties(double n) { return (n * n * n - n) / 3; }

struct Grid {
  std::uint32_t lowest, highest;
  unsigned shift;
};

/// Apart from the counting, so that it runs in vectors.
void number_buckets(const std::uint32_t* keys, std::size_t count, Grid grid, std::uint32_t* numbers) {
  const auto lowest = static_cast<std::int32_t>(grid.lowest);  // keys have 31 bits
  const auto highest = static_cast<std::int32_t>(grid.highest);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t key = std::clamp(static_cast<std::int32_t>(keys[i]), lowest, highest);
    numbers[i] = static_cast<std::uint32_t>(key - lowest) >> grid.shift;
  }
}

}  // namespace

void BucketedRanks::begin(std::size_t pairs, std::uint32_t lowest, std::uint32_t highest) {
  const std::size_t most =
      std::clamp(std::bit_ceil(pairs / kPairsForABucket + 1), kFewestBuckets, kMostBuckets);
  lowest_ = lowest;
  highest_ = std::max(lowest, highest);
  const std::uint32_t range = highest_ - lowest_;
  const auto bits = static_cast<unsigned>(std::bit_width(range));
  const auto bucket_bits = static_cast<unsigned>(std::bit_width(most - 1));
  shift_ = bits > bucket_bits ? bits - bucket_bits : 0;
  buckets_.assign((range >> shift_) + 1, Bucket{});
}

void BucketedRanks::add(std::span<const std::uint32_t> keys, const std::uint32_t* doubled_ranks) {
  numbers_.resize(keys.size());
  number_buckets(keys.data(), keys.size(), {lowest_, highest_, shift_}, numbers_.data());
  Bucket* buckets = buckets_.data();
  const std::uint32_t* numbers = numbers_.data();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Bucket& bucket = buckets[numbers[i]];
    bucket.rank_sum += doubled_ranks[i];
    ++bucket.count;
  }
}

RhoBounds BucketedRanks::bounds(const RankedTarget& target) const {
  const std::size_t n = target.doubled_ranks.size();
  const double mean = static_cast<double>(n) + 1;  // of doubled ranks, on both sides
  std::uint64_t before = 0;
  Wide products = 0;          // of bucket means with the target's ranks
  double unknown = 0;         // most that the squares within buckets can be, on this side
  double target_between = 0;  // squares of the target's bucket means about the mean
  for (const Bucket& bucket : buckets_) {
    if (bucket.count == 0) {
      continue;
    }
    const auto count = static_cast<double>(bucket.count);
    products += static_cast<Wide>(2 * before + bucket.count + 1) * bucket.rank_sum;
    unknown += squares_without_ties(count);
    const double deviation = static_cast<double>(bucket.rank_sum) - count * mean;
    target_between += deviation * deviation / count;
    before += bucket.count;
  }
  const double most_squares = squares_without_ties(static_cast<double>(n));
  const double least_squares = most_squares - unknown;
  if (least_squares <= kSlackOfSquares * most_squares || target.sum_of_squares <= 0) {
    return {-1, 1};
  }
  const double covariance = about_the_mean(products, n);
  const double target_within =
      std::max(0.0, target.sum_of_squares - target_between) + kSlackOfSquares * target.sum_of_squares;
  const double error = std::sqrt(unknown * target_within);
  const double widest = std::sqrt(least_squares * target.sum_of_squares);
  const double narrowest = std::sqrt(most_squares * target.sum_of_squares);
  const double low = covariance - error;
  const double high = covariance + error;
  return {low / (low < 0 ? widest : narrowest) - kSlackOfRho,
          high / (high < 0 ? narrowest : widest) + kSlackOfRho};
}

}  // namespace eldr::calibrator::cpu
