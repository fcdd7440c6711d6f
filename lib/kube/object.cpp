// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/object.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace eldr::kube {
namespace {

std::optional<std::string> text_of(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* value = find(object, path);
  if (value == nullptr || !value->is_string()) {
    return std::nullopt;
  }
  return value->get<std::string>();
}

/// The object under a member, made where there is none (or something else).
Json& ensured_object(Json& parent, const char* name) {
  if (!parent.is_object()) {
    parent = Json::object();
  }
  Json& child = parent[name];
  if (!child.is_object()) {
    child = Json::object();
  }
  return child;
}

bool contains(const Json* values, const std::string& text) {
  return values != nullptr && values->is_array() &&
         std::any_of(values->begin(), values->end(), [&](const Json& value) {
           return value.is_string() && value.get_ref<const std::string&>() == text;
         });
}

bool expression_matches(const Json& expression, const Json& labels) {
  const std::string key = string_at(expression, {"key"});
  const std::string op = string_at(expression, {"operator"});
  const auto label = text_of(labels, {key});
  const Json* values = find(expression, {"values"});
  if (op == "In") {
    return label && contains(values, *label);
  }
  if (op == "NotIn") {
    return !label || !contains(values, *label);
  }
  if (op == "Exists") {
    return label.has_value();
  }
  return op == "DoesNotExist" && !label;
}

std::string expression_text(const Json& expression) {
  const std::string key = string_at(expression, {"key"});
  const std::string op = string_at(expression, {"operator"});
  if (op == "Exists") {
    return key;
  }
  if (op == "DoesNotExist") {
    return "!" + key;
  }
  std::string list;
  if (const Json* values = find(expression, {"values"}); values != nullptr && values->is_array()) {
    for (const Json& value : *values) {
      list.append(list.empty() ? "" : ",")
          .append(value.is_string() ? value.get<std::string>() : std::string());
    }
  }
  return key + (op == "NotIn" ? " notin (" : " in (") + list + ")";
}

}  // namespace

const Json* find(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* at = &object;
  for (const std::string_view name : path) {
    if (!at->is_object()) {
      return nullptr;
    }
    const auto member = at->find(name);
    if (member == at->end()) {
      return nullptr;
    }
    at = &*member;
  }
  return at;
}

std::string string_at(const Json& object, std::initializer_list<std::string_view> path) {
  return text_of(object, path).value_or("");
}

std::optional<std::int64_t> int_at(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* value = find(object, path);
  if (value == nullptr || !value->is_number_integer()) {
    return std::nullopt;
  }
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  return value->get<std::int64_t>();
}

