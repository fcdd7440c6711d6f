// SPDX-License-Identifier: Apache-2.0
#include "operator/desired/router_workload.h"

#include "operator/api/labels.h"
#include "operator/desired/child.h"
#include "operator/desired/names.h"
#include "operator/inputs/calibration_inputs.h"

namespace eldr::op {
namespace {

constexpr char kRouterComponent[] = "eldr-router";
constexpr int kDataPort = 8000;
constexpr int kAdminPort = 9090;
/// A router that ends goes on listening for so long, until every client's view of the Service has followed.
constexpr int kLameDuckSeconds = 5;
/// Margin between the end of draining and the kill.
constexpr int kGraceMargin = 10;

Json child(const kube::Resource& resource, const EldrPolicy& policy) {
  return child_object(resource, policy, router_name(policy.key.name), kRouterComponent);
}

Json admin_probe(const char* path, int period, int failures) {
  return {{"httpGet", {{"path", path}, {"port", "admin"}}},
          {"periodSeconds", period},
          {"timeoutSeconds", 2},
          {"failureThreshold", failures}};
}

Json spread_over_nodes(const EldrPolicy& policy) {
  return Json::array({{{"maxSkew", 1},
                       {"topologyKey", "kubernetes.io/hostname"},
                       {"whenUnsatisfiable", "ScheduleAnyway"},
                       {"labelSelector", {{"matchLabels", selector_labels(policy, kRouterComponent)}}}}});
}

}  // namespace

Json router_pod_template(const EldrPolicy& policy, const RouterPodInputs& inputs) {
  const Router& router = policy.spec.router;
  Json mounts = Json::array({{{"name", "config"}, {"mountPath", "/etc/eldr"}, {"readOnly", true}},
                             {{"name", "tmp"}, {"mountPath", "/tmp"}}});
  Json volumes = Json::array({{{"name", "config"}, {"configMap", {{"name", inputs.router_config}}}},
                              {{"name", "tmp"}, {"emptyDir", Json::object()}}});
  if (!inputs.centroids.empty()) {
    mounts.push_back({{"name", "centroids"}, {"mountPath", "/etc/eldr-centroids"}, {"readOnly", true}});
    volumes.push_back({{"name", "centroids"}, {"configMap", {{"name", inputs.centroids}}}});
  }
  Json container = {
      {"name", kRouterContainer},
      {"image", router.image.empty() ? inputs.image : router.image},
      {"args", Json::array({"--config", "/etc/eldr/router.yaml", "--log-format", "json",
                            "--lame-duck-seconds", std::to_string(kLameDuckSeconds)})},
      {"ports", Json::array({{{"name", "http"}, {"containerPort", kDataPort}, {"protocol", "TCP"}},
                             {{"name", "admin"}, {"containerPort", kAdminPort}, {"protocol", "TCP"}}})},
      {"readinessProbe", admin_probe("/readyz", 2, 2)},
      {"livenessProbe", admin_probe("/healthz", 10, 6)},
      {"volumeMounts", mounts},
      {"securityContext", restricted_container_security(true)}};
  set_unless_empty(container, "resources", router.resources);

  Json pod = {{"serviceAccountName", router_name(policy.key.name)},
              {"securityContext", restricted_pod_security()},
              {"terminationGracePeriodSeconds", router.drain_seconds + kLameDuckSeconds + kGraceMargin},
              {"topologySpreadConstraints", spread_over_nodes(policy)},
              {"containers", Json::array({container})},
              {"volumes", volumes}};
  set_unless_empty(pod, "nodeSelector", router.node_selector);
  set_unless_empty(pod, "tolerations", router.tolerations);
  set_unless_empty(pod, "affinity", router.affinity);
  set_unless_empty(pod, "priorityClassName", router.priority_class_name);
  set_unless_empty(pod, "imagePullSecrets", references(router.image_pull_secrets));

  Json annotations = {{kRouterConfigAnnotation, inputs.router_config},
                      {"prometheus.io/scrape", "true"},
                      {"prometheus.io/port", std::to_string(kAdminPort)}};
  if (!inputs.centroids.empty()) annotations[kCentroidsAnnotation] = inputs.centroids;
  Json made = {
      {"metadata", {{"labels", selector_labels(policy, kRouterComponent)}, {"annotations", annotations}}},
      {"spec", pod}};
  made["metadata"]["annotations"][kTemplateAnnotation] = hash_of(made).substr(0, 16);
  return made;
}

Json router_deployment(const EldrPolicy& policy, const Json& pod_template, const RolloutMemory& memory) {
  Json deployment = child(kube::kDeployments, policy);
  Json annotations = Json::object();
  set_unless_empty(annotations, kLastGoodAnnotation, memory.last_good);
  set_unless_empty(annotations, kFailedAnnotation, memory.failed);
  set_unless_empty(annotations, kFailureAnnotation, memory.failed_because);
  set_unless_empty(deployment["metadata"], "annotations", annotations);
  deployment["spec"] = {
      {"replicas", policy.spec.router.replicas},
      {"progressDeadlineSeconds", policy.spec.router.progress_deadline_seconds},
      {"revisionHistoryLimit", 5},
      {"selector", {{"matchLabels", selector_labels(policy, kRouterComponent)}}},
      {"strategy", {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxUnavailable", 0}, {"maxSurge", 1}}}}},
      {"template", pod_template}};
  return deployment;
}

Json router_service(const EldrPolicy& policy) {
  Json service = child(kube::kServices, policy);
  service["spec"] = {{"type", policy.spec.router.service.type},
                     {"selector", selector_labels(policy, kRouterComponent)},
                     {"ports", Json::array({{{"name", "http"},
                                             {"port", policy.spec.router.service.port},
                                             {"targetPort", kDataPort},
                                             {"protocol", "TCP"}}})}};
  return service;
}

Json router_disruption_budget(const EldrPolicy& policy) {
  Json budget = child(kube::kPodDisruptionBudgets, policy);
  budget["spec"] = {{"maxUnavailable", 1},
                    {"unhealthyPodEvictionPolicy", "AlwaysAllow"},
                    {"selector", {{"matchLabels", selector_labels(policy, kRouterComponent)}}}};
  return budget;
}

Json router_service_account(const EldrPolicy& policy) { return child(kube::kServiceAccounts, policy); }

Json router_role(const EldrPolicy& policy) {
  Json role = child(kube::kRoles, policy);
  role["rules"] = Json::array({{{"apiGroups", Json::array({""})},
                                {"resources", Json::array({"pods"})},
                                {"verbs", Json::array({"get", "list", "watch"})}}});
  return role;
}

Json router_role_binding(const EldrPolicy& policy) {
  const std::string name = router_name(policy.key.name);
  Json binding = child(kube::kRoleBindings, policy);
  binding["roleRef"] = {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", name}};
  binding["subjects"] =
      Json::array({{{"kind", "ServiceAccount"}, {"name", name}, {"namespace", policy.key.ns}}});
  return binding;
}

std::string router_url(const EldrPolicy& policy) {
  return "http://" + router_name(policy.key.name) + "." + policy.key.ns + ":" +
         std::to_string(policy.spec.router.service.port);
}

}  // namespace eldr::op
