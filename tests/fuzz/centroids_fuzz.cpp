// SPDX-License-Identifier: Apache-2.0
// The centroid file: what is accepted can be routed with, matched and written again.
#include <cmath>
#include <numeric>
#include <set>

#include "lib/signature/centroids.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/signature/samples.h"

namespace eldr::fuzz {
namespace {

using namespace signature;

void route_with(const CentroidSet& set) {
  ExpertCounts counts;
  counts.layers = set.spec.layers;
  counts.experts = set.spec.experts;
  counts.counts.resize(set.spec.dimension());
  std::iota(counts.counts.begin(), counts.counts.end(), 1U);
  const auto signature = signature_of(set.spec, counts);
  require(signature.has_value(), "counts of the file's shape have a signature");
  if (!*signature) return;  // every weight may be zero
  for (const float similarity : similarities(set.centroids, **signature)) {
    require(std::abs(similarity) < 1.02F, "similarities are cosines");
  }
}

void match_with_itself(const CentroidSet& set) {
  std::vector<std::int32_t> ids(set.clusters());
  std::iota(ids.begin(), ids.end(), 5);
  const auto matched = match_cluster_ids(set, set, ids, ids);
  require(std::set<std::int32_t>(matched.begin(), matched.end()) ==
              std::set<std::int32_t>(ids.begin(), ids.end()),
          "matching a set with itself hands on every id");
}

void run(std::span<const std::byte> input) {
  const auto set = parse_centroids(input);
  if (!set) {
    require(set.error().code == Code::kInvalid && !set.error().message.empty(), "a refusal has a reason");
    return;
  }
  require(set->max_cluster_share() <= 1, "a share is at most the whole");
  route_with(*set);
  if (set->clusters() <= 64) match_with_itself(*set);
  const auto written = serialize_centroids(*set);
  if (!written) {
    require(written.error().code == Code::kResourceExhausted,
            "what was read can be written, or is too large");
    return;
  }
  const auto again = parse_centroids(*written);
  require(again.has_value(), "what was written can be read");
  require(again->rho == set->rho && again->assignment == set->assignment &&
              again->spec.idf == set->spec.idf && again->extra == set->extra,
          "reading and writing keeps everything but the last bits of the centroids");
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> seeds;
  auto set = samples::centroids(1, {.clusters = 2, .layers = 2, .experts = 4, .requests = 3});
  for (const DType dtype : {DType::kI8, DType::kF16, DType::kF32})
    seeds.push_back(serialize_centroids(set, dtype).value());
  set.placement.assign(2 * 2 * 4, 1);
  set.spec.transform = Transform::kBinary;
  set.spec.idf.setOnes();
  set.extra.clear();
  seeds.push_back(serialize_centroids(set).value());
  return seeds;
}

ELDR_FUZZ_TARGET(centroids, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
