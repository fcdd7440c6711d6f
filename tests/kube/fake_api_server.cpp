// SPDX-License-Identifier: Apache-2.0
#include "tests/kube/fake_api_server.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "lib/kube/object.h"
#include "tests/kube/request_target.h"

namespace eldr::kube::testing {
namespace {

std::string collection_of(const Resource& resource) {
  return parse_target(resource.collection_path("")).collection();
}

HttpResponse ok(const Json& object, int status = 200) { return HttpResponse{status, object.dump(), 0}; }

struct Event {
  std::int64_t version = 0;
  std::string collection;
  std::string type;
  Json object;
};

std::string line_of(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

}  // namespace

HttpResponse status_response(int code, const std::string& reason, const std::string& message,
                             int retry_after) {
  return HttpResponse{code,
                      Json{{"kind", "Status"},
                           {"apiVersion", "v1"},
                           {"status", "Failure"},
                           {"reason", reason},
                           {"message", message},
                           {"code", code}}
                          .dump(),
                      retry_after};
}

struct FakeApiServer::Private {
  mutable std::mutex mutex;
  std::condition_variable_any changed;
  std::int64_t version = 100;
  std::int64_t oldest = 0;  ///< a watch must start from here or later
  bool expire_as_event = false;
  std::map<std::string, std::map<ObjectKey, Json>> collections;
  std::vector<Event> history;
  std::vector<std::string> log;
  Intercept intercept;
  int uids = 0;

  struct Watch {
    std::string collection, ns, selector;
    std::size_t next = 0;                  ///< in history
    std::size_t last = std::string::npos;  ///< in history, one past what is told
    std::deque<std::string> raw;
    bool ended = false;
    bool aborted = false;
    std::optional<Error> broken;
  };
  std::vector<std::weak_ptr<Watch>> watches;

  template <class Action>
  void each_watch(Action action) {
    const std::lock_guard lock(mutex);
    for (const auto& weak : watches) {
      if (const auto watch = weak.lock()) {
        action(*watch);
      }
    }
    changed.notify_all();
  }
  /// `action` says how each ends. What happens later is not told through it.
  template <class Action>
  void end_each_watch(Action action) {
    each_watch([&](Watch& watch) {
      action(watch);
      watch.last = history.size();
    });
  }

  Json& happened(const std::string& collection, const std::string& type, const ObjectKey& key, Json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++version);
    history.push_back({version, collection, type, object});
    changed.notify_all();
    return collections[collection][key] = std::move(object);
  }
  Json& store(const std::string& collection, const ObjectKey& key, Json object) {
    auto& present = collections[collection];
    const auto found = present.find(key);
    Json& metadata = object["metadata"];
    metadata["name"] = key.name;
    if (!key.ns.empty()) {
      metadata["namespace"] = key.ns;
    }
    metadata["uid"] = found == present.end() ? "uid-" + std::to_string(++uids) : uid_of(found->second);
    if (found != present.end()) {  // a write that changes nothing makes no new version
      Json same = object;
      same["metadata"]["resourceVersion"] = resource_version_of(found->second);
      if (same == found->second) {
        return found->second;
      }
    }
    return happened(collection, found == present.end() ? "ADDED" : "MODIFIED", key, std::move(object));
  }
  void remove(const std::string& collection, const ObjectKey& key) {
    Json last = collections[collection][key];
    happened(collection, "DELETED", key, std::move(last));
    collections[collection].erase(key);
  }

  HttpResponse list(const RequestTarget& target) {
    Json items = Json::array();
    const auto limit = target.query.count("limit") != 0 ? std::stoul(target.query.at("limit")) : 0;
    const std::string after = target.query.count("continue") != 0 ? target.query.at("continue") : "";
    Json metadata = {{"resourceVersion", std::to_string(version)}};
    for (const auto& [key, object] : collections[target.collection()]) {
      if ((!target.key.ns.empty() && key.ns != target.key.ns) || key.to_string() <= after ||
          (target.query.count("labelSelector") != 0 && !selected(target.query.at("labelSelector"), object))) {
        continue;
      }
      if (limit != 0 && items.size() == limit) {
        metadata["continue"] = key_of(items.back()).to_string();
        break;
      }
      items.push_back(object);
    }
    return ok({{"metadata", metadata}, {"items", items}});
  }

