// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/router/support/test_router.h"
#include "tests/signature/samples.h"

namespace eldr::router::testing {
namespace {

using nlohmann::json;

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() : bytes_(*signature::serialize_centroids(set_)) {}
  signature::CentroidSet set_ = signature::samples::centroids(3, {.clusters = 2});
  std::vector<std::byte> bytes_;
  FakeWorker prefill_{prefilled()};
  FakeWorker one_{decoded()};
  FakeWorker two_{decoded()};
};

TEST_F(AdminTest, HealthAndReadiness) {
  TestRouter router({&prefill_}, {&one_, &two_});
  EXPECT_EQ(router.admin("GET", "/healthz").status, 200);
  EXPECT_EQ(router.admin("GET", "/readyz").status, 200);
  router->leave_service();
  EXPECT_EQ(router.admin("GET", "/healthz").status, 200);
  EXPECT_EQ(router.admin("GET", "/readyz").status, 503);
  EXPECT_EQ(router.post("/v1/completions", R"({"prompt":"p"})").status, 200);  // traffic goes on
}

TEST_F(AdminTest, ConfigAndWorkersShowWhatIsInUse) {
  TestRouter router({&prefill_}, {&one_, &two_}, "routing: {tau: 0.25}\n", bytes_);
  const auto config = json::parse(router.admin("GET", "/eldr/v1/config").body);
  EXPECT_EQ(config["routing"]["tau"], 0.25);
  EXPECT_EQ(config["centroids"]["model"], set_.model);
  EXPECT_EQ(config["centroids"]["layers"], json(set_.spec.layers));
  EXPECT_EQ(config["centroids"]["clusterIds"], json::array({0, 1}));
  const auto workers = json::parse(router.admin("GET", "/eldr/v1/workers").body);
  EXPECT_EQ(workers["prefill"][0]["address"], prefill_.id());
  EXPECT_EQ(workers["decode"].size(), 2U);
  EXPECT_EQ(workers["decode"][0]["state"], "healthy");
  const auto page = router.admin("GET", "/metrics").body;
  EXPECT_NE(page.find("eldr_router_config_info{revision=\"" + config["revision"].get<std::string>()),
            std::string::npos);
}

TEST_F(AdminTest, ExplainTellsTheChoiceForCounts) {
  TestRouter router({&prefill_}, {&one_, &two_}, "routing: {tau: 0}\n", bytes_);
  json counts = json::array();
  const auto& spec = set_.spec;
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
    json row = json::array();
    for (std::uint32_t expert = 0; expert < spec.experts; ++expert) {
      const auto at = static_cast<Eigen::Index>(layer * spec.experts + expert);
      const float weight = spec.idf.data()[at];
      row.push_back(weight > 1e-6F ? static_cast<unsigned>(10000 * set_.centroids(1, at) / weight) : 0U);
    }
    counts.push_back(row);
  }
  const json body = {{"layers", spec.layers}, {"counts", counts}};
  const auto answer = router.admin("POST", "/eldr/v1/explain", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto explained = json::parse(answer.body);
  EXPECT_EQ(explained["reason"], "signature");
  EXPECT_EQ(explained["choice"], two_.id());
  EXPECT_EQ(explained["band"], 1);
  EXPECT_EQ(explained["candidates"].size(), 2U);
  EXPECT_GT(explained["similarities"][1]["similarity"].get<double>(), 0.99);
  EXPECT_EQ(router.metric("eldr_router_worker_requests_total{role=\"decode\",worker=\"" + two_.id() + "\"}"),
            0);
  for (const auto* wrong : {"", "[]", "{}", R"({"layers":[1],"counts":[]})",
                            R"({"layers":["x"],"counts":[[1]]})", R"({"layers":[1],"counts":[[-1]]})"})
    EXPECT_EQ(router.admin("POST", "/eldr/v1/explain", wrong).status, 400) << wrong;
}

TEST_F(AdminTest, LoadOfDecodeWorkersIsPolled) {
  TestRouter router({&prefill_}, {&one_, &two_}, "loadPollSeconds: 0.05\n");
  EXPECT_EQ(router.metric("eldr_router_load_poll_failures_total"), 0);
  one_.stop();
  EXPECT_TRUE(soon([&] { return router.metric("eldr_router_load_poll_failures_total") > 0; }));
}

}  // namespace
}  // namespace eldr::router::testing
