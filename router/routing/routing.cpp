// SPDX-License-Identifier: Apache-2.0
#include "router/routing/routing.h"

#include "lib/base/digest.h"

namespace eldr::router {
namespace {

std::string short_digest(std::string_view data) { return sha256_hex(data).substr(0, 10); }

std::string json_list(const std::vector<std::int32_t>& numbers) {
  std::string text = "[";
  for (const auto number : numbers) (text += text.size() > 1 ? "," : "") += std::to_string(number);
  return text + "]";
}

Status map_clusters(const Config& config, Routing& routing) {
  const auto rows = routing.centroids->centroids.rows();
  const auto& ids = config.cluster_ids;
  if (!ids.empty() && static_cast<Eigen::Index>(ids.size()) != rows)
    return failure(Code::kInvalid, "clusterIds: " + std::to_string(ids.size()) +
                                       " ids are not allowed, the centroid file has " + std::to_string(rows) +
                                       " rows");
  for (Eigen::Index row = 0; row < rows; ++row)
    routing
        .row_of_cluster[ids.empty() ? static_cast<std::int32_t>(row) : ids[static_cast<std::size_t>(row)]] =
        row;
  return {};
}

}  // namespace

Result<std::shared_ptr<const Routing>> make_routing(const Config& config, std::string_view config_text,
                                                    std::optional<std::span<const std::byte>> centroid_file) {
  auto routing = std::make_shared<Routing>();
  routing->config = config.routing;
  routing->revision = short_digest(config_text);
  double spread = 0;
  if (centroid_file) {
    auto set = signature::parse_centroids(*centroid_file);
    if (!set) return failure(set.error().with_context("centroids " + config.centroids));
    spread = set->spread;
    routing->centroids = std::move(*set);
    if (auto status = map_clusters(config, *routing); !status) return failure(status.error());
    routing->centroids_revision = short_digest(as_text(*centroid_file));
    routing->revision = short_digest(routing->revision + routing->centroids_revision);
  }
  routing->decode = make_decode_policy(config.routing, spread);
  routing->prefill = make_prefill_policy(config.routing);
  if (routing->centroids && routing->decode->uses_signature())
    routing->wanted_layers = json_list(routing->centroids->spec.layers);
  return std::shared_ptr<const Routing>(std::move(routing));
}

}  // namespace eldr::router
