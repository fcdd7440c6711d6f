// SPDX-License-Identifier: Apache-2.0
#include "router/config/config.h"

#include <gtest/gtest.h>

namespace eldr::router {
namespace {

constexpr const char* kDecode = "decode: [{url: \"http://127.0.0.1:8200\"}]\n";

TEST(Config, TheDocumentedFile) {
  const auto config = parse_config(R"(
listen: 0.0.0.0:8000
admin: 127.0.0.1:9090
centroids: centroids.safetensors
routing: {policy: LoadAwareBand, tau: "0.2", loadWeight: 2.5, prefillPolicy: RoundRobin}
clusterIds: [0, 2]
prefill: [{url: "http://127.0.0.1:8100"}]
decode: [{url: "http://127.0.0.1:8200", cluster: 0}, {url: "http://host:8201/", cluster: 2}]
drainSeconds: 30
limits: {bodyBytes: 1000, attempts: 2}
timeouts: {connectSeconds: 0.5}
health: {failures: 5}
)",
                                   "/etc/eldr");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->centroids, "/etc/eldr/centroids.safetensors");
  EXPECT_EQ(config->routing.policy, DecodePolicyName::kLoadAwareBand);
  EXPECT_DOUBLE_EQ(config->routing.tau, 0.2);
  EXPECT_DOUBLE_EQ(*config->routing.load_weight, 2.5);
  EXPECT_EQ(config->routing.prefill_policy, PrefillPolicyName::kRoundRobin);
  EXPECT_EQ(config->cluster_ids, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(config->decode[1], (WorkerAddress{"host", 8201, 2}));
  EXPECT_EQ(config->drain, Milliseconds(30'000));
  EXPECT_EQ(config->limits.body, 1000U);
  EXPECT_EQ(config->limits.attempts, 2U);
  EXPECT_EQ(config->timeouts.connect, Milliseconds(500));
  EXPECT_EQ(config->health.failures, 5U);
}

TEST(Config, TheOneOfACluster) {
  const auto config = parse_config(R"(
listen: 0.0.0.0:8000
admin: 0.0.0.0:9090
centroids: /etc/eldr-centroids/centroids.safetensors
kubernetes:
  namespace: serving
  prefill: {selector: "app=prefill", port: 8000}
  decode: {selector: "app=decode,tier", port: 8001}
routing: {policy: LocalityBand, tau: "0.1", loadWeight: "", prefillPolicy: PrefixHash}
drainSeconds: 300
)",
                                   "/etc/eldr");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(config->kubernetes);
  EXPECT_EQ(config->kubernetes->namespace_name, "serving");
  EXPECT_EQ(config->kubernetes->decode.selector, "app=decode,tier");
  EXPECT_EQ(config->kubernetes->decode.port, 8001);
  EXPECT_EQ(config->centroids, "/etc/eldr-centroids/centroids.safetensors");
  EXPECT_FALSE(config->routing.load_weight);
}

TEST(Config, DefaultsNeedOnlyDecodeWorkers) {
  const auto config = parse_config(kDecode, "");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->routing.policy, DecodePolicyName::kLocalityBand);
  EXPECT_DOUBLE_EQ(config->routing.tau, 0.1);
  EXPECT_EQ(config->limits.body, 32U << 20U);
  EXPECT_TRUE(config->centroids.empty());
}

struct Wrong {
  const char* yaml;
  const char* message;  ///< what the error must contain: field, value, what is allowed
};
class WrongConfig : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongConfig, IsRefusedByFieldValueAndWhatIsAllowed) {
  const std::string yaml = GetParam().yaml;
  const auto config =
      parse_config(yaml.find("decode:") == std::string::npos ? yaml + "\n" + kDecode : yaml, "");
  ASSERT_FALSE(config) << yaml;
  EXPECT_EQ(config.error().code, Code::kInvalid);
  EXPECT_NE(config.error().message.find(GetParam().message), std::string::npos) << config.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Fields, WrongConfig,
    ::testing::Values(
        Wrong{"listn: 0.0.0.0:80", "listn: unknown field, expected one of admin, centroids"},
        Wrong{"routing: {polcy: Random}", "routing.polcy: unknown field"},
        Wrong{"routing: {policy: Fastest}",
              "routing.policy: \"Fastest\" is not allowed, expected one of LocalityBand, LoadAwareBand, "
              "JoinShortestQueue, PowerOfTwoChoices, RoundRobin, Random"},
        Wrong{"routing: {tau: 3}", "routing.tau: \"3\" is not allowed, expected a number from 0 to 2"},
        Wrong{"routing: {tau: x}", "routing.tau: \"x\""},
        Wrong{"routing: {tau: .nan}", "routing.tau: \".nan\""},
        Wrong{"routing: {tau: nan}", "routing.tau: \"nan\""},
        Wrong{"routing: {tau: [1]}", "routing.tau: a list is not allowed"},
        Wrong{"routing: 5", "routing: \"5\" is not allowed, expected a mapping"},
        Wrong{"routing: {prefillPolicy: LocalityBand}", "routing.prefillPolicy: \"LocalityBand\""},
        Wrong{"routing: {minimumCoverage: 1.5}", "expected a number from 0 to 1"},
        Wrong{"listen: nowhere", "listen"}, Wrong{"admin: 1.2.3.4:99999", "admin"},
        Wrong{"threads: -1", "threads: \"-1\" is not allowed, expected an integer from 0 to 256"},
        Wrong{"clusterIds: [0, x]", "clusterIds[1]: \"x\""},
        Wrong{"clusterIds: [1, 1]", "clusterIds[1]: 1 is listed twice"},
        Wrong{"clusterIds: 5", "clusterIds: \"5\" is not allowed, expected a list"},
        Wrong{"prefill: [{url: \"https://a:1\"}]",
              "prefill[0].url: \"https://a:1\" is not allowed, expected http://host:port"},
        Wrong{"prefill: [{url: \"http://a:1\", cluster: 2}]", "prefill[0].cluster: unknown field"},
        Wrong{"decode: [{url: \"http://a:1\"}, {url: \"http://a:1\"}]",
              "decode[1].url: \"http://a:1\" is listed twice"},
        Wrong{"decode: [{url: \"http://a:1\", cluster: -1}]", "decode[0].cluster: \"-1\""},
        Wrong{"decode: {}", "decode: a mapping is not allowed, expected a list"},
        Wrong{"kubernetes: {namespace: x, prefill: {selector: a}, decode: {selector: b}}\nprefill: []",
              "either kubernetes or lists of workers"},
        Wrong{"drainSeconds: soon", "drainSeconds: \"soon\""},
        Wrong{"limits: {bodyBytes: 0}", "limits.bodyBytes: \"0\" is not allowed, expected an integer from 1"},
        Wrong{"limits: {bodyBytes: 1.5}", "limits.bodyBytes: \"1.5\""},
        Wrong{"timeouts: {connectSeconds: 0}", "timeouts.connectSeconds: \"0\""},
        Wrong{"health: {failures: 0}", "health.failures: \"0\""},
        Wrong{"listen: a\nlisten: b", "listen: given twice"}, Wrong{"a: [", "not valid YAML at line"},
        Wrong{"[]\n#decode:", "document: a list is not allowed"}));

TEST(Config, AClusterNeedsItsSelectors) {
  const auto config = parse_config("kubernetes: {namespace: x, prefill: {selector: a}}", "");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("kubernetes.decode"), std::string::npos) << config.error().message;
  EXPECT_FALSE(parse_config("kubernetes: {prefill: {selector: a}, decode: {selector: b}}", ""));
  EXPECT_FALSE(parse_config("kubernetes: {namespace: x, prefill: {port: 1}, decode: {selector: b}}", ""));
}

TEST(Config, WithoutAnyDecodeWorkersItSaysWhatIsMissing) {
  const auto config = parse_config("", "");
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("decode"), std::string::npos);
}

TEST(WorkerUrl, AcceptsAndRefuses) {
  EXPECT_EQ(parse_worker_url("http://a")->port, 80);
  EXPECT_EQ(parse_worker_url("http://[::1]:90")->host, "::1");
  for (const auto* url : {"", "a:1", "http://", "http://:1", "http://a:", "http://a:0", "http://a:65536",
                          "http://a:1/path", "http://u@a:1", "http://[::1", "http://[::1]x", "ftp://a:1"})
    EXPECT_FALSE(parse_worker_url(url)) << url;
}

}  // namespace
}  // namespace eldr::router
