// SPDX-License-Identifier: Apache-2.0
// Phase 5: cluster ids. An id is the identity of what a decode pod serves, carried by the pod's label
// eldr.dev/cluster; a row number of a centroid file is not, since rows of two fits have nothing to do with
// each other.
//
//   choose_cluster_ids  gives the rows of the wanted configuration ids so that the fewest pods change what
//   they serve; label_decode_pods   gives ids to pods: set when a pod is first Ready, kept for its life, a
//   vacant id goes to a
//                       replacement.
//
// The labels stay on the pods when a policy is deleted: nobody reads them then, and a later policy takes over
// what fits its configuration and relabels the rest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/phases/scope.h"

namespace eldr::op {

/// Fills scope.cluster_ids for scope.wanted_config.
void choose_cluster_ids(Scope& scope);

/// Labels the pods for the configuration in `scope.cluster_ids`.
void label_decode_pods(Scope& scope);

/// Which pods get which id (pod name -> id). Pure. A pod keeps a valid id that no older pod has; a Ready pod
/// without one takes the smallest vacant id, oldest pod first; the others are left as they are.
std::map<std::string, std::int32_t> plan_cluster_labels(const std::vector<Json>& pods,
                                                        const std::vector<std::int32_t>& ids);

/// The id on a pod; nothing when it has none or the label is no number.
std::optional<std::int32_t> cluster_id_of(const Json& pod);

}  // namespace eldr::op
