// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/children.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/object.h"
#include "operator/api/decimal.h"
#include "operator/api/labels.h"
#include "operator/inputs/calibration_inputs.h"

namespace eldr::op {
namespace {

/// "500m", "1Gi", "2" as numbers; nothing when it is no quantity.
std::optional<double> quantity(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return {};
  const std::string& text = value.get_ref<const std::string&>();
  const std::size_t end = text.find_last_of("0123456789");
  if (end == std::string::npos) return {};
  const std::string_view suffix = std::string_view(text).substr(end + 1);
  const auto number = parse_decimal(text.substr(0, end + 1));
  if (!number) return {};
  static const std::map<std::string_view, double> kFactors = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},   {"k", 1e3},
      {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"P", 1e15},   {"Ki", 0x1p10},
      {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}};
  const auto factor = kFactors.find(suffix);
  if (factor == kFactors.end()) return {};
  return *number * factor->second;
}

bool is_empty(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

/// Elements of a list by their "name"; empty unless all have one and it is unique.
std::map<std::string, const Json*> by_name(const Json& list) {
  std::map<std::string, const Json*> names;
  for (const Json& element : list) {
    const std::string name = kube::string_at(element, {"name"});
    if (name.empty() || !names.emplace(name, &element).second) return {};
  }
  return names;
}

bool contains(const Json& live, const Json& desired, bool quantities);

bool contains_list(const Json& live, const Json& desired) {
  const auto wanted = by_name(desired);
  const auto found = by_name(live);
  if (!wanted.empty() && !found.empty()) {  // a list with names: others may have added elements of their own
    for (const auto& [name, element] : wanted) {
      const auto same = found.find(name);
      if (same == found.end() || !contains(*same->second, *element, false)) return false;
    }
    return true;
  }
  if (live.size() != desired.size()) return false;
  for (std::size_t i = 0; i < desired.size(); ++i)
    if (!contains(live[i], desired[i], false)) return false;
  return true;
}

bool contains(const Json& live, const Json& desired, bool quantities) {
  if (desired.is_object()) {
    if (!live.is_object()) return false;
    for (const auto& [key, wanted] : desired.items()) {
      const auto found = live.find(key);
      if (found == live.end()) {
        if (is_empty(wanted)) continue;
        return false;
      }
      const bool inner = quantities || key == "limits" || key == "requests";
      if (!contains(*found, wanted, inner)) return false;
    }
    return true;
  }
  if (desired.is_array()) {
    return live.is_array() && contains_list(live, desired);
  }
  if (live == desired) return true;
  if (!quantities) return false;
  const auto a = quantity(live);
  const auto b = quantity(desired);
  return a && b && std::abs(*a - *b) <= 1e-9 * std::abs(*b);
}

ObjectKey key_of(const Json& object) { return kube::key_of(object); }

/// The owner that a desired child names.
std::string owner_uid(const Json& desired) {
  const auto controller = kube::controller_of(desired);
  return controller ? controller->uid : "";
}

Error somebody_elses(const kube::Resource& resource, const Json& desired) {
  return {Code::kAlreadyExists,
          resource.kind + " " + key_of(desired).to_string() +
              " exists and does not belong to this policy; delete or rename it, or rename the policy",
          0};
}

}  // namespace

bool contains_intent(const Json& live, const Json& desired) { return contains(live, desired, false); }

Result<Ensured> ensure_child(const kube::Client& client, const kube::Resource& resource, Json desired) {
  const std::string intent = hash_of(desired).substr(0, 16);
  kube::set_annotation(desired, kIntentAnnotation, intent);
  const ObjectKey key = key_of(desired);
  auto live = client.get(resource, key);
  if (live) {
    if (!kube::is_controlled_by(*live, owner_uid(desired))) return failure(somebody_elses(resource, desired));
    if (contains_intent(*live, desired)) return Ensured{std::move(*live), false};
  } else if (live.error().code != Code::kNotFound) {
    return failure(live.error());
  }
  auto applied = client.apply(resource, key.ns, desired, {.field_manager = kFieldManager});
  if (!applied) return failure(applied.error());
  return Ensured{std::move(*applied), true};
}

Result<Ensured> ensure_created(const kube::Client& client, const kube::Resource& resource,
                               const Json& desired) {
  const ObjectKey key = key_of(desired);
  auto live = client.get(resource, key);
  if (!live && live.error().code == Code::kNotFound) {
    auto created = client.create(resource, key.ns, desired);
    if (created) return Ensured{std::move(*created), true};
    if (created.error().code != Code::kAlreadyExists) return failure(created.error());
    live = client.get(resource, key);  // somebody was faster: our own last try, most likely
  }
  if (!live) return failure(live.error());
  if (!kube::is_controlled_by(*live, owner_uid(desired))) return failure(somebody_elses(resource, desired));
  return Ensured{std::move(*live), false};
}

Status remove_child(const kube::Client& client, const kube::Resource& resource, const Json& seen) {
  return kube::ignore_not_found(client.remove(resource, key_of(seen), {.uid = kube::uid_of(seen)}));
}

Result<std::vector<Json>> list_children(const kube::Client& client, const kube::Resource& resource,
                                        const EldrPolicy& policy, const std::string& component) {
  auto list = client.list(resource, policy.key.ns,
                          {.label_selector = std::string(kPolicyLabel) + "=" + policy.key.name + "," +
                                             kNameLabel + "=" + component});
  if (!list) return failure(list.error());
  std::vector<Json> own;
  for (Json& item : list->items)
    if (kube::is_controlled_by(item, policy.uid)) own.push_back(std::move(item));
  return own;
}

}  // namespace eldr::op