  HttpResponse answer(const HttpRequest& request) {
    const RequestTarget target = parse_target(request.target);
    auto& objects = collections[target.collection()];
    const bool exists = objects.count(target.key) != 0;
    if (request.method == "GET") {
      if (target.key.name.empty()) {
        return list(target);
      }
      return exists ? ok(objects[target.key])
                    : status_response(404, "NotFound", target.key.name + " not found");
    }
    const Json body = Json::parse(request.body);
    if (request.method == "POST") {
      const ObjectKey key{target.key.ns, object_name(body)};
      if (objects.count(key) != 0) {
        return status_response(409, "AlreadyExists", key.name + " already exists");
      }
      return ok(store(target.collection(), key, body), 201);
    }
    const bool is_apply = request.content_type == "application/apply-patch+yaml";
    if (!exists && !is_apply) {
      return status_response(404, "NotFound", target.key.name + " not found");
    }
    if (request.method == "PUT") {
      const std::string expected = resource_version_of(body);
      if (!expected.empty() && expected != resource_version_of(objects[target.key])) {
        return status_response(409, "Conflict", "the object has been modified");
      }
      return ok(store(target.collection(), target.key, body));
    }
    if (request.method == "PATCH") {
      Json merged = exists ? objects[target.key] : Json::object();
      merged.merge_patch(body);
      return ok(store(target.collection(), target.key, std::move(merged)));
    }
    const std::string uid = string_at(body, {"preconditions", "uid"});
    const std::string expected = string_at(body, {"preconditions", "resourceVersion"});
    if ((!uid.empty() && uid != uid_of(objects[target.key])) ||
        (!expected.empty() && expected != resource_version_of(objects[target.key]))) {
      return status_response(409, "Conflict", "the precondition failed");
    }
    remove(target.collection(), target.key);
    return ok({{"kind", "Status"}, {"status", "Success"}});
  }
};

namespace {

template <class Private, class Watch>
class FakeStream final : public WatchStream {
 public:
  FakeStream(std::shared_ptr<Private> server, std::shared_ptr<Watch> watch, std::stop_token stop)
      : server_(std::move(server)), watch_(std::move(watch)), stop_(std::move(stop)) {}

  Result<std::string> read(std::chrono::milliseconds wait) override {
    std::unique_lock lock(server_->mutex);
    std::string bytes;
    // A fake clock may ask for minutes: nothing here takes longer than a moment.
    const auto real_wait = std::min(wait, std::chrono::milliseconds(20));
    server_->changed.wait_for(lock, stop_, real_wait, [&] {
      bytes = what_is_new();
      return !bytes.empty() || watch_->ended || watch_->aborted || watch_->broken;
    });
    if (watch_->aborted || stop_.stop_requested()) {
      return failure(Code::kCancelled, "stopped");
    }
    if (!bytes.empty()) {
      return bytes;
    }
    if (watch_->broken) {
      return failure(*watch_->broken);
    }
    if (watch_->ended) {
      return std::string();
    }
    return failure(Code::kTimeout, "nothing");
  }
  void abort() override {
    const std::lock_guard lock(server_->mutex);
    watch_->aborted = true;
    server_->changed.notify_all();
  }

