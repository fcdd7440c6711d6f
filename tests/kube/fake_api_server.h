// SPDX-License-Identifier: Apache-2.0
// An API server in memory, behind the Transport interface: create, get, list in pages, update, merge patch,
// server-side apply (as a merge), delete with preconditions, watch from a resource version. Faults on demand.
// It has no schemas, no defaults and no controllers: for those, integration tests use the real one.
// Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/kube/json.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"

namespace eldr::kube::testing {

class FakeApiServer final : public Transport {
 public:
  FakeApiServer();
  ~FakeApiServer() override;

  Result<HttpResponse> send(const HttpRequest& request) override;
  Result<StreamResponse> open_stream(const HttpRequest& request, std::chrono::milliseconds longest) override;

  // --- what tests do behind the client's back
  /// Creates or replaces an object, as somebody else would.
  void put(const Resource& resource, const std::string& ns, Json object);
  void erase(const Resource& resource, const ObjectKey& key);
  /// nullptr when it is not there.
  Json object(const Resource& resource, const ObjectKey& key) const;
  std::vector<Json> objects(const Resource& resource) const;

  /// Forgets the history: a watch from an older version gets 410, as a status or (`as_event`) as an ERROR
  /// event.
  void compact(bool as_event);
  void end_watches();                ///< regularly
  void break_watches(Error error);   ///< as a lost connection does
  void send_raw(std::string bytes);  ///< to every open watch, as it is
  void send_bookmarks();

  /// Asked before each request; what it returns is the answer. For faults: refused connections, 429, 500 …
  using Intercept = std::function<std::optional<Result<HttpResponse>>(const HttpRequest&)>;
  void intercept(Intercept intercept);

  std::vector<std::string> requests() const;           ///< "GET /api/v1/…" so far
  std::size_t count(const std::string& prefix) const;  ///< of the requests that begin so
  std::size_t open_watches() const;

 private:
  struct Private;
  std::shared_ptr<Private> private_;
};

/// A Status object with its HTTP status, as the API server would send it.
HttpResponse status_response(int code, const std::string& reason, const std::string& message,
                             int retry_after = 0);

}  // namespace eldr::kube::testing
