// SPDX-License-Identifier: Apache-2.0
// Typed calls to the Kubernetes API. Objects are JSON; errors are values whose code says what to do next
// (api_error.h). Nothing is retried here: callers have a queue, a watcher or an elector that knows how.
//
// Thread-safety: all methods may be called from any thread. The transport, the clock and the metrics must
// outlive the client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/kube/json.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"

namespace eldr::kube {

/// Told about every answer; see metrics.h.
class ClientMetrics {
 public:
  virtual ~ClientMetrics() = default;
  /// `code` is the HTTP status as text, or "<error>" when there was no answer (as client-go has it).
  virtual void request_done(std::string_view method, std::string_view code, double seconds) = 0;
};

struct CallOptions {
  std::chrono::milliseconds timeout{0};  ///< 0: the client's default; per HTTP request
  std::stop_token stop{};                ///< ends the call with kCancelled
};

struct ListOptions {
  std::string label_selector{};  ///< "app=decode,eldr.dev/policy=qwen3"
  std::string field_selector{};  ///< "metadata.name=prompts"
  int page_size = 500;
};

/// Include <nlohmann/json.hpp> to look inside. Items of typed resources lack apiVersion and kind on the wire;
/// they are filled in here.
struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;
};
struct ObjectPage {
  std::vector<Json> items;
  std::string resource_version;
  std::string continue_token;  ///< "" on the last page
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct RemoveOptions {
  std::string uid{};               ///< precondition; empty: none
  std::string resource_version{};  ///< precondition; empty: none
  Propagation propagation = Propagation::kBackground;
  std::optional<int> grace_period_seconds{};
};

struct ApplyOptions {
  std::string field_manager{};  ///< required, ≤ 128 characters
  bool force = true;            ///< take over fields of other managers instead of failing with kConflict
  bool dry_run = false;
};

enum class PatchType { kMerge, kJson };  ///< RFC 7386 · RFC 6902

struct WatchOptions {
  std::string label_selector{};
  std::string field_selector{};
  std::string
      resource_version;  ///< start right after it; "" starts at any point, with synthetic ADDED events
  std::chrono::seconds timeout{300};  ///< after which the server ends the watch
};

struct Scale {
  int replicas = 0;         ///< spec.replicas: what is wanted
  int status_replicas = 0;  ///< status.replicas: what was observed
  std::string selector{};   ///< status.selector, a label selector's text
  std::string resource_version{};
};

struct ClientOptions {
  std::chrono::milliseconds timeout{30'000};
  std::string field_manager{};  ///< sent with creates and patches; "" lets the server use the user agent
};

class Client {
 public:
  Client(std::shared_ptr<Transport> transport, ClientOptions options, const Clock& clock,
         ClientMetrics* metrics = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Result<Json> get(const Resource& resource, const ObjectKey& key, const CallOptions& call = {}) const;

  /// All objects, fetched in pages. An expired continue token starts over (at most three times, then
  /// kExpired). `ns` empty: all namespaces.
  Result<ObjectList> list(const Resource& resource, const std::string& ns, const ListOptions& options = {},
                          const CallOptions& call = {}) const;
  /// One page; `continue_token` is "" for the first.
  Result<ObjectPage> list_page(const Resource& resource, const std::string& ns, const ListOptions& options,
                               const std::string& continue_token, const CallOptions& call = {}) const;

  /// Opens a watch. Most callers want Informer (informer.h) instead. An HTTP status other than 200 is an
  /// error here.
  Result<std::unique_ptr<WatchStream>> watch(const Resource& resource, const std::string& ns,
                                             const WatchOptions& options, const CallOptions& call = {}) const;

  /// The namespace comes from `ns`; apiVersion and kind are filled in when absent. kAlreadyExists when it is
  /// there.
  Result<Json> create(const Resource& resource, const std::string& ns, Json object,
                      const CallOptions& call = {}) const;
  /// PUT: needs metadata.name; with metadata.resourceVersion it fails with kConflict when somebody was
  /// faster.
  Result<Json> update(const Resource& resource, const std::string& ns, Json object,
                      const CallOptions& call = {}) const;
  /// Server-side apply of the full intent. Creates what does not exist.
  Result<Json> apply(const Resource& resource, const std::string& ns, Json object,
                     const ApplyOptions& options, const CallOptions& call = {}) const;
  /// The same on the status subresource. The object needs metadata.name and status.
  Result<Json> apply_status(const Resource& resource, const std::string& ns, Json object,
                            const ApplyOptions& options, const CallOptions& call = {}) const;
  /// `subresource` is "" or "status" or "scale".
  Result<Json> patch(const Resource& resource, const ObjectKey& key, PatchType type, const Json& patch,
                     std::string_view subresource = "", const CallOptions& call = {}) const;
  /// kNotFound when it is not there (see ignore_not_found), kConflict when a precondition fails.
  Status remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options = {},
                const CallOptions& call = {}) const;

  /// Any resource with a scale subresource. kNotFound when the object or the subresource is not there.
  Result<Scale> get_scale(const Resource& resource, const ObjectKey& key, const CallOptions& call = {}) const;
  Result<Scale> set_scale(const Resource& resource, const ObjectKey& key, int replicas,
                          const CallOptions& call = {}) const;

  /// The resource that serves a kind: discover("apps/v1", "Deployment"). Found ones are remembered for ten
  /// minutes; kNotFound (asked again next time) when the server does not serve it.
  Result<Resource> discover(const std::string& api_version, const std::string& kind,
                            const CallOptions& call = {}) const;
  /// Whether that resource has a subresource, e.g. "scale".
  Result<bool> has_subresource(const Resource& resource, std::string_view subresource,
                               const CallOptions& call = {}) const;

  /// GET of any path as text: "/version", "/readyz".
  Result<std::string> get_raw(const std::string& target, const CallOptions& call = {}) const;

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

/// Success when the object is gone already.
Status ignore_not_found(Status status);

}  // namespace eldr::kube
