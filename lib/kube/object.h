// SPDX-License-Identifier: Apache-2.0
// Reading API objects without surprises: a field that is absent, or of another type, reads as empty and never
// throws. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/json.h"
#include "lib/kube/resource.h"

namespace eldr::kube {

/// The value under a path of member names, or nullptr. The pointer lives as long as the object is unchanged.
/// find(pod, {"status", "phase"})
const Json* find(const Json& object, std::initializer_list<std::string_view> path);
/// The string there, or "".
std::string string_at(const Json& object, std::initializer_list<std::string_view> path);
/// The integer there, or nothing.
std::optional<std::int64_t> int_at(const Json& object, std::initializer_list<std::string_view> path);
/// The boolean there, or false.
bool bool_at(const Json& object, std::initializer_list<std::string_view> path);

std::string object_name(const Json& object);
std::string object_namespace(const Json& object);
ObjectKey key_of(const Json& object);
std::string uid_of(const Json& object);
std::string resource_version_of(const Json& object);
std::int64_t generation_of(const Json& object);  ///< 0 when absent
/// metadata.deletionTimestamp is set.
bool is_deleting(const Json& object);
std::optional<std::string> label_of(const Json& object, std::string_view label);
std::optional<std::string> annotation_of(const Json& object, std::string_view annotation);
void set_label(Json& object, std::string_view label, std::string_view value);
void set_annotation(Json& object, std::string_view annotation, std::string_view value);

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool operator==(const OwnerReference&) const = default;
};
/// An entry for a child's metadata.ownerReferences: controller and blockOwnerDeletion are true.
Json controller_reference(const Resource& owner_resource, const Json& owner);
/// The owner whose entry says controller: true.
std::optional<OwnerReference> controller_of(const Json& object);
/// Whether the object's controller has that uid.
bool is_controlled_by(const Json& object, std::string_view owner_uid);

/// The entry of status.conditions with that type, or nullptr.
const Json* find_condition(const Json& object, std::string_view type);
/// Whether that condition's status is "True".
bool condition_is_true(const Json& object, std::string_view type);
/// metav1.Condition. `status` is "True", "False" or "Unknown".
struct Condition {
  std::string type, status, reason, message;
  std::int64_t observed_generation = 0;
};
/// Sets a condition in a conditions array (null becomes an array): lastTransitionTime moves only when the
/// status changes, the order of the others stays. Returns whether anything changed.
bool set_condition(Json& conditions, const Condition& condition, Clock::Wall now);

/// Drops metadata.managedFields: nobody reads it here and it is often half of an object.
void strip_managed_fields(Json& object);

/// "a=b,c in (x,y)"-style text of a LabelSelector's matchLabels and matchExpressions; "" selects everything.
std::string label_selector_text(const Json& selector);
/// Whether labels (metadata.labels of an object) match a LabelSelector {matchLabels, matchExpressions}. An
/// empty or null selector matches everything; an operator that is not In, NotIn, Exists or DoesNotExist
/// matches nothing.
bool selector_matches(const Json& selector, const Json& labels);

}  // namespace eldr::kube
