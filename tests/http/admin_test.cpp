// SPDX-License-Identifier: Apache-2.0
#include "lib/http/admin.h"

#include <atomic>

#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include "lib/http/client.h"

namespace eldr::http {
namespace {

class AdminTest : public ::testing::Test {
 protected:
  void SetUp() override {
    registry_ = std::make_shared<prometheus::Registry>();
    prometheus::BuildCounter()
        .Name("eldr_test_total")
        .Help("A test.")
        .Register(*registry_)
        .Add({})
        .Increment(3);
    AdminOptions options;
    options.ready = [this]() -> Status {
      return ready_ ? Status{} : Status(failure(Code::kUnavailable, "no worker yet"));
    };
    options.metrics = registry_;
    options.routes["POST /explain"] = [](const Request& request, ResponseWriter& writer) {
      (void)writer.respond(200, "application/json", "{\"got\":" + std::to_string(request.body.size()) + "}");
    };
    auto server = serve_admin(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }

  ClientResponse call(const std::string& method, const std::string& target, const std::string& body = "") {
    auto response = fetch({"127.0.0.1", server_->port(), method, target, {}, body});
    EXPECT_TRUE(response) << response.error().message;
    return response ? *response : ClientResponse{};
  }

  std::atomic<bool> ready_{false};
  std::shared_ptr<prometheus::Registry> registry_;
  std::unique_ptr<Server> server_;
};

TEST_F(AdminTest, HealthIsGoodWithoutACheck) { EXPECT_EQ(call("GET", "/healthz").status, 200); }

TEST_F(AdminTest, ReadinessFollowsItsCheck) {
  const auto before = call("GET", "/readyz");
  EXPECT_EQ(before.status, 503);
  EXPECT_EQ(before.body, "no worker yet\n");
  ready_ = true;
  EXPECT_EQ(call("GET", "/readyz?verbose").status, 200);
}

TEST_F(AdminTest, MetricsAreInTextFormat) {
  const auto answer = call("GET", "/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(answer.body.find("# TYPE eldr_test_total counter\neldr_test_total 3"), std::string::npos)
      << answer.body;
}

TEST_F(AdminTest, RoutesAreServedByMethod) {
  EXPECT_EQ(call("POST", "/explain", "abc").body, "{\"got\":3}");
  const auto wrong = call("GET", "/explain");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST");
  EXPECT_EQ(call("DELETE", "/healthz").status, 405);
  EXPECT_EQ(call("GET", "/elsewhere").status, 404);
}

TEST(Admin, RefusesARouteWithoutMethod) {
  AdminOptions options;
  options.routes["/explain"] = [](const Request&, ResponseWriter&) {};
  const auto server = serve_admin(std::move(options));
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("\"/explain\""), std::string::npos);
}

TEST(Admin, WithoutMetricsThePathIsUnknown) {
  auto server = serve_admin({});
  ASSERT_TRUE(server);
  const auto answer = fetch({"127.0.0.1", (*server)->port(), "GET", "/metrics"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 404);
}

}  // namespace
}  // namespace eldr::http
