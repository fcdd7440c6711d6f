// SPDX-License-Identifier: Apache-2.0
#include "tests/router/support/test_router.h"

#include <thread>

#include <gtest/gtest.h>

namespace eldr::router::testing {
namespace {

std::string list(const std::string& name, const std::vector<FakeWorker*>& workers, bool clusters) {
  std::string yaml = name + ": [";
  for (std::size_t i = 0; i < workers.size(); ++i) {
    yaml += (i > 0 ? ", " : "") + std::string("{url: \"") + workers[i]->url() + "\"";
    if (clusters) yaml += ", cluster: " + std::to_string(i);
    yaml += "}";
  }
  return yaml + "]\n";
}

http::ClientResponse ask(std::uint16_t port, const std::string& method, const std::string& path,
                         const std::string& body, http::Headers headers) {
  http::ClientRequest request;
  request.host = "127.0.0.1";
  request.port = port;
  request.method = method;
  request.target = path;
  request.headers = std::move(headers);
  request.body = body;
  auto answer = http::fetch(request);
  EXPECT_TRUE(answer) << method << " " << path << ": " << answer.error().message;
  return answer ? std::move(*answer) : http::ClientResponse{};
}

}  // namespace

LoadedConfig TestRouter::config(const std::vector<FakeWorker*>& prefill,
                                const std::vector<FakeWorker*>& decode, const std::string& more,
                                std::optional<std::vector<std::byte>> centroids) {
  LoadedConfig loaded;
  loaded.text = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + list("prefill", prefill, false) +
                list("decode", decode, true) + more;
  if (more.find("threads") == std::string::npos) loaded.text += "\nthreads: 2\n";
  if (more.find("loadPollSeconds") == std::string::npos) loaded.text += "\nloadPollSeconds: 0\n";
  auto config = parse_config(loaded.text, "");
  EXPECT_TRUE(config) << config.error().message;
  loaded.config = std::move(*config);
  loaded.centroids = std::move(centroids);
  return loaded;
}

TestRouter::TestRouter(std::vector<FakeWorker*> prefill, std::vector<FakeWorker*> decode,
                       const std::string& more, std::optional<std::vector<std::byte>> centroids) {
  Router::Options options;
  options.clock = &clock_;
  options.seed = 1;
  auto router = Router::start(config(prefill, decode, more, std::move(centroids)), std::move(options));
  EXPECT_TRUE(router) << router.error().message;
  router_ = std::move(*router);
}

http::ClientResponse TestRouter::post(const std::string& path, const std::string& body,
                                      http::Headers headers) {
  return ask(port(), "POST", path, body, std::move(headers));
}
http::ClientResponse TestRouter::get(const std::string& path) { return ask(port(), "GET", path, "", {}); }
http::ClientResponse TestRouter::admin(const std::string& method, const std::string& path,
                                       const std::string& body) {
  return ask(admin_port(), method, path, body, {});
}

double TestRouter::metric(const std::string& series) {
  const auto page = "\n" + admin("GET", "/metrics").body;
  const auto at = page.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(page.substr(at + series.size() + 2));
}

bool TestRouter::metric_becomes(const std::string& series, double value, std::chrono::milliseconds longest) {
  return soon([&] { return metric(series) == value; }, longest);
}

bool soon(const std::function<bool()>& holds, std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace eldr::router::testing
