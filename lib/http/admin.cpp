// SPDX-License-Identifier: Apache-2.0
#include "lib/http/admin.h"

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

namespace eldr::http {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";

void answer_check(const std::function<Status()>& check, ResponseWriter& writer) {
  const Status status = check ? check() : Status{};
  if (status) {
    (void)writer.respond(200, kText, "ok\n");
  } else {
    (void)writer.respond(503, kText, status.error().message + "\n");
  }
}

void answer_metrics(prometheus::Collectable& metrics, ResponseWriter& writer) {
  const std::string text = prometheus::TextSerializer().Serialize(metrics.Collect());
  (void)writer.respond(200, "text/plain; version=0.0.4; charset=utf-8", text);
}

bool is_read(const std::string& method) { return method == "GET" || method == "HEAD"; }

void answer(const AdminOptions& options, const Request& request, ResponseWriter& writer) {
  // HEAD is served by the route of GET; the writer leaves the body out.
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  if (const auto route = options.routes.find(method + " " + request.path); route != options.routes.end()) {
    route->second(request, writer);
    return;
  }
  const bool built_in = request.path == "/healthz" || request.path == "/readyz" ||
                        (request.path == "/metrics" && options.metrics);
  if (built_in && is_read(request.method)) {
    if (request.path == "/healthz") {
      answer_check(options.healthy, writer);
    } else if (request.path == "/readyz") {
      answer_check(options.ready, writer);
    } else {
      answer_metrics(*options.metrics, writer);
    }
    return;
  }
  std::string allowed = built_in ? "GET, HEAD" : "";
  for (const auto& [key, handler] : options.routes) {
    const auto space = key.find(' ');
    if (key.substr(space + 1) == request.path) {
      allowed += (allowed.empty() ? "" : ", ") + key.substr(0, space);
    }
  }
  if (allowed.empty()) {
    (void)writer.respond(404, kText, "no such path\n");
  } else {
    (void)writer.respond(405, kText, "method not allowed; allowed: " + allowed + "\n", {{"Allow", allowed}});
  }
}

}  // namespace

Handler admin_handler(AdminOptions options) {
  return [options = std::make_shared<const AdminOptions>(std::move(options))](
             const Request& request, ResponseWriter& writer) { answer(*options, request, writer); };
}

Result<std::unique_ptr<Server>> serve_admin(AdminOptions options) {
  for (const auto& [key, handler] : options.routes) {
    const auto space = key.find(' ');
    if (space == std::string::npos || space == 0 || key.size() <= space + 1 || key[space + 1] != '/') {
      return failure(Code::kInvalid, "admin route \"" + key + "\": allowed is \"METHOD /path\"");
    }
  }
  ServerOptions server = options.server;
  return Server::listen(std::move(server), admin_handler(std::move(options)));
}

}  // namespace eldr::http
