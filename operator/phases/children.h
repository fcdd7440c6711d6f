// SPDX-License-Identifier: Apache-2.0
// Bringing children to their desired state with as few writes as possible: none when nothing differs.
#pragma once

#include "lib/kube/client.h"
#include "operator/api/eldr_policy.h"

namespace eldr::op {

struct Ensured {
  Json object;           ///< as the API server has it now
  bool written = false;  ///< it was created or changed
};

/// Server-side apply of the full intent, unless the live object has all of it already and was last applied
/// with the same intent. An outside edit of a field of the intent, a field that left the intent and a
/// deletion are all repaired. kAlreadyExists when an object of that name belongs to somebody else: it is left
/// alone.
Result<Ensured> ensure_child(const kube::Client& client, const kube::Resource& resource, Json desired);

/// Creates the object if there is none, and never changes it: for what is immutable or is changed by others.
Result<Ensured> ensure_created(const kube::Client& client, const kube::Resource& resource,
                               const Json& desired);

/// Deletes exactly the object that was seen (uid precondition). One that is gone counts as deleted.
Status remove_child(const kube::Client& client, const kube::Resource& resource, const Json& seen);

/// All of a resource that carry the policy's label and have it as their controller.
Result<std::vector<Json>> list_children(const kube::Client& client, const kube::Resource& resource,
                                        const EldrPolicy& policy, const std::string& component);

/// Whether `live` has every field of `desired`. Lists whose elements have names may have further ones, since
/// a server-side apply would leave them too; others compare whole, element by element. Quantities compare by
/// value
/// ("1000m" is "1"); an empty object or list is the same as an absent one.
bool contains_intent(const Json& live, const Json& desired);

}  // namespace eldr::op
