// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client.h"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "lib/kube/metrics.h"
#include "lib/kube/object.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Answers from a list and remembers what was asked.
class ScriptedTransport final : public Transport {
 public:
  Result<HttpResponse> send(const HttpRequest& request) override {
    asked.push_back(request);
    if (answers.empty()) {
      return HttpResponse{200, "{}", 0};
    }
    auto answer = answers.front();
    answers.pop_front();
    return answer;
  }
  Result<StreamResponse> open_stream(const HttpRequest& request, std::chrono::milliseconds longest) override {
    asked.push_back(request);
    longest_asked = longest;
    StreamResponse response;
    response.head = testing::status_response(410, "Expired", "too old");
    return response;
  }
  void answer(int status, const Json& body) { answers.push_back(HttpResponse{status, body.dump(), 0}); }
  std::vector<HttpRequest> asked;
  std::deque<Result<HttpResponse>> answers;
  std::chrono::milliseconds longest_asked{0};
};

class ClientTest : public ::testing::Test {
 protected:
  testing::FakeClock clock;
  std::shared_ptr<ScriptedTransport> transport = std::make_shared<ScriptedTransport>();
  Client client{transport, {}, clock};
  const HttpRequest& asked() const { return transport->asked.back(); }
  Json sent() const { return Json::parse(asked().body); }
};

TEST_F(ClientTest, ApplySendsTheFullIntentWithManagerAndForce) {
  ASSERT_TRUE(client.apply(kDeployments, "ns", {{"metadata", {{"name", "d"}}}}, {.field_manager = "eldr/x"}));
  EXPECT_EQ(asked().method, "PATCH");
  EXPECT_EQ(asked().target, "/apis/apps/v1/namespaces/ns/deployments/d?fieldManager=eldr%2Fx&force=true");
  EXPECT_EQ(asked().content_type, "application/apply-patch+yaml");
  EXPECT_EQ(sent()["apiVersion"], "apps/v1");
  EXPECT_EQ(sent()["kind"], "Deployment");
  ASSERT_TRUE(client.apply_status(kEldrPolicies, "ns", {{"metadata", {{"name", "p"}}}},
                                  {.field_manager = "m", .force = false, .dry_run = true}));
  EXPECT_EQ(
      asked().target,
      "/apis/eldr.dev/v1alpha1/namespaces/ns/eldrpolicies/p/status?fieldManager=m&force=false&dryRun=All");
}

TEST_F(ClientTest, WhatCannotBeRightIsRefusedBeforeItIsSent) {
  const Json nameless = Json::object();
  EXPECT_EQ(client.apply(kConfigMaps, "ns", nameless, {.field_manager = "m"}).error().code, Code::kInvalid);
  EXPECT_EQ(client.apply(kConfigMaps, "ns", {{"metadata", {{"name", "x"}}}}, {}).error().code,
            Code::kInvalid);
  EXPECT_EQ(client.get(kConfigMaps, {"", "x"}).error().code, Code::kInvalid);
  EXPECT_EQ(client.get(kConfigMaps, {"ns", ""}).error().code, Code::kInvalid);
  EXPECT_EQ(client.remove(kConfigMaps, {"ns", ""}).error().code, Code::kInvalid)
      << "never a whole collection";
  EXPECT_EQ(client.create(kConfigMaps, "", {{"metadata", {{"name", "x"}}}}).error().code, Code::kInvalid);
  EXPECT_EQ(client.create(kConfigMaps, "ns", {{"metadata", {{"name", "x"}}}, {"data", {{"k", "\xff"}}}})
                .error()
                .code,
            Code::kInvalid);
  EXPECT_EQ(client.discover("a/b/c", "X").error().code, Code::kInvalid);
  EXPECT_EQ(client.discover("", "X").error().code, Code::kInvalid);
  EXPECT_TRUE(transport->asked.empty());
}

TEST_F(ClientTest, RemoveCarriesPreconditionsAndPropagation) {
  ASSERT_TRUE(client.remove(kJobs, {"ns", "j"},
                            {.uid = "u",
                             .resource_version = "7",
                             .propagation = Propagation::kForeground,
                             .grace_period_seconds = 0}));
  EXPECT_EQ(asked().method, "DELETE");
  EXPECT_EQ(sent()["preconditions"], (Json{{"uid", "u"}, {"resourceVersion", "7"}}));
  EXPECT_EQ(sent()["propagationPolicy"], "Foreground");
  EXPECT_EQ(sent()["gracePeriodSeconds"], 0);
  ASSERT_TRUE(client.remove(kJobs, {"ns", "j"}));
  EXPECT_EQ(sent().count("preconditions"), 0U);
  EXPECT_EQ(sent()["propagationPolicy"], "Background");
}

