// SPDX-License-Identifier: Apache-2.0
// Everything a decision needs that a reload may change, as one immutable object: policies, centroids and what
// is derived from them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "lib/base/status.h"
#include "lib/signature/centroids.h"
#include "router/config/config.h"
#include "router/policies/policy.h"

namespace eldr::router {

/// Immutable; shared between threads by shared_ptr.
struct Routing {
  RoutingConfig config;
  std::optional<signature::CentroidSet> centroids;
  std::unordered_map<std::int32_t, Eigen::Index> row_of_cluster;
  std::string wanted_layers;  ///< JSON list asked of prefill workers; empty: counts are of no use
  std::unique_ptr<const DecodePolicy> decode;
  std::unique_ptr<const PrefillPolicy> prefill;
  std::string revision;            ///< first 10 hex digits of the SHA-256 over file and centroids
  std::string centroids_revision;  ///< the same of the centroid file alone, "" without
};

/// `centroid_file` absent: routing by load. kInvalid: the file, or clusterIds that do not fit it.
Result<std::shared_ptr<const Routing>> make_routing(const Config& config, std::string_view config_text,
                                                    std::optional<std::span<const std::byte>> centroid_file);

}  // namespace eldr::router
