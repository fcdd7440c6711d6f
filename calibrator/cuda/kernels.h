// SPDX-License-Identifier: Apache-2.0
// The bodies of the kernels. Each is a value of pointers and sizes with operator()(index), called once for
// every index below a count, in any order: on a GPU by cub::DeviceFor, in tests by a loop on the host.
//
// Pointers are device memory, not owned. N requests, P = pair_count(N) pairs in the order of pairs.h. The
// arithmetic and its order are those of calibrator/fit/cpu, so that both give the same bits wherever the
// Gram matrices do.
#pragma once

#include <cstdint>

#include "calibrator/cuda/pair_index.h"
#include "calibrator/cuda/tie_run.h"
#include "calibrator/fit/cosine_key.h"
#include "calibrator/fit/host_device.h"
#include "calibrator/fit/rank_sums.h"

namespace eldr::calibrator::cuda {

/// A block of a Gram matrix, row-major: rows [row, row + height) by columns [column, column + width).
struct GramBlock {
  std::uint64_t row;
  std::uint64_t height;
  std::uint64_t column;
  std::uint64_t width;

  ELDR_HOST_DEVICE std::uint64_t size() const { return height * width; }
  ELDR_HOST_DEVICE std::uint64_t row_of(std::uint64_t entry) const { return row + entry / width; }
  ELDR_HOST_DEVICE std::uint64_t column_of(std::uint64_t entry) const { return column + entry % width; }
};

/// Floats to doubles.
struct Widen {
  const float* from;
  double* to;

  ELDR_HOST_DEVICE void operator()(std::uint64_t i) const { to[i] = from[i]; }
};

/// Doubles to floats.
struct Narrow {
  const double* from;
  float* to;

  ELDR_HOST_DEVICE void operator()(std::uint64_t i) const { to[i] = static_cast<float>(from[i]); }
};

/// One layer's block of inner products into its packed pairs and its diagonal. Index: entries of the block.
struct PackLayer {
  const double* gram;  ///< [block]
  GramBlock block;
  std::uint64_t requests;
  float* pairs;      ///< [P]
  double* diagonal;  ///< [N]

  ELDR_HOST_DEVICE void operator()(std::uint64_t entry) const {
    const std::uint64_t i = block.row_of(entry);
    const std::uint64_t j = block.column_of(entry);
    if (i < j) {
      pairs[index_of_pair(requests, i, j)] = static_cast<float>(gram[entry]);
    } else if (i == j) {
      diagonal[i] = gram[entry];
    }
  }
};

/// The same added to sums over layers, in double.
struct AddBlock {
  const double* gram;  ///< [block]
  GramBlock block;
  std::uint64_t requests;
  double* pairs;     ///< [P]
  double* diagonal;  ///< [N]

  ELDR_HOST_DEVICE void operator()(std::uint64_t entry) const {
    const std::uint64_t i = block.row_of(entry);
    const std::uint64_t j = block.column_of(entry);
    if (i < j) {
      pairs[index_of_pair(requests, i, j)] += gram[entry];
    } else if (i == j) {
      diagonal[i] += gram[entry];
    }
  }
};

/// One layer's packed pairs added to sums over layers. Index: pairs.
struct AddLayer {
  const float* layer;  ///< [P]
  double* sums;        ///< [P]

  ELDR_HOST_DEVICE void operator()(std::uint64_t pair) const { sums[pair] += layer[pair]; }
};

/// Keys of the decode side, each with its pair's index. Index: pairs.
struct TargetKeys {
  const double* sums;     ///< [P] inner products
  const double* inverse;  ///< [N] 1 / length
  std::uint64_t requests;
  std::uint32_t* keys;     ///< [P]
  std::uint32_t* payload;  ///< [P]

  ELDR_HOST_DEVICE void operator()(std::uint64_t pair) const {
    const Pair at = pair_at(requests, pair);
    keys[pair] = cosine_key(sums[pair] * inverse[at.i] * inverse[at.j]);
    payload[pair] = static_cast<std::uint32_t>(pair);
  }
};

/// Keys of the layers added and one more, each with its pair's rank on the decode side. Index: pairs.
struct ScoreKeys {
  const double* sums;          ///< [P] inner products over the layers added
  const float* layer;          ///< [P] those of the candidate
  const double* inverse;       ///< [N] 1 / length with the candidate
  const std::uint32_t* ranks;  ///< [P] doubled ranks of the decode side
  std::uint64_t requests;
  std::uint32_t* keys;     ///< [P]
  std::uint32_t* payload;  ///< [P]

  ELDR_HOST_DEVICE void operator()(std::uint64_t pair) const {
    const Pair at = pair_at(requests, pair);
    keys[pair] = cosine_key((sums[pair] + layer[pair]) * inverse[at.i] * inverse[at.j]);
    payload[pair] = ranks[pair];
  }
};

/// Doubled ranks from sorted keys back to the order of pairs. Index: places in the sorted order.
struct ScatterRanks {
  const std::uint32_t* keys;   ///< [P] sorted
  const std::uint32_t* pairs;  ///< [P] the pair of each
  std::uint64_t count;
  std::uint32_t* ranks;  ///< [P] by pair

  ELDR_HOST_DEVICE void operator()(std::uint64_t place) const {
    ranks[pairs[place]] = static_cast<std::uint32_t>(tie_run(keys, count, place).doubled_rank());
  }
};

/// What a place of the sorted order adds to the sums of rho. Returns it; the caller sums.
struct PlaceSums {
  const std::uint32_t* keys;   ///< [count] sorted
  const std::uint32_t* other;  ///< [count] doubled ranks of the other side
  std::uint64_t count;

  ELDR_HOST_DEVICE RankSums operator()(std::uint64_t place) const {
    const std::uint64_t doubled = tie_run(keys, count, place).doubled_rank();  // both below 2^32
    return {static_cast<Wide>(doubled * doubled), static_cast<Wide>(doubled * other[place])};
  }
};

/// Inner products of every request with the sum of each cluster's members, over a block of rows of the Gram
/// matrix; blocks are added in the order of their rows. Index: k * N + i.
struct ClusterSums {
  const float* gram;  ///< rows [first, end) of the Gram matrix, each [N]
  std::uint64_t first;
  std::uint64_t end;
  std::uint64_t requests;
  const std::uint32_t* members;  ///< requests by cluster, ascending in each
  const std::uint32_t* begins;   ///< [K + 1] where each cluster's members begin
  double* sums;                  ///< [K][N]

  ELDR_HOST_DEVICE void operator()(std::uint64_t entry) const {
    const std::uint64_t cluster = entry / requests;
    const std::uint64_t i = entry % requests;
    double sum = sums[entry];
    for (std::uint32_t m = first_member_from(begins[cluster], begins[cluster + 1]);
         m < begins[cluster + 1] && members[m] < end; ++m) {
      sum += gram[(members[m] - first) * requests + i];
    }
    sums[entry] = sum;
  }

 private:
  /// The first of members [begin, end) that is in the block or after it.
  ELDR_HOST_DEVICE std::uint32_t first_member_from(std::uint32_t begin, std::uint32_t last) const {
    while (begin < last) {
      const std::uint32_t middle = begin + (last - begin) / 2;
      if (members[middle] < first) {
        begin = middle + 1;
      } else {
        last = middle;
      }
    }
    return begin;
  }
};

}  // namespace eldr::calibrator::cuda
