// SPDX-License-Identifier: Apache-2.0
// The admin port of a program: /healthz, /readyz, /metrics and what the program adds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/base/status.h"
#include "lib/http/server.h"

namespace prometheus {
class Collectable;
}

namespace eldr::http {

struct AdminOptions {
  ServerOptions server;
  /// 200 "ok" while it returns success, else 503 with the error's text. Absent: always 200. Called from
  /// connection threads, so it must be thread-safe and quick.
  std::function<Status()> healthy;
  std::function<Status()> ready;
  /// Text exposition format 0.0.4 of everything it collects (a prometheus::Registry). Absent: 404.
  std::shared_ptr<prometheus::Collectable> metrics;
  /// "GET /eldr/v1/config" -> handler. A path that exists with another method answers 405; others 404.
  std::map<std::string, Handler> routes;
};

/// The handler alone, for programs that serve admin paths beside others.
Handler admin_handler(AdminOptions options);

/// Serves `options` until the answer is destroyed or stopped. kInvalid: a route not of the form "METHOD
/// /path".
Result<std::unique_ptr<Server>> serve_admin(AdminOptions options);

}  // namespace eldr::http
