// SPDX-License-Identifier: Apache-2.0
// A Kubernetes API server in memory, with what the reconcile loop leans on: resource versions, generations
// that move with the spec alone, a status subresource apart from the rest, scale, discovery, immutable
// ConfigMaps, preconditions, and a server-side apply that removes a manager's fields when they leave its
// intent. Faults on demand. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/clock.h"
#include "lib/kube/json.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"
#include "tests/kube/fake_api_server.h"

namespace eldr::op::testing {

using kube::Json;
using kube::ObjectKey;

class FakeCluster final : public kube::Transport {
 public:
  explicit FakeCluster(const Clock& clock) : clock_(clock) {}

  Result<kube::HttpResponse> send(const kube::HttpRequest& request) override;
  Result<kube::StreamResponse> open_stream(const kube::HttpRequest& request,
                                           std::chrono::milliseconds longest) override;

  // --- what other people and controllers do; none of it counts as a request
  /// Creates, or replaces keeping uid and status; metadata is filled in.
  Json put(const kube::Resource& resource, Json object);
  void edit(const kube::Resource& resource, const ObjectKey& key, const std::function<void(Json&)>& change);
  void erase(const kube::Resource& resource, const ObjectKey& key);
  /// null when it is not there.
  Json get(const kube::Resource& resource, const ObjectKey& key) const;
  std::vector<Json> all(const kube::Resource& resource) const;

  // --- faults
  /// Asked before each request; an answer stands in for the server's.
  std::function<std::optional<Result<kube::HttpResponse>>(const kube::HttpRequest&)> intercept;
  /// After that many writes have been done, every request fails as if the operator had died.
  std::optional<int> crash_after_writes;

  // --- what happened
  std::vector<std::string> writes() const;  ///< "PATCH configmaps qwen3-c-…"
  void clear_log();

 private:
  struct Entry {
    Json object;
    std::map<std::string, Json> intents;  ///< by field manager
  };
  using Collection = std::map<ObjectKey, Entry>;

  kube::HttpResponse answer(const kube::HttpRequest& request);
  kube::HttpResponse discovery(const std::string& api_version) const;
  kube::HttpResponse store(Collection& collection, const ObjectKey& key, Json next, bool status_only);
  Json filled(const Json& object, const ObjectKey& key, const Json* before);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Collection> collections_;  ///< by plural
  std::vector<std::string> writes_;
  std::int64_t version_ = 100;
  int uids_ = 0;
  int done_writes_ = 0;
};

using kube::testing::status_response;

}  // namespace eldr::op::testing
