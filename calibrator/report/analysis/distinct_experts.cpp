// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/distinct_experts.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

using Requests = std::vector<std::size_t>;

/// `count` different items, by the first steps of a Fisher-Yates shuffle; `items` is left in another order.
std::span<const std::size_t> draw(Requests& items, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(items[i], items[i + random.below(items.size() - i)]);
  }
  return std::span(items).first(count);
}

std::vector<Requests> decoded_by_cluster(const signature::Trace& trace,
                                         std::span<const std::uint32_t> cluster_of, std::uint32_t clusters) {
  std::vector<Requests> members(clusters);
  for (std::size_t r = 0; r < trace.requests(); ++r) {
    if (trace.decode_tokens[r] > 0) {
      members[cluster_of[r]].push_back(r);
    }
  }
  return members;
}

std::size_t total(const std::vector<Requests>& members) {
  return std::accumulate(members.begin(), members.end(), std::size_t{0},
                         [](std::size_t sum, const Requests& cluster) { return sum + cluster.size(); });
}

BatchStatistics statistics_of(std::vector<double> values) {
  const auto count = static_cast<double>(values.size());
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) { return values[static_cast<std::size_t>(share * (count - 1))]; };
  BatchStatistics statistics{std::accumulate(values.begin(), values.end(), 0.0) / count, at(0.1), at(0.9), 0};
  double squares = 0;
  for (const double value : values) {
    squares += (value - statistics.mean) * (value - statistics.mean);
  }
  statistics.error = count > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
  return statistics;
}

BatchExperts compare(std::uint32_t batch, const std::vector<double>& mixed,
                     const std::vector<double>& local) {
  BatchExperts result{batch, statistics_of(mixed), statistics_of(local), 0, 0};
  if (batch == 1) {  // one token uses top_k experts, whoever sent it
    return result;
  }
  const double ratio = result.local.mean / result.mixed.mean;
  result.saving = 1 - ratio;
  result.saving_error =
      ratio * std::hypot(result.local.error / result.local.mean, result.mixed.error / result.mixed.mean);
  return result;
}

}  // namespace

double expected_distinct_experts(const signature::Trace& trace, std::span<const std::size_t> batch) {
  const auto cells = static_cast<Eigen::Index>(trace.layers.size() * trace.experts);
  Eigen::ArrayXf idle =
      Eigen::ArrayXf::Ones(cells);  // probability that no request of the batch uses the expert
  for (const std::size_t request : batch) {
    const Eigen::Map<const Eigen::Array<std::uint32_t, Eigen::Dynamic, 1>> counts(
        trace.decode(request).data(), cells);
    idle *= 1 - counts.cast<float>() / static_cast<float>(trace.decode_tokens[request]);
  }
  return static_cast<double>((1 - idle).sum()) / static_cast<double>(trace.layers.size());
}

std::vector<BatchExperts> resample_distinct_experts(const signature::Trace& trace,
                                                    std::span<const std::uint32_t> cluster_of,
                                                    std::uint32_t clusters, const BatchSampling& sampling) {
  std::vector<Requests> members = decoded_by_cluster(trace, cluster_of, clusters);
  const std::size_t decoded = total(members);
  std::vector<BatchExperts> results;
  for (std::uint32_t batch = 1; batch <= sampling.largest_batch; batch *= 2) {
    std::erase_if(members, [&](const Requests& cluster) { return cluster.size() < batch; });
    if (members.empty() || 2 * total(members) < decoded) {
      break;
    }
    Requests all;
    std::vector<std::size_t> owner;  // a cluster for each request: drawing from it draws clusters by size
    for (std::size_t m = 0; m < members.size(); ++m) {
      all.insert(all.end(), members[m].begin(), members[m].end());
      owner.insert(owner.end(), members[m].size(), m);
    }
    Random random(sampling.seed, 0xD15C + batch);
    std::vector<double> mixed;
    std::vector<double> local;
    for (std::uint32_t i = 0; i < sampling.draws; ++i) {
      mixed.push_back(expected_distinct_experts(trace, draw(all, batch, random)));
      local.push_back(
          expected_distinct_experts(trace, draw(members[owner[random.below(owner.size())]], batch, random)));
    }
    results.push_back(compare(batch, mixed, local));
  }
  return results;
}

}  // namespace eldr::calibrator
