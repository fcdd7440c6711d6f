// SPDX-License-Identifier: Apache-2.0
// Each rule of the schema refuses and accepts, on a real API server: the table is crd_cases.yaml.
#include <fstream>
#include <sstream>

#include "tests/operator/integration.h"

namespace eldr::op::testing {
namespace {

using ::testing::HasSubstr;

class CrdIntegrationTest : public IntegrationTest {
 protected:
  Json policy() const {
    Json object = sample_policy();
    object["metadata"]["namespace"] = ns;
    return object;
  }
};

TEST_F(CrdIntegrationTest, EachRuleRefusesAndAccepts) {
  std::ifstream in(std::string(ELDR_SOURCE_DIR) + "/tests/operator/crd_cases.yaml");
  std::stringstream text;
  text << in.rdbuf();
  const Json cases = from_yaml(text.str());
  ASSERT_GT(cases.size(), 50U);
  for (const Json& entry : cases) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    Json object = policy();
    for (const auto& [path, value] : entry["set"].items()) {
      const Json::json_pointer at(path);
      if (value.is_null())
        object.at(at.parent_pointer()).erase(at.back());
      else
        object[at] = value;
    }
    const auto made = client->create(kube::kEldrPolicies, ns, object);
    if (entry.contains("refused")) {
      ASSERT_FALSE(made) << "was accepted";
      EXPECT_EQ(made.error().code, Code::kInvalid);
      EXPECT_THAT(made.error().message, HasSubstr(entry["refused"].get<std::string>()));
    } else {
      ASSERT_TRUE(made) << made.error().to_string();
      EXPECT_TRUE(parse_policy(*made))
          << "the operator refuses what the schema accepts: " << parse_policy(*made).error().to_string();
      ASSERT_TRUE(client->remove(kube::kEldrPolicies, kube::key_of(*made)));
    }
  }
}

TEST_F(CrdIntegrationTest, DefaultsAreFilledIn) {
  Json object = policy();
  object["spec"] = {
      {"model", {{"name", "m"}}},
      {"dataset", {{"configMap", {{"name", "c"}, {"key", "k"}}}}},
      {"prefill", {{"selector", {{"matchLabels", {{"a", "b"}}}}}}},
      {"decode", {{"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "d"}}}}},
      {"calibration", {{"engine", {{"service", {{"url", "http://e:1"}}}}}}}};
  const auto made = client->create(kube::kEldrPolicies, ns, object);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ((*made)["spec"]["routing"]["tau"], "0.1");
  EXPECT_EQ((*made)["spec"]["router"]["service"]["port"], 80);
  EXPECT_EQ((*made)["spec"]["calibration"]["fit"]["backend"], "Auto");
  const auto parsed = parse_policy(*made);
  ASSERT_TRUE(parsed) << parsed.error().to_string();
}

TEST_F(CrdIntegrationTest, UnknownFieldsOfPodPartsAreKeptAndOthersAreNot) {
  Json object = policy();
  object["spec"]["calibration"]["engine"] = {
      {"job",
       {{"image", "i"},
        {"env",
         Json::array({{{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "k"}}}}}}})}}}};
  object["spec"]["router"]["notAField"] = 1;
  const auto made = client->create(kube::kEldrPolicies, ns, object);
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ((*made)["spec"]["calibration"]["engine"]["job"]["env"][0]["valueFrom"]["secretKeyRef"]["name"],
            "s");
  EXPECT_FALSE((*made)["spec"]["router"].contains("notAField"));
}

TEST_F(CrdIntegrationTest, TheScaleSubresourceReadsAndSetsThePool) {
  Json object = policy();
  object["spec"]["decode"]["replicas"] = 3;
  ASSERT_TRUE(client->create(kube::kEldrPolicies, ns, object));
  const ObjectKey key{ns, "qwen3"};
  merge(kube::kEldrPolicies, "qwen3", {{"status", {{"decodeReplicas", 2}, {"selector", "app=decode"}}}},
        "status");
  const auto scale = client->get_scale(kube::kEldrPolicies, key);
  ASSERT_TRUE(scale) << scale.error().to_string();
  EXPECT_EQ(scale->replicas, 3);
  EXPECT_EQ(scale->status_replicas, 2);
  EXPECT_EQ(scale->selector, "app=decode");
  ASSERT_TRUE(client->set_scale(kube::kEldrPolicies, key, 6));
  EXPECT_EQ(get(kube::kEldrPolicies, "qwen3")["spec"]["decode"]["replicas"], 6);
}

}  // namespace
}  // namespace eldr::op::testing
