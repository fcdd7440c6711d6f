// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/history.h"

#include <algorithm>
#include <tuple>

#include "lib/kube/object.h"
#include "operator/api/labels.h"
#include "operator/desired/names.h"
#include "operator/phases/children.h"

namespace eldr::op {
namespace {

void add_template(std::set<std::string>& in_use, const Json& workload) {
  for (const char* name : {kCentroidsAnnotation, kRouterConfigAnnotation}) {
    const std::string map = kube::string_at(workload, {"spec", "template", "metadata", "annotations", name});
    if (!map.empty()) in_use.insert(map);
  }
}

/// ConfigMaps that routers mount or may mount again: of the Deployment, of ReplicaSets that have pods, and of
/// the one to which a failed roll-out would go back.
Result<std::set<std::string>> config_maps_in_use(const Scope& scope) {
  std::set<std::string> in_use;
  if (scope.wanted_config) in_use.insert(*scope.wanted_config);
  if (scope.active_config) in_use.insert({scope.active_config->name, scope.active_config->router_config});
  const auto deployment =
      scope.client().get(kube::kDeployments, {scope.policy.key.ns, router_name(scope.policy.key.name)});
  if (!deployment) {
    if (deployment.error().code == Code::kNotFound) return in_use;
    return failure(deployment.error());
  }
  add_template(in_use, *deployment);
  const std::string last_good = kube::annotation_of(*deployment, kLastGoodAnnotation).value_or("");
  const auto sets =
      scope.client().list(kube::kReplicaSets, scope.policy.key.ns,
                          {.label_selector = std::string(kPolicyLabel) + "=" + scope.policy.key.name + "," +
                                             kNameLabel + "=eldr-router"});
  if (!sets) return failure(sets.error());
  for (const Json& set : sets->items) {
    const bool live = kube::int_at(set, {"spec", "replicas"}).value_or(0) > 0 ||
                      kube::int_at(set, {"status", "replicas"}).value_or(0) > 0;
    const bool good =
        !last_good.empty() && kube::string_at(set, {"spec", "template", "metadata", "annotations",
                                                    kTemplateAnnotation}) == last_good;
    if (live || good) add_template(in_use, set);
  }
  return in_use;
}

void remove_maps(Scope& scope, const std::vector<std::string>& names, const std::vector<Json>& maps) {
  for (const Json& map : maps) {
    if (std::find(names.begin(), names.end(), kube::object_name(map)) == names.end()) continue;
    if (const Status removed = remove_child(scope.client(), kube::kConfigMaps, map); !removed)
      scope.errors.push_back(removed.error());
  }
}

}  // namespace

std::vector<std::string> beyond_limit(const std::vector<std::string>& newest_first,
                                      const std::set<std::string>& in_use, std::int64_t limit) {
  std::vector<std::string> beyond;
  std::int64_t kept = 0;
  for (const std::string& name : newest_first)
    if (in_use.count(name) == 0 && ++kept > limit) beyond.push_back(name);
  return beyond;
}

void prune_history(Scope& scope) {
  if (!scope.published_known) return;
  const std::int64_t limit = scope.policy.spec.config_history_limit;
  auto configs = list_children(scope.client(), kube::kConfigMaps, scope.policy, "eldr-router-config");
  if (!configs) {
    scope.errors.push_back(configs.error());
    return;
  }
  const auto few = [limit](std::size_t count) { return static_cast<std::int64_t>(count) <= limit; };
  if (few(scope.published.size()) && few(configs->size())) return;
  const auto in_use = config_maps_in_use(scope);
  if (!in_use) {
    scope.errors.push_back(in_use.error());
    return;
  }
  std::vector<std::string> centroids;
  std::vector<Json> objects;
  for (const PublishedConfig& config : scope.published) {
    centroids.push_back(config.name);
    objects.push_back(config.object);
  }
  const auto old_centroids = beyond_limit(centroids, *in_use, limit);
  remove_maps(scope, old_centroids, objects);
  std::erase_if(scope.published, [&old_centroids](const PublishedConfig& config) {
    return std::find(old_centroids.begin(), old_centroids.end(), config.name) != old_centroids.end();
  });

  std::sort(configs->begin(), configs->end(), [](const Json& a, const Json& b) {
    const auto age = [](const Json& map) {
      return std::tuple(kube::string_at(map, {"metadata", "creationTimestamp"}), kube::object_name(map));
    };
    return age(b) < age(a);
  });
  std::vector<std::string> names;
  for (const Json& map : *configs) names.push_back(kube::object_name(map));
  remove_maps(scope, beyond_limit(names, *in_use, limit), *configs);
}

}  // namespace eldr::op
