// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/informer.h"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "lib/kube/object.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;

Json config_map(const std::string& name, const std::string& value, const std::string& policy = "") {
  Json object = {{"metadata", {{"name", name}}}, {"data", {{"v", value}}}};
  if (!policy.empty()) {
    object["metadata"]["labels"]["eldr.dev/policy"] = policy;
  }
  return object;
}

class InformerTest : public ::testing::Test {
 protected:
  InformerTest() {
    options.resource = kConfigMaps;
    options.ns = "ns";
    options.watcher.backoff_first = 1ms;
    options.watcher.backoff_longest = 5ms;
    options.watcher.shortest_good_watch = 0ms;
  }
  void start() {
    informer = std::make_unique<Informer>(
        client, options,
        [this](const ObjectKey& key) {
          const std::lock_guard lock(mutex);
          told.insert(key.name);
        },
        clock, *random);
    informer->start();
  }
  bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000; ++i) {
      if (holds()) {
        return true;
      }
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }
  bool was_told(const std::string& name) {
    const std::lock_guard lock(mutex);
    return told.erase(name) != 0;
  }
  std::string value_of(const std::string& name) {
    const auto object = informer->store().get({"ns", name});
    return object == nullptr ? "(absent)" : string_at(*object, {"data", "v"});
  }

  const RealClock clock;
  std::unique_ptr<Random> random = make_random(1);
  std::shared_ptr<testing::FakeApiServer> server = std::make_shared<testing::FakeApiServer>();
  Client client{server, {}, clock};
  InformerOptions options;
  std::mutex mutex;
  std::set<std::string> told;
  std::unique_ptr<Informer> informer;
};

TEST_F(InformerTest, SyncsInPagesThenFollows) {
  options.watcher.page_size = 3;
  for (int i = 0; i < 10; ++i) {
    server->put(kConfigMaps, "ns", config_map("c" + std::to_string(i), "0"));
  }
  start();
  ASSERT_TRUE(informer->wait_for_sync(5s));
  EXPECT_EQ(informer->store().size(), 10U);
  EXPECT_EQ(server->count("GET /api/v1/namespaces/ns/configmaps?limit=3"), 4U);
  EXPECT_EQ(told.size(), 10U) << "the handler hears of everything before has_synced()";

  server->put(kConfigMaps, "ns", config_map("c1", "1"));
  EXPECT_TRUE(eventually([&] { return value_of("c1") == "1"; }));
  server->put(kConfigMaps, "other", config_map("elsewhere", "1"));
  server->erase(kConfigMaps, {"ns", "c2"});
  EXPECT_TRUE(eventually([&] { return informer->store().get({"ns", "c2"}) == nullptr; }));
  EXPECT_EQ(informer->store().size(), 9U);
  EXPECT_TRUE(eventually([&] { return informer->health().has_value(); }));
}

TEST_F(InformerTest, RelistAfter410TellsOfWhatVanishedMeanwhile) {
  for (const bool as_event : {false, true}) {
    server->put(kConfigMaps, "ns", config_map("kept", "0"));
    server->put(kConfigMaps, "ns", config_map("gone", "0"));
    start();
    ASSERT_TRUE(informer->wait_for_sync(5s));
    ASSERT_TRUE(eventually([&] { return server->open_watches() == 1; }));
    told.clear();
    // The connection is lost and nothing can be opened while the world goes on and the history is forgotten.
    server->intercept([](const HttpRequest& request) -> std::optional<Result<HttpResponse>> {
      if (request.target.find("watch=true") == std::string::npos) {
        return std::nullopt;
      }
      return Result<HttpResponse>(failure(Code::kUnavailable, "connection refused"));
    });
    server->break_watches(Error{Code::kUnavailable, "reset", 0});
    server->erase(kConfigMaps, {"ns", "gone"});
    server->put(kConfigMaps, "ns", config_map("fresh", "0"));
    server->compact(as_event);
    server->intercept(nullptr);
    EXPECT_TRUE(eventually([&] { return informer->store().get({"ns", "gone"}) == nullptr; }));
    EXPECT_TRUE(eventually([&] { return was_told("gone"); }));
    EXPECT_TRUE(eventually([&] { return was_told("fresh"); }));
    EXPECT_FALSE(was_told("kept")) << "what did not change is not told again";
    informer->stop();
    server->erase(kConfigMaps, {"ns", "fresh"});
  }
}

TEST_F(InformerTest, TruncatedLineAndLostConnectionLoseNothing) {
  server->put(kConfigMaps, "ns", config_map("a", "0"));
  start();
  ASSERT_TRUE(informer->wait_for_sync(5s));
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(eventually([&] { return server->open_watches() == 1; }));
    server->send_raw(R"({"type":"MODIFIED","object":{"metadata":{"na)");
    if (round % 2 == 0) {
      server->end_watches();
    } else {
      server->break_watches(Error{Code::kUnavailable, "reset", 0});
    }
    server->put(kConfigMaps, "ns", config_map("a", std::to_string(round)));
    EXPECT_TRUE(eventually([&] { return value_of("a") == std::to_string(round); })) << round;
  }
  EXPECT_EQ(server->count("GET /api/v1/namespaces/ns/configmaps?limit"), 1U) << "no relist was needed";
}