 private:
  std::string what_is_new() {
    std::string bytes;
    const std::size_t last = std::min(server_->history.size(), watch_->last);
    for (; watch_->next < last; ++watch_->next) {
      const Event& event = server_->history[watch_->next];
      if (event.collection == watch_->collection &&
          (watch_->ns.empty() || object_namespace(event.object) == watch_->ns) &&
          selected(watch_->selector, event.object)) {
        bytes += line_of(event.type, event.object);
      }
    }
    while (!watch_->raw.empty()) {
      bytes += watch_->raw.front();
      watch_->raw.pop_front();
    }
    return bytes;
  }
  std::shared_ptr<Private> server_;
  std::shared_ptr<Watch> watch_;
  std::stop_token stop_;
};

}  // namespace

FakeApiServer::FakeApiServer() : private_(std::make_shared<Private>()) {}
FakeApiServer::~FakeApiServer() = default;

Result<HttpResponse> FakeApiServer::send(const HttpRequest& request) {
  const std::lock_guard lock(private_->mutex);
  private_->log.push_back(request.method + " " + request.target);
  if (private_->intercept) {
    if (auto answer = private_->intercept(request)) {
      return *answer;
    }
  }
  return private_->answer(request);
}

Result<StreamResponse> FakeApiServer::open_stream(const HttpRequest& request, std::chrono::milliseconds) {
  const std::lock_guard lock(private_->mutex);
  private_->log.push_back(request.method + " " + request.target);
  StreamResponse response;
  if (private_->intercept) {
    if (auto answer = private_->intercept(request)) {
      if (!*answer) {
        return failure(answer->error());
      }
      response.head = **answer;
      return response;
    }
  }
  const RequestTarget target = parse_target(request.target);
  const std::string from =
      target.query.count("resourceVersion") != 0 ? target.query.at("resourceVersion") : "0";
  auto watch = std::make_shared<Private::Watch>();
  watch->collection = target.collection();
  watch->ns = target.key.ns;
  watch->selector = target.query.count("labelSelector") != 0 ? target.query.at("labelSelector") : "";
  const std::int64_t version = std::stoll(from);
  if (version < private_->oldest) {
    const HttpResponse gone = status_response(410, "Expired", "too old resource version");
    if (!private_->expire_as_event) {
      response.head = gone;
      return response;
    }
    watch->next = private_->history.size();
    watch->raw.push_back(line_of("ERROR", Json::parse(gone.body)));
    watch->ended = true;
  }
  while (watch->next < private_->history.size() && private_->history[watch->next].version <= version) {
    ++watch->next;
  }
  private_->watches.push_back(watch);
  response.head.status = 200;
  response.stream = std::make_unique<FakeStream<Private, Private::Watch>>(private_, watch, request.stop);
  return response;
}

void FakeApiServer::put(const Resource& resource, const std::string& ns, Json object) {
  const std::lock_guard lock(private_->mutex);
  const ObjectKey key{ns, object_name(object)};
  private_->store(collection_of(resource), key, std::move(object));
}

void FakeApiServer::erase(const Resource& resource, const ObjectKey& key) {
  const std::lock_guard lock(private_->mutex);
  private_->remove(collection_of(resource), key);
}

Json FakeApiServer::object(const Resource& resource, const ObjectKey& key) const {
  const std::lock_guard lock(private_->mutex);
  const auto& objects = private_->collections[collection_of(resource)];
  const auto found = objects.find(key);
  return found == objects.end() ? Json() : found->second;
}

std::vector<Json> FakeApiServer::objects(const Resource& resource) const {
  const std::lock_guard lock(private_->mutex);
  std::vector<Json> all;
  for (const auto& [key, object] : private_->collections[collection_of(resource)]) {
    all.push_back(object);
  }
  return all;
}

void FakeApiServer::compact(bool as_event) {
  const std::lock_guard lock(private_->mutex);
  private_->oldest = private_->version;
  private_->expire_as_event = as_event;
}

void FakeApiServer::end_watches() {
  private_->end_each_watch([](auto& watch) { watch.ended = true; });
}

void FakeApiServer::break_watches(Error error) {
  private_->end_each_watch([&](auto& watch) { watch.broken = error; });
}

void FakeApiServer::send_raw(std::string bytes) {
  private_->each_watch([&](auto& watch) { watch.raw.push_back(bytes); });
}

void FakeApiServer::send_bookmarks() {
  std::string version;
  {
    const std::lock_guard lock(private_->mutex);
    version = std::to_string(private_->version);
  }
  send_raw(line_of("BOOKMARK", {{"metadata", {{"resourceVersion", version}}}}));
}

void FakeApiServer::intercept(Intercept intercept) {
  const std::lock_guard lock(private_->mutex);
  private_->intercept = std::move(intercept);
}

std::vector<std::string> FakeApiServer::requests() const {
  const std::lock_guard lock(private_->mutex);
  return private_->log;
}

std::size_t FakeApiServer::count(const std::string& prefix) const {
  const std::lock_guard lock(private_->mutex);
  return static_cast<std::size_t>(
      std::count_if(private_->log.begin(), private_->log.end(),
                    [&](const auto& entry) { return entry.rfind(prefix, 0) == 0; }));
}

std::size_t FakeApiServer::open_watches() const {
  const std::lock_guard lock(private_->mutex);
  return static_cast<std::size_t>(std::count_if(private_->watches.begin(), private_->watches.end(),
                                                [](const auto& watch) { return !watch.expired(); }));
}

}  // namespace eldr::kube::testing
