// SPDX-License-Identifier: Apache-2.0
#include "operator/desired/router_config.h"

#include "lib/base/digest.h"
#include "lib/kube/object.h"
#include "operator/api/labels.h"
#include "operator/desired/child.h"
#include "operator/desired/names.h"

namespace eldr::op {
namespace {
/// A JSON string is a YAML string.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}
}  // namespace

std::string router_yaml(const EldrPolicy& policy, const RouterConfigInputs& inputs) {
  const Spec& spec = policy.spec;
  std::string yaml = "listen: 0.0.0.0:8000\nadmin: 0.0.0.0:9090\n";
  if (!inputs.centroids.empty())
    yaml += "centroids: /etc/eldr-centroids/" + std::string(kCentroidsKey) + "\n";
  yaml += "kubernetes:\n  namespace: " + quoted(policy.key.ns) + "\n";
  yaml += "  prefill: {selector: " + quoted(selector_text(spec.prefill.selector)) +
          ", port: " + std::to_string(spec.prefill.port) + "}\n";
  yaml += "  decode: {selector: " + quoted(inputs.decode_selector) +
          ", port: " + std::to_string(spec.decode.port) + "}\n";
  yaml += "routing:\n  policy: " + spec.routing.policy + "\n  tau: " + spec.routing.tau + "\n";
  if (!spec.routing.load_weight.empty()) yaml += "  loadWeight: " + spec.routing.load_weight + "\n";
  yaml += "  prefillPolicy: " + spec.routing.prefill_policy + "\n";
  if (!inputs.centroids.empty()) {
    std::string list;
    for (const std::int32_t id : inputs.cluster_ids) list += (list.empty() ? "" : ", ") + std::to_string(id);
    yaml += "clusterIds: [" + list + "]\n";
  }
  yaml += "drainSeconds: " + std::to_string(spec.router.drain_seconds) + "\n";
  return yaml;
}

Json router_config_map(const EldrPolicy& policy, const RouterConfigInputs& inputs) {
  const std::string yaml = router_yaml(policy, inputs);
  const std::string hash = sha256_hex(yaml + "\n" + inputs.centroids).substr(0, 10);
  Json map = child_object(kube::kConfigMaps, policy, router_config_name(policy.key.name, hash),
                          "eldr-router-config");
  map["metadata"]["annotations"] = {{kCentroidsAnnotation, inputs.centroids},
                                    {kClusterIdsAnnotation, Json(inputs.cluster_ids).dump()}};
  map["immutable"] = true;
  map["data"] = {{"router.yaml", yaml}};
  return map;
}

std::vector<std::int32_t> cluster_ids_of(const Json& router_config_map) {
  const auto text = kube::annotation_of(router_config_map, kClusterIdsAnnotation);
  if (!text) return {};
  const Json list = Json::parse(*text, nullptr, false);
  if (!list.is_array() || list.size() > static_cast<std::size_t>(kMaxClusters)) return {};
  std::vector<std::int32_t> ids;
  for (const Json& entry : list) {
    if (!entry.is_number_integer()) return {};
    ids.push_back(entry.get<std::int32_t>());
  }
  return ids;
}

}  // namespace eldr::op