TEST_F(ClientTest, PatchTypesHaveTheirContentTypes) {
  ASSERT_TRUE(client.patch(kPods, {"ns", "p"}, PatchType::kMerge, {{"a", nullptr}}));
  EXPECT_EQ(asked().content_type, "application/merge-patch+json");
  ASSERT_TRUE(client.patch(kPods, {"ns", "p"}, PatchType::kJson, Json::array(), "status"));
  EXPECT_EQ(asked().content_type, "application/json-patch+json");
  EXPECT_THAT(asked().target, HasSubstr("/pods/p/status"));
}

TEST_F(ClientTest, ScaleIsReadAndSetOnTheSubresource) {
  transport->answer(200, Json::parse(R"({"metadata":{"resourceVersion":"3"},"spec":{"replicas":4},
                                         "status":{"replicas":2,"selector":"app=decode"}})"));
  const auto scale = client.get_scale(kDeployments, {"ns", "d"});
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->replicas, 4);
  EXPECT_EQ(scale->status_replicas, 2);
  EXPECT_EQ(scale->selector, "app=decode");
  ASSERT_TRUE(client.set_scale(kDeployments, {"ns", "d"}, 6));
  EXPECT_EQ(asked().target, "/apis/apps/v1/namespaces/ns/deployments/d/scale");
  EXPECT_EQ(sent(), (Json{{"spec", {{"replicas", 6}}}}));
}

TEST_F(ClientTest, ListGoesThroughPagesAndStartsOverWhenTheTokenExpires) {
  const auto page = [](const std::string& name, const std::string& token) {
    return Json{{"metadata", {{"resourceVersion", "5"}, {"continue", token}}},
                {"items", {{{"metadata", {{"name", name}}}}}}};
  };
  transport->answer(200, page("a", "t1"));
  transport->answers.push_back(testing::status_response(410, "Expired", "token is too old"));
  transport->answer(200, page("a", "t2"));
  transport->answer(200, page("b", ""));
  const auto list = client.list(kConfigMaps, "ns", {.label_selector = "a=b"});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 2U);
  EXPECT_EQ(list->items[1]["kind"], "ConfigMap") << "items are told what they are";
  EXPECT_EQ(transport->asked[0].target, "/api/v1/namespaces/ns/configmaps?limit=500&labelSelector=a%3Db");
  EXPECT_THAT(transport->asked[1].target, HasSubstr("continue=t1"));
  EXPECT_THAT(transport->asked[2].target, ::testing::Not(HasSubstr("continue")));
  for (int i = 0; i < 20; ++i) {
    transport->answer(200, page("a", "t"));
    transport->answers.push_back(testing::status_response(410, "Expired", "token is too old"));
  }
  EXPECT_EQ(client.list(kConfigMaps, "ns").error().code, Code::kExpired) << "not for ever";
}

TEST_F(ClientTest, PagesTooLargeAreAskedForInHalves) {
  transport->answers.push_back(failure(Code::kResourceExhausted, "too large"));
  transport->answer(200, Json{{"metadata", {{"resourceVersion", "5"}}}, {"items", Json::array()}});
  ASSERT_TRUE(client.list(kConfigMaps, "ns"));
  EXPECT_THAT(asked().target, HasSubstr("limit=250"));
}

TEST_F(ClientTest, AnswersThatAreNoAnswersAreErrors) {
  for (const char* body : {"", "[]", "null", "<html>", "{\"items\":"}) {
    transport->answers.push_back(HttpResponse{200, body, 0});
    EXPECT_EQ(client.get(kConfigMaps, {"ns", "x"}).error().code, Code::kUnavailable) << body;
    transport->answers.push_back(HttpResponse{200, body, 0});
    EXPECT_FALSE(client.list(kConfigMaps, "ns")) << body;
  }
  transport->answers.push_back(HttpResponse{200, R"({"items":[]})", 0});
  EXPECT_FALSE(client.list(kConfigMaps, "ns")) << "a list without a version cannot be watched from";
  transport->answers.push_back(HttpResponse{200, R"({"metadata":{"resourceVersion":"1"},"items":[7]})", 0});
  EXPECT_FALSE(client.list(kConfigMaps, "ns"));
}

