// SPDX-License-Identifier: Apache-2.0
// The kinds of objects that the project speaks about, and the URL paths under which the API serves them.
// Plain values: thread-safe once made.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace eldr::kube {

struct Resource {
  std::string group;  ///< empty for the core group
  std::string version;
  std::string plural;  ///< as in the URL: "configmaps"
  std::string kind;
  bool namespaced = true;

  /// "v1" or "apps/v1", as in an object's apiVersion.
  std::string api_version() const;
  /// Path of the collection: "/apis/apps/v1/namespaces/serving/deployments". An empty namespace of a
  /// namespaced resource means all namespaces (only lists and watches accept that).
  std::string collection_path(std::string_view ns) const;
  /// Path of one object, with a subresource ("status", "scale") where one is named.
  std::string object_path(std::string_view ns, std::string_view name,
                          std::string_view subresource = "") const;

  bool operator==(const Resource&) const = default;
};

/// What identifies an object among those of its resource. `ns` is empty for cluster-scoped objects.
struct ObjectKey {
  std::string ns;
  std::string name;

  /// "serving/qwen3", or "qwen3" without a namespace.
  std::string to_string() const;
  auto operator<=>(const ObjectKey&) const = default;
};

/// Percent-encodes everything but unreserved characters (RFC 3986): for one path segment or one query value.
std::string percent_encode(std::string_view text);

inline const Resource kPods{"", "v1", "pods", "Pod", true};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline const Resource kSecrets{"", "v1", "secrets", "Secret", true};
inline const Resource kServices{"", "v1", "services", "Service", true};
inline const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
inline const Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim",
                                              true};
inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const Resource kNodes{"", "v1", "nodes", "Node", false};
inline const Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
inline const Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet", true};
inline const Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet", true};
inline const Resource kJobs{"batch", "v1", "jobs", "Job", true};
inline const Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role", true};
inline const Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
inline const Resource kEvents{"events.k8s.io", "v1", "events", "Event", true};
inline const Resource kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget",
                                            true};
inline const Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true};
inline const Resource kCustomResourceDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                                 "CustomResourceDefinition", false};
inline const Resource kEldrPolicies{"eldr.dev", "v1alpha1", "eldrpolicies", "EldrPolicy", true};

}  // namespace eldr::kube

template <>
struct std::hash<eldr::kube::ObjectKey> {
  std::size_t operator()(const eldr::kube::ObjectKey& key) const noexcept {
    const std::size_t ns = std::hash<std::string>{}(key.ns);
    return std::hash<std::string>{}(key.name) ^ (ns + 0x9e3779b97f4a7c15ULL + (ns << 6) + (ns >> 2));
  }
};
