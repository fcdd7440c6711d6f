// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/memory_plan.h"

#include <algorithm>
#include <string>

#include "calibrator/fit/pairs.h"

namespace eldr::calibrator::cuda {
namespace {

constexpr std::uint64_t kAlignment = 256;
/// More rows at a time make no product faster.
constexpr std::uint64_t kLargestTile = std::uint64_t{256} << 20U;
/// Tiles take no more than this share of what there is.
constexpr std::uint64_t kTileShare = 16;
/// Left for the sums of clusters, 8 bytes a request and cluster.
constexpr std::uint64_t kClustersExpected = 256;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

tl::unexpected<Error> too_little(std::uint64_t needed, std::uint64_t available, const std::string& what) {
  const auto mebibytes = [](std::uint64_t bytes) { return std::to_string((bytes >> 20U) + 1); };
  return failure(Code::kResourceExhausted, "GPU memory: " + what + " needs at least " + mebibytes(needed) +
                                               " MiB; " + std::to_string(available >> 20U) +
                                               " MiB may be used");
}

}  // namespace

std::uint64_t Layout::add(std::uint64_t count, std::uint64_t element_bytes) {
  const std::uint64_t offset = bytes_;
  bytes_ += aligned(count * element_bytes);
  return offset;
}

std::uint64_t tile_rows(std::uint64_t n, std::uint64_t budget) {
  return std::clamp<std::uint64_t>(budget / (n * sizeof(double)), 1, n);
}

Result<ScorerPlan> plan_scorer(const ScorerShape& shape, std::uint64_t scratch_bytes,
                               std::uint64_t available) {
  const std::uint64_t n = shape.requests;
  const std::uint64_t pairs = pair_count(n);
  ScorerPlan plan;
  Layout layout;
  plan.tile_rows = tile_rows(n, std::min(kLargestTile, available / kTileShare));
  plan.upload = layout.add(n * shape.columns, sizeof(float));
  plan.rows = layout.add(n * shape.columns, sizeof(double));
  plan.tile = layout.add(plan.tile_rows * n, sizeof(double));
  plan.diagonal = layout.add(n, sizeof(double));
  plan.inverse = layout.add(n, sizeof(double));
  plan.sums = layout.add(pairs, sizeof(double));
  plan.ranks = layout.add(pairs, sizeof(std::uint32_t));
  for (std::uint64_t& buffer : plan.sort) {
    buffer = layout.add(pairs, sizeof(std::uint32_t));
  }
  plan.scratch = layout.add(scratch_bytes, 1);

  const std::uint64_t layer_pairs = plan.layer_pairs_bytes = aligned(pairs * sizeof(float));
  const std::uint64_t layer_features = plan.layer_features_bytes = aligned(n * shape.columns * sizeof(float));
  if (layout.bytes() + shape.layers * layer_pairs <= available) {
    plan.kept_layers = shape.layers;
  } else {
    // All others are kept as features, and one at a time as pairs.
    const std::uint64_t least = layout.bytes() + layer_pairs + shape.layers * layer_features;
    if (least > available) {
      return too_little(least, available, "scoring layers of " + std::to_string(n) + " requests");
    }
    if (layer_pairs > layer_features) {
      plan.kept_layers = std::min((available - least) / (layer_pairs - layer_features), shape.layers);
    }
  }
  const std::uint64_t others = shape.layers - plan.kept_layers;
  plan.kept = layout.add(plan.kept_layers, layer_pairs);
  if (others > 0) {
    plan.shared = layout.add(pairs, sizeof(float));
    plan.features = layout.add(others, layer_features);
  }
  plan.bytes = layout.bytes();
  return plan;
}

Result<SimilarityPlan> plan_similarities(std::uint64_t requests, std::uint64_t columns,
                                         std::uint64_t available) {
  SimilarityPlan plan;
  plan.tile_rows = tile_rows(requests, std::min(kLargestTile, available / kTileShare));
  plan.gram_bytes = aligned(requests * requests * sizeof(float));
  Layout layout;
  plan.rows = layout.add(requests * columns, sizeof(double));
  plan.tile = layout.add(plan.tile_rows * requests, sizeof(double));
  const std::uint64_t for_clusters = requests * kClustersExpected * sizeof(double);
  plan.kept = layout.bytes() + plan.gram_bytes + for_clusters <= available;
  if (!plan.kept) {
    plan.gram_bytes = 0;
    plan.narrow = layout.add(plan.tile_rows * requests, sizeof(float));
    if (layout.bytes() + for_clusters > available) {
      return too_little(layout.bytes() + for_clusters, available,
                        "clustering " + std::to_string(requests) + " requests");
    }
  }
  plan.work_bytes = layout.bytes();
  return plan;
}

}  // namespace eldr::calibrator::cuda
