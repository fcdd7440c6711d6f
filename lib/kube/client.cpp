// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client.h"

#include <map>
#include <mutex>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/kube/api_error.h"
#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

constexpr std::chrono::minutes kDiscoveryLifetime{10};
constexpr std::chrono::seconds kWatchMargin{60};  // the watcher gives up earlier; this is the net below it
constexpr int kListRestarts = 3;
constexpr std::size_t kMostPages = 10'000;

constexpr const char* kJsonType = "application/json";
constexpr const char* kApplyType = "application/apply-patch+yaml";  // JSON is YAML
constexpr const char* kMergeType = "application/merge-patch+json";
constexpr const char* kJsonPatchType = "application/json-patch+json";

/// Builds "?a=b&c=d".
class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      text_ += text_.empty() ? '?' : '&';
      text_ += std::string(name) + "=" + percent_encode(value);
    }
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string describe(std::string_view verb, const Resource& resource, const ObjectKey& key) {
  return std::string(verb) + " " + resource.plural + (key.name.empty() && key.ns.empty() ? "" : " ") +
         key.to_string();
}

Result<std::string> dumped(const Json& object, const std::string& what) {
  try {
    return object.dump();
  } catch (const Json::exception& exception) {
    return failure(Code::kInvalid, what + ": the object is not valid JSON text: " + exception.what());
  }
}

Status named(const ObjectKey& key, const Resource& resource, const std::string& what) {
  if (key.name.empty()) {
    return failure(Code::kInvalid, what + ": metadata.name is empty");
  }
  if (resource.namespaced && key.ns.empty()) {
    return failure(Code::kInvalid,
                   what + ": namespace is empty, and " + resource.plural + " live in namespaces");
  }
  return {};
}

void fill_type(const Resource& resource, Json& object) {
  object["apiVersion"] = resource.api_version();
  object["kind"] = resource.kind;
}

const char* propagation_text(Propagation propagation) {
  switch (propagation) {
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
    case Propagation::kBackground:
      break;
  }
  return "Background";
}

struct ServedResource {
  std::string name;  ///< with its subresource: "deployments/scale"
  std::string kind;
  bool namespaced = true;
};

Scale scale_of(const Json& object) {
  return Scale{static_cast<int>(int_at(object, {"spec", "replicas"}).value_or(0)),
               static_cast<int>(int_at(object, {"status", "replicas"}).value_or(0)),
               string_at(object, {"status", "selector"}), resource_version_of(object)};
}

}  // namespace

struct Client::Private {
  Private(std::shared_ptr<Transport> transport, ClientOptions options, const Clock& clock,
          ClientMetrics* metrics)
      : transport(std::move(transport)), options(std::move(options)), clock(clock), metrics(metrics) {}

  std::shared_ptr<Transport> transport;
  ClientOptions options;
  const Clock& clock;
  ClientMetrics* metrics;

  struct Discovered {
    Clock::Steady at;
    std::vector<ServedResource> resources;
  };
  std::mutex mutex;
  std::map<std::string, Discovered> discovered;  ///< by apiVersion

  HttpRequest request(std::string method, std::string target, const CallOptions& call) const {
    HttpRequest request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.timeout = call.timeout.count() > 0 ? call.timeout : options.timeout;
    request.stop = call.stop;
    return request;
  }

  void observe(const HttpRequest& request, const std::string& code, Clock::Steady begun) const {
    if (metrics != nullptr) {
      metrics->request_done(request.method, code,
                            std::chrono::duration<double>(clock.steady() - begun).count());
    }
  }

  /// The body of a 2xx answer as text.
  Result<std::string> text(const HttpRequest& request, const std::string& what) const {
    const auto begun = clock.steady();
    auto response = transport->send(request);
    observe(request, response ? std::to_string(response->status) : "<error>", begun);
    if (!response) {
      return failure(response.error().with_context(what));
    }
    if (response->status < 200 || response->status >= 300) {
      return failure(error_from_response(*response, what));
    }
    return std::move(response->body);
  }

