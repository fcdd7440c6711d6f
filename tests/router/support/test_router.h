// SPDX-License-Identifier: Apache-2.0
// A router in this process, on free ports, before fake workers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/http/client.h"
#include "router/app/router.h"
#include "tests/router/support/fake_worker.h"
#include "tests/router/support/raw_client.h"

namespace eldr::router::testing {

class TestRouter {
 public:
  /// `more`: further YAML. Deadlines are short unless it says otherwise; load is not polled.
  TestRouter(std::vector<FakeWorker*> prefill, std::vector<FakeWorker*> decode, const std::string& more = "",
             std::optional<std::vector<std::byte>> centroids = std::nullopt);

  std::uint16_t port() const { return router_->port(); }
  std::uint16_t admin_port() const { return router_->admin_port(); }
  Router& operator*() { return *router_; }
  Router* operator->() { return router_.get(); }

  /// One request with a fresh connection.
  http::ClientResponse post(const std::string& path, const std::string& body, http::Headers headers = {});
  http::ClientResponse get(const std::string& path);
  http::ClientResponse admin(const std::string& method, const std::string& path,
                             const std::string& body = "");
  /// The value of a series on the metrics page, written as there: name{a="b"}; -1: not there.
  double metric(const std::string& series);
  /// Waits up to `longest` for the series to have the value.
  bool metric_becomes(const std::string& series, double value,
                      std::chrono::milliseconds longest = std::chrono::seconds(3));

  static LoadedConfig config(const std::vector<FakeWorker*>& prefill, const std::vector<FakeWorker*>& decode,
                             const std::string& more,
                             std::optional<std::vector<std::byte>> centroids = std::nullopt);

 private:
  RealClock clock_;
  std::unique_ptr<Router> router_;
};

bool soon(const std::function<bool()>& holds, std::chrono::milliseconds longest = std::chrono::seconds(3));

}  // namespace eldr::router::testing
