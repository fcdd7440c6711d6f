// SPDX-License-Identifier: Apache-2.0
// The routers' configuration file and the ConfigMap that holds it. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator/api/eldr_policy.h"

namespace eldr::op {

struct RouterConfigInputs {
  std::string decode_selector;            ///< labels of the decode pods, from the target's scale
  std::string centroids;                  ///< ConfigMap of the centroids; empty: route by load alone
  std::vector<std::int32_t> cluster_ids;  ///< centroid row -> cluster id; empty without centroids
};

/// router.yaml as docs/reference has it.
std::string router_yaml(const EldrPolicy& policy, const RouterConfigInputs& inputs);

/// Immutable, named `<policy>-r-<hash>` by the hash of its content. Its annotations say which centroids it
/// goes with and which ids their rows have, so that the next configuration can be matched to it.
Json router_config_map(const EldrPolicy& policy, const RouterConfigInputs& inputs);

/// On that ConfigMap: the cluster ids as a JSON list.
inline constexpr char kClusterIdsAnnotation[] = "eldr.dev/cluster-ids";
/// The ids that a router ConfigMap carries; empty when it has none or a wrong list.
std::vector<std::int32_t> cluster_ids_of(const Json& router_config_map);

}  // namespace eldr::op
