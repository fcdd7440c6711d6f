// SPDX-License-Identifier: Apache-2.0
// What all desired objects share: metadata with the owner, and restricted Pod Security. Pure functions.
#pragma once

#include <string>

#include "operator/api/eldr_policy.h"

namespace eldr::op {

/// apiVersion, kind and metadata of a child: name, namespace, labels (app.kubernetes.io/name is `component`),
/// and the policy as its controller, so that deleting the policy deletes it.
Json child_object(const kube::Resource& resource, const EldrPolicy& policy, const std::string& name,
                  const std::string& component);
/// The labels that select the pods of a component of a policy.
Json selector_labels(const EldrPolicy& policy, const std::string& component);

/// securityContext of a pod: non-root 65532, RuntimeDefault seccomp.
Json restricted_pod_security();
/// securityContext of a container: no capabilities, no escalation, and a read-only root file system where
/// `read_only_root`.
Json restricted_container_security(bool read_only_root);

/// Sets a member unless the value is null or empty, so that intents hold no empty fields.
void set_unless_empty(Json& object, const char* name, Json value);
/// [{"name": …}] of references.
Json references(const std::vector<NameRef>& names);

}  // namespace eldr::op
