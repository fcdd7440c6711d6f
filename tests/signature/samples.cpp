// SPDX-License-Identifier: Apache-2.0
#include "tests/signature/samples.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace eldr::signature::samples {
namespace {

using Random = std::mt19937_64;

std::uint32_t below(Random& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random() % limit);
}

/// top_k different experts, three quarters of them from the domain's half.
std::vector<std::uint16_t> pick_experts(Random& random, const TraceShape& shape, bool law) {
  std::vector<std::uint16_t> picks;
  const std::uint32_t half = shape.experts / 2;
  while (picks.size() < shape.top_k) {
    const bool own = below(random, 4) != 0;
    const std::uint32_t expert =
        own && half > 0 ? below(random, half) + (law ? half : 0) : below(random, shape.experts);
    const auto narrow = static_cast<std::uint16_t>(expert);
    if (std::find(picks.begin(), picks.end(), narrow) == picks.end()) picks.push_back(narrow);
  }
  return picks;
}

}  // namespace

Trace trace(std::uint64_t seed, const TraceShape& shape) {
  Random random(seed);
  Trace trace;
  trace.model = "test/model";
  for (std::size_t l = 0; l < shape.layers; ++l) trace.layers.push_back(static_cast<std::int32_t>(2 * l + 1));
  trace.experts = shape.experts;
  trace.top_k = shape.top_k;
  const std::size_t row = shape.layers * shape.experts;
  trace.prefill_counts.resize(shape.requests * row);
  trace.decode_counts.resize(shape.requests * row);
  trace.decode_offsets.push_back(0);
  for (std::size_t r = 0; r < shape.requests; ++r) {
    const bool law = r % 2 == 1;
    trace.labels.emplace_back(law ? "law" : "code");
    trace.prompt_tokens.push_back(5 + below(random, 40));
    trace.decode_tokens.push_back(1 + below(random, 10));
    for (std::uint32_t token = 0; token < trace.prompt_tokens[r]; ++token) {
      for (std::size_t l = 0; l < shape.layers; ++l) {
        for (const auto expert : pick_experts(random, shape, law))
          ++trace.prefill_counts[r * row + l * shape.experts + expert];
      }
    }
    for (std::uint32_t token = 0; token < trace.decode_tokens[r]; ++token) {
      for (std::size_t l = 0; l < shape.layers; ++l) {
        for (const auto expert : pick_experts(random, shape, law)) {
          ++trace.decode_counts[r * row + l * shape.experts + expert];
          trace.decode_experts.push_back(expert);
        }
      }
    }
    trace.decode_offsets.push_back(trace.decode_offsets.back() + trace.decode_tokens[r]);
  }
  return trace;
}

CentroidSet centroids(std::uint64_t seed, const CentroidShape& shape) {
  Random random(seed);
  std::uniform_real_distribution<float> uniform(0.0F, 1.0F);
  CentroidSet set;
  set.model = "test/model";
  set.top_k = 2;
  set.spec.experts = shape.experts;
  set.spec.transform = Transform::kCountIdf;
  for (std::size_t l = 0; l < shape.layers; ++l)
    set.spec.layers.push_back(static_cast<std::int32_t>(2 * (shape.layers - l)));
  set.spec.idf.resize(static_cast<Eigen::Index>(shape.layers), static_cast<Eigen::Index>(shape.experts));
  for (float& weight : set.spec.idf.reshaped()) weight = 3 * uniform(random);
  set.centroids.resize(shape.clusters, static_cast<Eigen::Index>(set.spec.dimension()));
  for (float& value : set.centroids.reshaped()) {
    const float x = uniform(random);
    value = x * x * x;
  }
  set.centroids.rowwise().normalize();
  for (std::size_t r = 0; r < shape.requests; ++r) {
    set.assignment.push_back(static_cast<std::uint32_t>(r % static_cast<std::size_t>(shape.clusters)));
  }
  set.spread = 0.35123456789012345;
  set.rho = 0.1 + 0.2;
  set.rho_all_layers = -0.125;
  set.tau = 0.15;
  set.fit_hash = "8f3a1c";
  set.seed = 18446744073709551615U;
  set.best_similarity_quantiles = {
      {"p01", 0.5}, {"p10", 1.0 / 3}, {"p50", 0.75}, {"p90", 0.9}, {"p99", 0.999}};
  set.extra = {{"note", "kept as it is: \"\xC3\xA9\""}};
  return set;
}

std::vector<std::byte> bytes_of_text(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

}  // namespace eldr::signature::samples
