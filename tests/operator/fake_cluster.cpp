// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/fake_cluster.h"

#include <utility>

#include "lib/kube/object.h"
#include "tests/kube/request_target.h"

namespace eldr::op::testing {
namespace {

kube::HttpResponse ok(const Json& object, int code = 200) { return {code, object.dump(), 0}; }

/// Takes the fields that left an intent out of the object.
void remove_left(Json& object, const Json& before, const Json& after) {
  if (!object.is_object() || !before.is_object()) return;
  for (const auto& [name, value] : before.items()) {
    const auto still = after.is_object() ? after.find(name) : after.end();
    if (!after.is_object() || still == after.end()) {
      if (value.is_object() && object.contains(name)) {
        remove_left(object[name], value, Json::object());
        if (object[name].empty()) object.erase(name);
      } else {
        object.erase(name);
      }
    } else if (object.contains(name)) {
      remove_left(object[name], value, *still);
    }
  }
}

/// Objects merge, everything else is replaced (lists too: the operator owns its lists).
void merge_intent(Json& object, const Json& intent) {
  for (const auto& [name, value] : intent.items()) {
    if (value.is_object() && object.contains(name) && object[name].is_object())
      merge_intent(object[name], value);
    else
      object[name] = value;
  }
}

}  // namespace

Result<kube::HttpResponse> FakeCluster::send(const kube::HttpRequest& request) {
  const std::scoped_lock lock(mutex_);
  if (crash_after_writes && done_writes_ >= *crash_after_writes)
    return failure(Code::kUnavailable, "the operator is dead");
  if (intercept)
    if (auto stand_in = intercept(request)) return *stand_in;
  const kube::HttpResponse response = answer(request);
  if (request.method != "GET") {
    const kube::testing::RequestTarget target = kube::testing::parse_target(request.target);
    writes_.push_back(request.method + " " + target.plural +
                      (target.subresource.empty() ? "" : "/" + target.subresource) + " " + target.key.name +
                      (response.status < 300 ? "" : " -> " + std::to_string(response.status)));
    if (response.status < 300) ++done_writes_;
  }
  return response;
}

Result<kube::StreamResponse> FakeCluster::open_stream(const kube::HttpRequest&, std::chrono::milliseconds) {
  return failure(Code::kUnavailable, "watches are not part of this fake");
}

kube::HttpResponse FakeCluster::discovery(const std::string& api_version) const {
  Json resources = Json::array();
  const auto serve = [&resources](const char* plural, const char* kind, bool scale) {
    resources.push_back(
        {{"name", plural}, {"kind", kind}, {"namespaced", true}, {"verbs", Json::array({"get"})}});
    if (scale)
      resources.push_back({{"name", std::string(plural) + "/scale"},
                           {"kind", "Scale"},
                           {"namespaced", true},
                           {"verbs", Json::array({"get"})}});
  };
  if (api_version == "apps/v1") {
    serve("deployments", "Deployment", true);
    serve("statefulsets", "StatefulSet", true);
    serve("daemonsets", "DaemonSet", false);
  } else if (api_version == "leaderworkerset.x-k8s.io/v1") {
    serve("leaderworkersets", "LeaderWorkerSet", true);
  } else {
    return status_response(404, "NotFound", "the server could not find the requested resource");
  }
  return ok({{"kind", "APIResourceList"}, {"groupVersion", api_version}, {"resources", resources}});
}

Json FakeCluster::filled(const Json& object, const ObjectKey& key, const Json* before) {
  Json next = object;
  Json& metadata = next["metadata"];
  metadata["name"] = key.name;
  metadata["namespace"] = key.ns;
  metadata["uid"] = before ? kube::uid_of(*before) : "uid-" + std::to_string(++uids_);
  metadata["creationTimestamp"] =
      before ? kube::string_at(*before, {"metadata", "creationTimestamp"}) : format_rfc3339(clock_.wall());
  const bool same_spec = before && before->value("spec", Json()) == next.value("spec", Json());
  metadata["generation"] = before ? kube::generation_of(*before) + (same_spec ? 0 : 1) : 1;
  return next;
}

kube::HttpResponse FakeCluster::store(Collection& collection, const ObjectKey& key, Json next,
                                      bool status_only) {
  const auto found = collection.find(key);
  if (found == collection.end()) {
    if (!kube::uid_of(next).empty() && status_only)
      return status_response(404, "NotFound", key.name + " not found");
    next.erase("status");
    Json made = filled(next, key, nullptr);
    made["metadata"]["resourceVersion"] = std::to_string(++version_);
    collection[key].object = made;
    return ok(made, 201);
  }
  const Json& before = found->second.object;
  if (const std::string uid = kube::uid_of(next); !uid.empty() && uid != kube::uid_of(before))
    return status_response(409, "Conflict", "uid in precondition: " + uid);
  if (const std::string version = kube::resource_version_of(next);
      !version.empty() && version != kube::resource_version_of(before))
    return status_response(409, "Conflict", "the object has been modified");
  Json merged = before;
  if (status_only) {
    merged["status"] = next.value("status", Json::object());
  } else {
    const Json status = before.value("status", Json());
    merged = next;
    if (!status.is_null()) merged["status"] = status;
  }
  if (kube::bool_at(before, {"immutable"}) &&
      (merged.value("data", Json()) != before.value("data", Json()) ||
       merged.value("binaryData", Json()) != before.value("binaryData", Json()) ||
       !kube::bool_at(merged, {"immutable"})))
    return status_response(422, "Invalid", "field is immutable when `immutable` is set");
  Json made = filled(merged, key, &before);
  made["metadata"]["resourceVersion"] = kube::resource_version_of(before);
  if (made != before) made["metadata"]["resourceVersion"] = std::to_string(++version_);
  found->second.object = made;
  return ok(made);
}

kube::HttpResponse FakeCluster::answer(const kube::HttpRequest& request) {
  const kube::testing::RequestTarget target = kube::testing::parse_target(request.target);
  if (target.plural.empty()) return discovery(target.api_version);
  Collection& collection = collections_[target.plural];
  const auto found = collection.find(target.key);
  if (request.method == "GET" && target.key.name.empty()) {
    Json items = Json::array();
    const auto selector = target.query.find("labelSelector");
    for (const auto& [key, entry] : collection)
      if ((target.key.ns.empty() || key.ns == target.key.ns) &&
          (selector == target.query.end() || kube::testing::selected(selector->second, entry.object)))
        items.push_back(entry.object);
    return ok({{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}});
  }
  const bool is_apply = request.content_type.find("apply-patch") != std::string::npos;
  if (request.method != "POST" && !is_apply && found == collection.end())
    return status_response(404, "NotFound", target.plural + " \"" + target.key.name + "\" not found");
  if (request.method == "GET") {
    const Json& object = found->second.object;
    if (target.subresource != "scale") return ok(object);
    return ok({{"kind", "Scale"},
               {"metadata", object["metadata"]},
               {"spec", {{"replicas", kube::int_at(object, {"spec", "replicas"}).value_or(0)}}},
               {"status",
                {{"replicas", kube::int_at(object, {"status", "replicas"}).value_or(0)},
                 {"selector", kube::label_selector_text(object["spec"].value("selector", Json()))}}}});
  }
  const Json body = request.body.empty() ? Json::object() : Json::parse(request.body);
  if (request.method == "POST") {
    const ObjectKey key{target.key.ns, kube::object_name(body)};
    if (collection.count(key) > 0) return status_response(409, "AlreadyExists", key.name + " already exists");
    return store(collection, key, body, false);
  }
  if (request.method == "DELETE") {
    const std::string uid = kube::string_at(body, {"preconditions", "uid"});
    if (!uid.empty() && uid != kube::uid_of(found->second.object))
      return status_response(409, "Conflict", "the precondition failed");
    collection.erase(found);
    return ok({{"kind", "Status"}, {"status", "Success"}});
  }
  if (target.subresource == "scale") {
    Json next = found->second.object;
    next["metadata"].erase("resourceVersion");
    next["spec"]["replicas"] = body["spec"]["replicas"];
    if (auto done = store(collection, target.key, next, false); done.status >= 300) return done;
    return answer({"GET", request.target.substr(0, request.target.find('?')), "", "", {}, 0, {}});
  }
  const bool status_only = target.subresource == "status";
  if (is_apply) {
    if (found == collection.end() && status_only) return status_response(404, "NotFound", "not found");
    const std::string manager = target.query.count("fieldManager") ? target.query.at("fieldManager") : "";
    if (manager.empty()) return status_response(400, "BadRequest", "fieldManager is required");
    Json next = found == collection.end() ? Json::object() : found->second.object;
    if (found != collection.end()) next["metadata"].erase("resourceVersion");
    if (found != collection.end()) remove_left(next, found->second.intents[manager], body);
    merge_intent(next, body);
    const kube::HttpResponse done = store(collection, target.key, next, status_only);
    if (done.status < 300) collection[target.key].intents[manager] = body;
    return done;
  }
  Json next = found->second.object;
  if (body.is_array()) {
    next = next.patch(body);
    return store(collection, target.key, next, status_only);
  }
  next["metadata"].erase("resourceVersion");
  next.merge_patch(body);
  return store(collection, target.key, next, status_only);
}

Json FakeCluster::put(const kube::Resource& resource, Json object) {
  const std::scoped_lock lock(mutex_);
  const ObjectKey key = kube::key_of(object);
  Entry& entry = collections_[resource.plural][key];
  const Json before = entry.object;
  const Json status = object.value("status", before.is_object() ? before.value("status", Json()) : Json());
  object["apiVersion"] = resource.api_version();
  object["kind"] = resource.kind;
  const std::string created = kube::string_at(object, {"metadata", "creationTimestamp"});
  entry.object = filled(object, key, before.is_object() ? &before : nullptr);
  if (!created.empty()) entry.object["metadata"]["creationTimestamp"] = created;
  if (!status.is_null()) entry.object["status"] = status;
  entry.object["metadata"]["resourceVersion"] = std::to_string(++version_);
  return entry.object;
}

void FakeCluster::edit(const kube::Resource& resource, const ObjectKey& key,
                       const std::function<void(Json&)>& change) {
  Json object = get(resource, key);
  change(object);
  put(resource, object);
}

void FakeCluster::erase(const kube::Resource& resource, const ObjectKey& key) {
  const std::scoped_lock lock(mutex_);
  collections_[resource.plural].erase(key);
}

Json FakeCluster::get(const kube::Resource& resource, const ObjectKey& key) const {
  const std::scoped_lock lock(mutex_);
  const auto collection = collections_.find(resource.plural);
  if (collection == collections_.end()) return {};
  const auto found = collection->second.find(key);
  return found == collection->second.end() ? Json() : found->second.object;
}

std::vector<Json> FakeCluster::all(const kube::Resource& resource) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Json> objects;
  const auto collection = collections_.find(resource.plural);
  if (collection != collections_.end())
    for (const auto& [key, entry] : collection->second) objects.push_back(entry.object);
  return objects;
}

std::vector<std::string> FakeCluster::writes() const {
  const std::scoped_lock lock(mutex_);
  return writes_;
}

void FakeCluster::clear_log() {
  const std::scoped_lock lock(mutex_);
  writes_.clear();
  done_writes_ = 0;
}

}  // namespace eldr::op::testing