bool bool_at(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* value = find(object, path);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

std::string object_name(const Json& object) { return string_at(object, {"metadata", "name"}); }
std::string object_namespace(const Json& object) { return string_at(object, {"metadata", "namespace"}); }
ObjectKey key_of(const Json& object) { return {object_namespace(object), object_name(object)}; }
std::string uid_of(const Json& object) { return string_at(object, {"metadata", "uid"}); }
std::string resource_version_of(const Json& object) {
  return string_at(object, {"metadata", "resourceVersion"});
}
std::int64_t generation_of(const Json& object) {
  return int_at(object, {"metadata", "generation"}).value_or(0);
}

bool is_deleting(const Json& object) {
  const Json* timestamp = find(object, {"metadata", "deletionTimestamp"});
  return timestamp != nullptr && !timestamp->is_null();
}

std::optional<std::string> label_of(const Json& object, std::string_view label) {
  return text_of(object, {"metadata", "labels", label});
}

std::optional<std::string> annotation_of(const Json& object, std::string_view annotation) {
  return text_of(object, {"metadata", "annotations", annotation});
}

void set_label(Json& object, std::string_view label, std::string_view value) {
  ensured_object(ensured_object(object, "metadata"), "labels")[std::string(label)] = std::string(value);
}

void set_annotation(Json& object, std::string_view annotation, std::string_view value) {
  ensured_object(ensured_object(object, "metadata"), "annotations")[std::string(annotation)] =
      std::string(value);
}

Json controller_reference(const Resource& owner_resource, const Json& owner) {
  return Json{{"apiVersion", owner_resource.api_version()},
              {"kind", owner_resource.kind},
              {"name", object_name(owner)},
              {"uid", uid_of(owner)},
              {"controller", true},
              {"blockOwnerDeletion", true}};
}

std::optional<OwnerReference> controller_of(const Json& object) {
  const Json* references = find(object, {"metadata", "ownerReferences"});
  if (references == nullptr || !references->is_array()) {
    return std::nullopt;
  }
  for (const Json& reference : *references) {
    if (bool_at(reference, {"controller"})) {
      return OwnerReference{string_at(reference, {"apiVersion"}), string_at(reference, {"kind"}),
                            string_at(reference, {"name"}), string_at(reference, {"uid"})};
    }
  }
  return std::nullopt;
}

bool is_controlled_by(const Json& object, std::string_view owner_uid) {
  const auto controller = controller_of(object);
  return controller && !owner_uid.empty() && controller->uid == owner_uid;
}

const Json* find_condition(const Json& object, std::string_view type) {
  const Json* conditions = find(object, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) {
    return nullptr;
  }
  for (const Json& condition : *conditions) {
    if (string_at(condition, {"type"}) == type) {
      return &condition;
    }
  }
  return nullptr;
}

bool condition_is_true(const Json& object, std::string_view type) {
  const Json* condition = find_condition(object, type);
  return condition != nullptr && string_at(*condition, {"status"}) == "True";
}

bool set_condition(Json& conditions, const Condition& condition, Clock::Wall now) {
  if (!conditions.is_array()) {
    conditions = Json::array();
  }
  Json wanted = {{"type", condition.type},
                 {"status", condition.status},
                 {"reason", condition.reason},
                 {"message", condition.message},
                 {"lastTransitionTime", format_rfc3339(now)}};
  if (condition.observed_generation != 0) {
    wanted["observedGeneration"] = condition.observed_generation;
  }
  for (Json& present : conditions) {
    if (string_at(present, {"type"}) != condition.type) {
      continue;
    }
    const std::string since = string_at(present, {"lastTransitionTime"});
    if (string_at(present, {"status"}) == condition.status && !since.empty()) {
      wanted["lastTransitionTime"] = since;
    }
    if (present == wanted) {
      return false;
    }
    present = std::move(wanted);
    return true;
  }
  conditions.push_back(std::move(wanted));
  return true;
}

void strip_managed_fields(Json& object) {
  if (object.is_object()) {
    if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object()) {
      metadata->erase("managedFields");
    }
  }
}

std::string label_selector_text(const Json& selector) {
  std::string text;
  const auto append = [&text](const std::string& term) { text += (text.empty() ? "" : ",") + term; };
  if (const Json* labels = find(selector, {"matchLabels"}); labels != nullptr && labels->is_object()) {
    for (const auto& [key, value] : labels->items()) {
      append(key + "=" + (value.is_string() ? value.get<std::string>() : std::string()));
    }
  }
  if (const Json* expressions = find(selector, {"matchExpressions"});
      expressions != nullptr && expressions->is_array()) {
    for (const Json& expression : *expressions) {
      append(expression_text(expression));
    }
  }
  return text;
}

bool selector_matches(const Json& selector, const Json& labels) {
  if (const Json* wanted = find(selector, {"matchLabels"}); wanted != nullptr && wanted->is_object()) {
    for (const auto& [key, value] : wanted->items()) {
      const Json* label = find(labels, {key});
      if (label == nullptr || *label != value) {
        return false;
      }
    }
  }
  if (const Json* expressions = find(selector, {"matchExpressions"});
      expressions != nullptr && expressions->is_array()) {
    return std::all_of(expressions->begin(), expressions->end(),
                       [&](const Json& expression) { return expression_matches(expression, labels); });
  }
  return true;
}

}  // namespace eldr::kube
