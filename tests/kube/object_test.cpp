// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/object.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

TEST(ResourceTest, Paths) {
  EXPECT_EQ(kPods.collection_path("ns"), "/api/v1/namespaces/ns/pods");
  EXPECT_EQ(kPods.collection_path(""), "/api/v1/pods");
  EXPECT_EQ(kDeployments.object_path("ns", "d", "scale"), "/apis/apps/v1/namespaces/ns/deployments/d/scale");
  EXPECT_EQ(kNamespaces.object_path("ignored", "n"), "/api/v1/namespaces/n");
  EXPECT_EQ(kEldrPolicies.api_version(), "eldr.dev/v1alpha1");
  EXPECT_EQ(kPods.object_path("a/b", "c?d"), "/api/v1/namespaces/a%2Fb/pods/c%3Fd")
      << "a name cannot leave its place";
  EXPECT_EQ(percent_encode("a=b,c in (x)"), "a%3Db%2Cc%20in%20%28x%29");
}

TEST(ObjectTest, ReadsNothingFromWhatIsNotThere) {
  for (const Json& object : {Json(), Json("text"), Json::array(), Json{{"metadata", 7}},
                             Json{{"metadata", {{"name", 7}, {"labels", Json::array()}}}}}) {
    EXPECT_EQ(object_name(object), "");
    EXPECT_EQ(generation_of(object), 0);
    EXPECT_FALSE(is_deleting(object));
    EXPECT_EQ(label_of(object, "a"), std::nullopt);
    EXPECT_EQ(controller_of(object), std::nullopt);
    EXPECT_EQ(find_condition(object, "Ready"), nullptr);
  }
  EXPECT_EQ(int_at(Json{{"a", 18446744073709551615ULL}}, {"a"}), std::nullopt);
  EXPECT_EQ(int_at(Json{{"a", 1.5}}, {"a"}), std::nullopt);
  EXPECT_EQ(int_at(Json{{"a", -3}}, {"a"}), -3);
}

TEST(ObjectTest, ControllerReferenceRoundTrip) {
  const Json owner = {{"metadata", {{"name", "p"}, {"uid", "u1"}}}};
  const Json child = {{"metadata", {{"ownerReferences", {controller_reference(kEldrPolicies, owner)}}}}};
  EXPECT_EQ(controller_of(child), (OwnerReference{"eldr.dev/v1alpha1", "EldrPolicy", "p", "u1"}));
  EXPECT_TRUE(is_controlled_by(child, "u1"));
  EXPECT_FALSE(is_controlled_by(child, "u2"));
  EXPECT_FALSE(is_controlled_by(Json(), ""));
}

TEST(ObjectTest, ConditionKeepsItsTransitionTimeUntilTheStatusChanges) {
  testing::FakeClock clock;
  Json conditions;
  const auto time = [&] { return string_at(conditions[0], {"lastTransitionTime"}); };
  EXPECT_TRUE(set_condition(conditions, {"Ready", "False", "Waiting", "m", 1}, clock.wall()));
  const std::string first = time();
  clock.advance(std::chrono::seconds(60));
  EXPECT_FALSE(set_condition(conditions, {"Ready", "False", "Waiting", "m", 1}, clock.wall()))
      << "nothing changed";
  EXPECT_TRUE(set_condition(conditions, {"Ready", "False", "Other", "m", 2}, clock.wall()));
  EXPECT_EQ(time(), first);
  EXPECT_TRUE(set_condition(conditions, {"Ready", "True", "Done", "", 2}, clock.wall()));
  EXPECT_NE(time(), first);
  EXPECT_EQ(conditions.size(), 1U);
  EXPECT_TRUE(condition_is_true({{"status", {{"conditions", conditions}}}}, "Ready"));
}

TEST(SelectorTest, MatchesAndText) {
  const Json selector = Json::parse(R"({"matchLabels":{"app":"decode"},"matchExpressions":[
      {"key":"tier","operator":"In","values":["a","b"]},{"key":"old","operator":"DoesNotExist"},
      {"key":"zone","operator":"NotIn","values":["z"]},{"key":"gpu","operator":"Exists"}]})");
  EXPECT_EQ(label_selector_text(selector), "app=decode,tier in (a,b),!old,zone notin (z),gpu");
  Json labels = {{"app", "decode"}, {"tier", "b"}, {"gpu", ""}};
  EXPECT_TRUE(selector_matches(selector, labels));
  labels["old"] = "1";
  EXPECT_FALSE(selector_matches(selector, labels));
  labels.erase("old");
  labels["zone"] = "z";
  EXPECT_FALSE(selector_matches(selector, labels));
  labels["zone"] = "y";
  labels["tier"] = "c";
  EXPECT_FALSE(selector_matches(selector, labels));
  EXPECT_FALSE(
      selector_matches(Json::parse(R"({"matchExpressions":[{"key":"a","operator":"Near"}]})"), labels));
  EXPECT_TRUE(selector_matches(Json(), labels));
  EXPECT_EQ(label_selector_text(Json()), "");
}

}  // namespace
}  // namespace eldr::kube