  Result<Json> json(const HttpRequest& request, const std::string& what) const {
    auto body = text(request, what);
    if (!body) {
      return failure(body.error());
    }
    Json object = Json::parse(*body, nullptr, false);
    if (!object.is_object()) {
      return failure(Code::kUnavailable, what + ": the answer is not a JSON object");
    }
    return object;
  }

  /// Sends an object. `type` is its content type.
  Result<Json> send(const char* method, const std::string& target, const Json& object, const char* type,
                    const std::string& what, const CallOptions& call) const {
    auto body = dumped(object, what);
    if (!body) {
      return failure(body.error());
    }
    HttpRequest message = request(method, target, call);
    message.content_type = type;
    message.body = std::move(*body);
    return json(message, what);
  }

  Result<Json> apply(const Resource& resource, const std::string& ns, Json object,
                     const ApplyOptions& options, std::string_view subresource,
                     const CallOptions& call) const {
    const ObjectKey key{ns, object_name(object)};
    const std::string what = describe(subresource.empty() ? "apply" : "apply status of", resource, key);
    if (auto good = named(key, resource, what); !good) {
      return failure(good.error());
    }
    if (options.field_manager.empty() || options.field_manager.size() > 128) {
      return failure(Code::kInvalid, what + ": field_manager must have 1 to 128 characters");
    }
    fill_type(resource, object);
    const Query query = Query()
                            .add("fieldManager", options.field_manager)
                            .add("force", options.force ? "true" : "false")
                            .add("dryRun", options.dry_run ? "All" : "");
    return send("PATCH", resource.object_path(ns, key.name, subresource) + query.text(), object, kApplyType,
                what, call);
  }

  Result<std::vector<ServedResource>> served(const std::string& api_version, const CallOptions& call) {
    {
      const std::lock_guard lock(mutex);
      const auto known = discovered.find(api_version);
      if (known != discovered.end() && clock.steady() - known->second.at < kDiscoveryLifetime) {
        return known->second.resources;
      }
    }
    const bool core = api_version.find('/') == std::string::npos;
    const auto list =
        json(request("GET", (core ? "/api/" : "/apis/") + api_version, call), "discover " + api_version);
    if (!list) {
      return failure(list.error());
    }
    std::vector<ServedResource> resources;
    if (const Json* entries = find(*list, {"resources"}); entries != nullptr && entries->is_array()) {
      for (const Json& entry : *entries) {
        resources.push_back(
            {string_at(entry, {"name"}), string_at(entry, {"kind"}), bool_at(entry, {"namespaced"})});
      }
    }
    const std::lock_guard lock(mutex);
    discovered[api_version] = Discovered{clock.steady(), resources};
    return resources;
  }

  void forget(const std::string& api_version) {
    const std::lock_guard lock(mutex);
    discovered.erase(api_version);
  }
};

Client::Client(std::shared_ptr<Transport> transport, ClientOptions options, const Clock& clock,
               ClientMetrics* metrics)
    : private_(std::make_unique<Private>(std::move(transport), std::move(options), clock, metrics)) {}
Client::~Client() = default;

Result<Json> Client::get(const Resource& resource, const ObjectKey& key, const CallOptions& call) const {
  const std::string what = describe("get", resource, key);
  if (auto good = named(key, resource, what); !good) {
    return failure(good.error());
  }
  return private_->json(private_->request("GET", resource.object_path(key.ns, key.name), call), what);
}

