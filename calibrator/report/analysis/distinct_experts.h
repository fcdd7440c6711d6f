// SPDX-License-Identifier: Apache-2.0
// What locality is worth: distinct experts that a decode batch makes a worker read, in mixed batches and in
// batches of one cluster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// Over the batches drawn.
struct BatchStatistics {
  double mean = 0;  ///< distinct experts a layer and step, mean over the layers
  double low = 0;   ///< tenth and ninetieth percentile of batches
  double high = 0;
  double error = 0;  ///< standard error of the mean
};

struct BatchExperts {
  std::uint32_t batch = 0;  ///< requests
  BatchStatistics mixed;
  BatchStatistics local;
  double saving = 0;        ///< 1 - local.mean / mixed.mean
  double saving_error = 0;  ///< its standard error, from the draws alone (delta method)
};

struct BatchSampling {
  std::uint32_t draws = 400;         ///< batches of each kind and size
  std::uint32_t largest_batch = 64;  ///< sizes are 1, 2, 4 … up to it
  std::uint64_t seed = 0;
};

/// A batch is B different requests. Each contributes one token of its own answer, at its own place in it, as
/// on a server where requests begin at different times. With p_i(l, e) the share of request i's decode tokens
/// that used expert e of layer l, the expected number of distinct experts of layer l, exact for a given
/// batch, is
///
///     sum over e of (1 - product over i in the batch of (1 - p_i(l, e)))
///
/// and the answer is its mean over all layers of the trace, averaged over batches drawn at random: mixed ones
/// from all requests, local ones from one cluster that is drawn in proportion to its size. Only requests that
/// decoded something take part. Sizes end where under half of those are in clusters of at least that size; at
/// each size both kinds are drawn from the requests of the clusters that are large enough, so that they
/// compare the same requests.
std::vector<BatchExperts> resample_distinct_experts(const signature::Trace& trace,
                                                    std::span<const std::uint32_t> cluster_of,
                                                    std::uint32_t clusters, const BatchSampling& sampling);

/// The inner sum for one batch, averaged over the layers.
double expected_distinct_experts(const signature::Trace& trace, std::span<const std::size_t> batch);

}  // namespace eldr::calibrator
