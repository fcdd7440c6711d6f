// SPDX-License-Identifier: Apache-2.0
#include "operator/desired/child.h"

#include "lib/kube/object.h"
#include "operator/api/labels.h"

namespace eldr::op {

Json selector_labels(const EldrPolicy& policy, const std::string& component) {
  return {{kNameLabel, component}, {kInstanceLabel, policy.key.name}, {kPolicyLabel, policy.key.name}};
}

Json child_object(const kube::Resource& resource, const EldrPolicy& policy, const std::string& name,
                  const std::string& component) {
  Json labels = selector_labels(policy, component);
  labels[kManagedByLabel] = kManager;
  labels[kPartOfLabel] = "eldr";
  const Json owner = {{"metadata", {{"name", policy.key.name}, {"uid", policy.uid}}}};
  return {{"apiVersion", resource.api_version()},
          {"kind", resource.kind},
          {"metadata",
           {{"name", name},
            {"namespace", policy.key.ns},
            {"labels", labels},
            {"ownerReferences", Json::array({kube::controller_reference(kube::kEldrPolicies, owner)})}}}};
}

Json restricted_pod_security() {
  return {{"runAsNonRoot", true},
          {"runAsUser", 65532},
          {"runAsGroup", 65532},
          {"fsGroup", 65532},
          {"fsGroupChangePolicy", "OnRootMismatch"},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

Json restricted_container_security(bool read_only_root) {
  Json context = {{"allowPrivilegeEscalation", false},
                  {"runAsNonRoot", true},
                  {"capabilities", {{"drop", Json::array({"ALL"})}}},
                  {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (read_only_root) context["readOnlyRootFilesystem"] = true;
  return context;
}

void set_unless_empty(Json& object, const char* name, Json value) {
  const bool is_empty = value.is_null() || (value.is_structured() && value.empty()) ||
                        (value.is_string() && value.get_ref<const std::string&>().empty());
  if (!is_empty) object[name] = std::move(value);
}

Json references(const std::vector<NameRef>& names) {
  Json list = Json::array();
  for (const NameRef& reference : names) list.push_back({{"name", reference.name}});
  return list;
}

}  // namespace eldr::op