TEST_F(ClientTest, WatchAsksForBookmarksAndMapsARefusal) {
  const auto refused = client.watch(kPods, "", {.label_selector = "a", .resource_version = "9"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExpired);
  EXPECT_EQ(asked().target,
            "/api/v1/"
            "pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=9&labelSelector=a");
  EXPECT_GT(transport->longest_asked, std::chrono::seconds(300));
}

TEST_F(ClientTest, DiscoveryIsRememberedAndAMissingKindIsAskedForAgain) {
  const Json served = Json::parse(R"({"resources":[
      {"name":"leaderworkersets","kind":"LeaderWorkerSet","namespaced":true},
      {"name":"leaderworkersets/scale","kind":"Scale","namespaced":true}]})");
  transport->answer(200, served);
  const auto found = client.discover("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->object_path("ns", "x"),
            "/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets/x");
  EXPECT_EQ(client.has_subresource(*found, "scale"), true);
  EXPECT_EQ(client.has_subresource(*found, "status"), false);
  EXPECT_EQ(transport->asked.size(), 1U);
  EXPECT_EQ(client.discover("leaderworkerset.x-k8s.io/v1", "Scale").error().code, Code::kNotFound)
      << "a subresource's kind is no resource";
  transport->answer(200, served);
  ASSERT_TRUE(client.discover("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"));
  EXPECT_EQ(transport->asked.size(), 2U);
  clock.advance(std::chrono::minutes(10));
  transport->answer(200, served);
  ASSERT_TRUE(client.discover("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"));
  EXPECT_EQ(transport->asked.size(), 3U);
}

TEST_F(ClientTest, ErrorsSayWhatWasTried) {
  transport->answers.push_back(testing::status_response(404, "NotFound", "configmaps \"x\" not found"));
  EXPECT_EQ(client.get(kConfigMaps, {"ns", "x"}).error().message,
            "get configmaps ns/x: configmaps \"x\" not found");
  transport->answers.push_back(failure(Code::kTimeout, "the deadline passed"));
  EXPECT_EQ(client.get(kConfigMaps, {"ns", "x"}).error().to_string(),
            "Timeout: get configmaps ns/x: the deadline passed");
  EXPECT_TRUE(ignore_not_found(failure(Code::kNotFound, "x")));
  EXPECT_FALSE(ignore_not_found(failure(Code::kConflict, "x")));
}

TEST(MetricsTest, NamesAndLabels) {
  prometheus::Registry registry;
  testing::FakeClock clock;
  const auto metrics = make_client_metrics(registry);
  const auto queue_metrics = make_work_queue_metrics(registry, "policies");
  const auto leader = make_leader_election_metrics(registry, "eldr-operator");
  const auto reconcile = make_reconcile_metrics(registry, "eldrpolicy");
  auto transport = std::make_shared<ScriptedTransport>();
  const Client client(transport, {}, clock, metrics.get());
  (void)client.get(kPods, {"ns", "p"});
  transport->answers.push_back(failure(Code::kUnavailable, "x"));
  (void)client.get(kPods, {"ns", "p"});
  WorkQueue queue(clock, {}, queue_metrics.get());
  queue.add({"ns", "p"});
  leader->leading(true);
  reconcile->started();
  reconcile->finished(ReconcileResult::kError, 0.1);
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  for (const char* line :
       {R"(rest_client_requests_total{code="200",method="GET"} 1)",
        R"(rest_client_requests_total{code="<error>",method="GET"} 1)",
        R"(workqueue_depth{name="policies"} 1)", R"(workqueue_adds_total{name="policies"} 1)",
        R"(leader_election_master_status{name="eldr-operator"} 1)",
        R"(controller_runtime_reconcile_total{controller="eldrpolicy",result="error"} 1)",
        R"(controller_runtime_reconcile_total{controller="eldrpolicy",result="success"} 0)",
        R"(controller_runtime_reconcile_errors_total{controller="eldrpolicy"} 1)",
        R"(controller_runtime_active_workers{controller="eldrpolicy"} 0)"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace eldr::kube
