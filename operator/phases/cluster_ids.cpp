// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/cluster_ids.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <tuple>

#include "lib/kube/object.h"
#include "lib/signature/centroids.h"
#include "operator/api/labels.h"
#include "operator/desired/router_config.h"
#include "operator/phases/result.h"
#include "operator/phases/workers.h"

namespace eldr::op {
namespace {

const PublishedConfig* find_config(const Scope& scope, const std::string& name) {
  const auto found = std::find_if(scope.published.begin(), scope.published.end(),
                                  [&name](const PublishedConfig& config) { return config.name == name; });
  return found == scope.published.end() ? nullptr : &*found;
}

/// Ids that pods have now and will go on to have.
std::vector<std::int32_t> live_ids(const std::vector<Json>& pods) {
  std::set<std::int32_t> ids;
  for (const Json& pod : pods)
    if (const auto id = cluster_id_of(pod); id && !kube::is_deleting(pod)) ids.insert(*id);
  return {ids.begin(), ids.end()};
}

std::vector<const Json*> oldest_first(const std::vector<Json>& pods) {
  std::vector<const Json*> order;
  for (const Json& pod : pods)
    if (!kube::is_deleting(pod)) order.push_back(&pod);
  const auto age = [](const Json* pod) {
    return std::tuple(kube::string_at(*pod, {"metadata", "creationTimestamp"}), kube::object_name(*pod));
  };
  std::sort(order.begin(), order.end(), [&age](const Json* a, const Json* b) { return age(a) < age(b); });
  return order;
}

}  // namespace

std::optional<std::int32_t> cluster_id_of(const Json& pod) {
  const auto text = kube::label_of(pod, kClusterLabel);
  if (!text || text->empty()) return {};
  std::int32_t id = 0;
  const auto result = std::from_chars(text->data(), text->data() + text->size(), id);
  if (result.ec != std::errc() || result.ptr != text->data() + text->size() || id < 0) return {};
  return id;
}

void choose_cluster_ids(Scope& scope) {
  if (!scope.wanted_config) return;
  const PublishedConfig* next = find_config(scope, *scope.wanted_config);
  if (next == nullptr) return;

  // The routers have this configuration already: its ids stay.
  const std::vector<std::int32_t> present_ids =
      scope.router ? cluster_ids_of(scope.router->router_config_map) : std::vector<std::int32_t>();
  if (scope.router && scope.router->centroids == next->name &&
      static_cast<std::int64_t>(present_ids.size()) == next->clusters) {
    scope.cluster_ids = present_ids;
    return;
  }
  const auto next_set = read_centroids(next->object);
  if (!next_set) return;  // the calibration phase has said so
  const PublishedConfig* present = scope.router ? find_config(scope, scope.router->centroids) : nullptr;
  if (present != nullptr && !present_ids.empty()) {
    const auto present_set = read_centroids(present->object);
    if (present_set && present_set->clusters() == present_ids.size()) {
      scope.cluster_ids =
          signature::match_cluster_ids(*next_set, *present_set, present_ids, live_ids(scope.decode_pods));
      return;
    }
  }
  scope.cluster_ids.resize(next_set->clusters());
  std::iota(scope.cluster_ids.begin(), scope.cluster_ids.end(), 0);
}

std::map<std::string, std::int32_t> plan_cluster_labels(const std::vector<Json>& pods,
                                                        const std::vector<std::int32_t>& ids) {
  std::set<std::int32_t> vacant(ids.begin(), ids.end());
  std::vector<const Json*> without;
  for (const Json* pod : oldest_first(pods)) {
    const auto id = cluster_id_of(*pod);
    if (id && vacant.erase(*id) > 0) continue;  // it keeps its id
    if (is_ready_worker(*pod)) without.push_back(pod);
  }
  std::map<std::string, std::int32_t> plan;
  for (const Json* pod : without) {
    if (vacant.empty()) break;
    plan[kube::object_name(*pod)] = *vacant.begin();
    vacant.erase(vacant.begin());
  }
  return plan;
}

void label_decode_pods(Scope& scope) {
  const auto plan = plan_cluster_labels(scope.decode_pods, scope.cluster_ids);
  std::string done;
  for (const Json& pod : scope.decode_pods) {
    const auto planned = plan.find(kube::object_name(pod));
    if (planned == plan.end()) continue;
    const std::string id = std::to_string(planned->second);
    const auto patched =
        scope.client().patch(kube::kPods, kube::key_of(pod), kube::PatchType::kMerge,
                             {{"metadata", {{"uid", kube::uid_of(pod)}, {"labels", {{kClusterLabel, id}}}}}});
    if (!patched) {
      if (patched.error().code != Code::kNotFound) scope.errors.push_back(patched.error());
      continue;
    }
    done += (done.empty() ? "" : ", ") + planned->first + " serves cluster " + id;
  }
  if (!done.empty()) scope.event(kube::EventType::kNormal, "ClusterIdsAssigned", "Labelling", done);
}

}  // namespace eldr::op