Result<ObjectPage> Client::list_page(const Resource& resource, const std::string& ns,
                                     const ListOptions& options, const std::string& continue_token,
                                     const CallOptions& call) const {
  const Query query = Query()
                          .add("limit", options.page_size > 0 ? std::to_string(options.page_size) : "")
                          .add("labelSelector", options.label_selector)
                          .add("fieldSelector", options.field_selector)
                          .add("continue", continue_token);
  const std::string what = describe("list", resource, {ns, ""});
  auto list =
      private_->json(private_->request("GET", resource.collection_path(ns) + query.text(), call), what);
  if (!list) {
    return failure(list.error());
  }
  ObjectPage page;
  page.resource_version = resource_version_of(*list);
  page.continue_token = string_at(*list, {"metadata", "continue"});
  if (page.resource_version.empty()) {
    return failure(Code::kUnavailable,
                   what + ": the answer is not a list: it has no metadata.resourceVersion");
  }
  if (const auto items = list->find("items"); items != list->end() && items->is_array()) {
    page.items.reserve(items->size());
    for (Json& item : *items) {
      if (!item.is_object() || object_name(item).empty()) {
        return failure(Code::kUnavailable, what + ": the answer holds an item without metadata.name");
      }
      fill_type(resource, item);
      page.items.push_back(std::move(item));
    }
  }
  return page;
}

Result<ObjectList> Client::list(const Resource& resource, const std::string& ns, const ListOptions& options,
                                const CallOptions& call) const {
  ObjectList all;
  std::string token;
  int restarts = 0;
  ListOptions each = options;
  for (std::size_t pages = 0; pages < kMostPages; ++pages) {
    auto page = list_page(resource, ns, each, token, call);
    if (!page && page.error().code == Code::kResourceExhausted && each.page_size > 1) {
      each.page_size /= 2;  // large objects: fewer at a time
      continue;
    }
    if (!page && page.error().code == Code::kExpired && !token.empty() && restarts < kListRestarts) {
      ++restarts;  // the snapshot behind our continue token is gone: from the start
      all.items.clear();
      token.clear();
      continue;
    }
    if (!page) {
      return failure(page.error());
    }
    std::move(page->items.begin(), page->items.end(), std::back_inserter(all.items));
    all.resource_version = page->resource_version;
    token = page->continue_token;
    if (token.empty()) {
      return all;
    }
  }
  return failure(Code::kResourceExhausted, describe("list", resource, {ns, ""}) + ": the list does not end");
}

Result<std::unique_ptr<WatchStream>> Client::watch(const Resource& resource, const std::string& ns,
                                                   const WatchOptions& options,
                                                   const CallOptions& call) const {
  const Query query = Query()
                          .add("watch", "true")
                          .add("allowWatchBookmarks", "true")
                          .add("timeoutSeconds", std::to_string(options.timeout.count()))
                          .add("resourceVersion", options.resource_version)
                          .add("labelSelector", options.label_selector)
                          .add("fieldSelector", options.field_selector);
  const std::string what = describe("watch", resource, {ns, ""});
  const HttpRequest request = private_->request("GET", resource.collection_path(ns) + query.text(), call);
  const auto begun = private_->clock.steady();
  auto answer = private_->transport->open_stream(request, options.timeout + kWatchMargin);
  private_->observe(request, answer ? std::to_string(answer->head.status) : "<error>", begun);
  if (!answer) {
    return failure(answer.error().with_context(what));
  }
  if (answer->stream == nullptr) {
    return failure(error_from_response(answer->head, what));
  }
  return std::move(answer->stream);
}

Result<Json> Client::create(const Resource& resource, const std::string& ns, Json object,
                            const CallOptions& call) const {
  const std::string what = describe("create", resource, {ns, object_name(object)});
  if (resource.namespaced && ns.empty()) {
    return failure(Code::kInvalid,
                   what + ": namespace is empty, and " + resource.plural + " live in namespaces");
  }
  fill_type(resource, object);
  const Query query = Query().add("fieldManager", private_->options.field_manager);
  return private_->send("POST", resource.collection_path(ns) + query.text(), object, kJsonType, what, call);
}

Result<Json> Client::update(const Resource& resource, const std::string& ns, Json object,
                            const CallOptions& call) const {
  const ObjectKey key{ns, object_name(object)};
  const std::string what = describe("update", resource, key);
  if (auto good = named(key, resource, what); !good) {
    return failure(good.error());
  }
  fill_type(resource, object);
  const Query query = Query().add("fieldManager", private_->options.field_manager);
  return private_->send("PUT", resource.object_path(ns, key.name) + query.text(), object, kJsonType, what,
                        call);
}