TEST_F(InformerTest, GarbageFromTheServerIsSurvived) {
  start();
  ASSERT_TRUE(informer->wait_for_sync(5s));
  for (const char* bytes : {"not json\n", "{}\n", "\n\n\n", "{\"type\":\"ADDED\",\"object\":7}\n"}) {
    ASSERT_TRUE(eventually([&] { return server->open_watches() == 1; }));
    server->send_raw(bytes);
  }
  server->put(kConfigMaps, "ns", config_map("a", "1"));
  EXPECT_TRUE(eventually([&] { return value_of("a") == "1"; }));
}

TEST_F(InformerTest, BookmarksMoveTheVersionFromWhichTheWatchReopens) {
  start();
  ASSERT_TRUE(informer->wait_for_sync(5s));
  ASSERT_TRUE(eventually([&] { return server->open_watches() == 1; }));
  server->put(kSecrets, "ns", {{"metadata", {{"name", "unrelated"}}}});  // moves the server's version
  const std::string version = resource_version_of(server->object(kSecrets, {"ns", "unrelated"}));
  server->send_bookmarks();
  server->end_watches();
  EXPECT_TRUE(eventually([&] {
    const auto requests = server->requests();
    return requests.back().find("resourceVersion=" + version) != std::string::npos;
  }));
}

TEST_F(InformerTest, ErrorsAtStartAreRetriedUntilTheServerIsThere) {
  server->intercept([](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    return Result<HttpResponse>(testing::status_response(500, "InternalError", "etcd is away"));
  });
  start();
  EXPECT_FALSE(informer->wait_for_sync(50ms));
  EXPECT_FALSE(informer->has_synced());
  ASSERT_FALSE(informer->health());
  EXPECT_NE(informer->health().error().message.find("etcd is away"), std::string::npos);
  server->intercept(nullptr);
  EXPECT_TRUE(informer->wait_for_sync(5s));
}

TEST_F(InformerTest, MapperNamesTheOwnersOfOldAndNewObject) {
  options.mapper = label_key("eldr.dev/policy");
  server->put(kConfigMaps, "ns", config_map("child", "0", "first"));
  start();
  ASSERT_TRUE(informer->wait_for_sync(5s));
  EXPECT_TRUE(was_told("first"));
  server->put(kConfigMaps, "ns", config_map("child", "0", "second"));
  EXPECT_TRUE(eventually([&] { return was_told("second"); }));
  EXPECT_TRUE(was_told("first")) << "the owner that lost it must look too";
  server->erase(kConfigMaps, {"ns", "child"});
  EXPECT_TRUE(eventually([&] { return was_told("second"); }));
}

TEST_F(InformerTest, StopsAtOnceInAWatchAndInABackoff) {
  options.watcher.backoff_first = 60s;
  options.watcher.backoff_longest = 60s;
  start();
  ASSERT_TRUE(informer->wait_for_sync(5s));
  auto begun = clock.steady();
  informer->stop();
  EXPECT_LT(clock.steady() - begun, 2s);
  EXPECT_FALSE(informer->wait_for_sync(1ms));
  server->intercept([](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    return Result<HttpResponse>(failure(Code::kUnavailable, "refused"));
  });
  start();
  std::this_thread::sleep_for(20ms);
  begun = clock.steady();
  informer->stop();
  EXPECT_LT(clock.steady() - begun, 2s);
}

TEST(KeyMappers, ControllerKeyNamesOwnersOfThatKindOnly) {
  Json child = {
      {"metadata",
       {{"name", "c"},
        {"namespace", "ns"},
        {"ownerReferences", {{{"kind", "EldrPolicy"}, {"name", "p"}, {"uid", "1"}, {"controller", true}}}}}}};
  EXPECT_EQ(controller_key("EldrPolicy")(child), (std::vector<ObjectKey>{{"ns", "p"}}));
  EXPECT_TRUE(controller_key("Deployment")(child).empty());
  child["metadata"]["ownerReferences"][0]["controller"] = false;
  EXPECT_TRUE(controller_key("EldrPolicy")(child).empty());
}

TEST(StoreTest, ReplaceReportsDifferencesByUidAndVersion) {
  const auto object = [](const std::string& name, const std::string& uid, const std::string& version) {
    return Json{
        {"metadata", {{"namespace", "n"}, {"name", name}, {"uid", uid}, {"resourceVersion", version}}}};
  };
  Store store;
  EXPECT_EQ(store.replace({object("a", "1", "1"), object("b", "2", "1"), object("c", "3", "1")}).size(), 3U);
  const auto changes = store.replace({object("a", "1", "1"), object("b", "9", "1"), object("d", "4", "1")});
  std::map<std::string, std::pair<bool, bool>> by_name;
  for (const auto& change : changes) {
    by_name[change.key.name] = {change.before != nullptr, change.after != nullptr};
  }
  const std::map<std::string, std::pair<bool, bool>> expected = {
      {"b", {true, true}}, {"c", {true, false}}, {"d", {false, true}}};  // b was deleted and made anew
  EXPECT_EQ(by_name, expected);
  EXPECT_EQ(store.list("n").size(), 3U);
  EXPECT_TRUE(store.list("other").empty());
  EXPECT_EQ(store.erase({"n", "zzz"}).before, nullptr);
}

}  // namespace
}  // namespace eldr::kube