Result<Json> Client::apply(const Resource& resource, const std::string& ns, Json object,
                           const ApplyOptions& options, const CallOptions& call) const {
  return private_->apply(resource, ns, std::move(object), options, "", call);
}

Result<Json> Client::apply_status(const Resource& resource, const std::string& ns, Json object,
                                  const ApplyOptions& options, const CallOptions& call) const {
  return private_->apply(resource, ns, std::move(object), options, "status", call);
}

Result<Json> Client::patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                           std::string_view subresource, const CallOptions& call) const {
  const std::string what = describe("patch", resource, key);
  if (auto good = named(key, resource, what); !good) {
    return failure(good.error());
  }
  const Query query = Query().add("fieldManager", private_->options.field_manager);
  return private_->send("PATCH", resource.object_path(key.ns, key.name, subresource) + query.text(), patch,
                        type == PatchType::kMerge ? kMergeType : kJsonPatchType, what, call);
}

Status Client::remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options,
                      const CallOptions& call) const {
  const std::string what = describe("delete", resource, key);
  if (auto good = named(key, resource, what); !good) {
    return good;
  }
  Json body = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", propagation_text(options.propagation)}};
  if (!options.uid.empty()) {
    body["preconditions"]["uid"] = options.uid;
  }
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period_seconds) {
    body["gracePeriodSeconds"] = *options.grace_period_seconds;
  }
  auto answer = private_->send("DELETE", resource.object_path(key.ns, key.name), body, kJsonType, what, call);
  return answer ? Status() : failure(answer.error());
}

Result<Scale> Client::get_scale(const Resource& resource, const ObjectKey& key,
                                const CallOptions& call) const {
  const std::string what = describe("get scale of", resource, key);
  if (auto good = named(key, resource, what); !good) {
    return failure(good.error());
  }
  return private_->json(private_->request("GET", resource.object_path(key.ns, key.name, "scale"), call), what)
      .map(scale_of);
}

Result<Scale> Client::set_scale(const Resource& resource, const ObjectKey& key, int replicas,
                                const CallOptions& call) const {
  return patch(resource, key, PatchType::kMerge, {{"spec", {{"replicas", replicas}}}}, "scale", call)
      .map(scale_of);
}

Result<Resource> Client::discover(const std::string& api_version, const std::string& kind,
                                  const CallOptions& call) const {
  const auto slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? "" : api_version.substr(0, slash);
  const std::string version = slash == std::string::npos ? api_version : api_version.substr(slash + 1);
  if (version.empty() || kind.empty() || version.find('/') != std::string::npos ||
      api_version.find_first_of("?#% ") != std::string::npos ||
      (slash != std::string::npos && group.empty())) {
    return failure(Code::kInvalid, "apiVersion \"" + api_version +
                                       "\" must be \"version\" or \"group/version\", with a kind");
  }
  const auto resources = private_->served(api_version, call);
  if (!resources) {
    return failure(resources.error());
  }
  for (const ServedResource& served : *resources) {
    if (served.kind == kind && served.name.find('/') == std::string::npos) {
      return Resource{group, version, served.name, kind, served.namespaced};
    }
  }
  private_->forget(api_version);  // it may be installed later
  return failure(Code::kNotFound, "the server serves no kind \"" + kind + "\" in " + api_version);
}

Result<bool> Client::has_subresource(const Resource& resource, std::string_view subresource,
                                     const CallOptions& call) const {
  const auto resources = private_->served(resource.api_version(), call);
  if (!resources) {
    return failure(resources.error());
  }
  const std::string name = resource.plural + "/" + std::string(subresource);
  for (const ServedResource& served : *resources) {
    if (served.name == name) {
      return true;
    }
  }
  return false;
}

Result<std::string> Client::get_raw(const std::string& target, const CallOptions& call) const {
  return private_->text(private_->request("GET", target, call), "get " + target);
}

Status ignore_not_found(Status status) {
  if (!status && status.error().code == Code::kNotFound) {
    return {};
  }
  return status;
}

}  // namespace eldr::kube
