// SPDX-License-Identifier: Apache-2.0
// Against the real API server whose kubeconfig is in $ELDR_TEST_KUBECONFIG; skipped without one.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lib/kube/client.h"
#include "lib/kube/config.h"
#include "lib/kube/cpprest_transport.h"
#include "lib/kube/event_recorder.h"
#include "lib/kube/informer.h"
#include "lib/kube/leader_election.h"
#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A certificate that signed nothing.
constexpr const char* kForeignAuthority = R"(
-----BEGIN CERTIFICATE-----
MIIBiDCCAS2gAwIBAgIUUfl7eAX5jJMvAAEDzNuvsxL5h34wCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNc29tZWJvZHktZWxzZTAgFw0yNjExMzAwMjI0MjBaGA8yMTI2
MTEwNjAyMjQyMFowGDEWMBQGA1UEAwwNc29tZWJvZHktZWxzZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABCTMjBz+8/BDTNUNYZmWC2UqDBdZQQ8ouzehGmp/3u5Q
VsEleNPSY47J8hHvmShVvXnKGM0TXDxKVzn3FIIOvDKjUzBRMB0GA1UdDgQWBBT1
jfB0imRSpfRJaSnxNsP7IFnTajAfBgNVHSMEGDAWgBT1jfB0imRSpfRJaSnxNsP7
IFnTajAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQDQyFw5dl/6
W4VouLIqYGjRChC4eTEzoxBa//kmjxMeXgIhAI2HRUXzla7xtvHJoy58Bq03o2Zw
I97TbZlIc1uN/MaU
-----END CERTIFICATE-----
)";

class RealApi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { init_http_threads(); }

  void SetUp() override {
    const char* kubeconfig = std::getenv("ELDR_TEST_KUBECONFIG");
    if (kubeconfig == nullptr || *kubeconfig == '\0') {
      GTEST_SKIP() << "ELDR_TEST_KUBECONFIG is not set: no API server to test against";
    }
    auto loaded = load_config(kubeconfig, {});
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    config = *loaded;
    transport = transport_with(config);
    client = std::make_unique<Client>(transport, ClientOptions{}, clock);
    ns = "eldr-kube-" + std::to_string(::getpid()) + "-" + std::to_string(++serial);
    const auto created = client->create(kNamespaces, "", {{"metadata", {{"name", ns}}}});
    ASSERT_TRUE(created) << created.error().to_string();
  }
  void TearDown() override {
    if (client != nullptr) {
      // An API server alone has no controller that would empty the namespace.
      for (const Resource& resource : {kConfigMaps, kDeployments, kLeases, kEvents, kServiceAccounts}) {
        if (auto list = client->list(resource, ns)) {
          for (const Json& item : list->items) {
            (void)client->remove(resource, key_of(item));
          }
        }
      }
      (void)client->remove(kNamespaces, {"", ns});
    }
  }

  std::shared_ptr<Transport> transport_with(const Config& with) {
    auto made = make_cpprest_transport(with, {}, clock);
    EXPECT_TRUE(made);
    return std::shared_ptr<Transport>(std::move(*made));
  }
  Client client_with(const Config& with) { return Client(transport_with(with), ClientOptions{}, clock); }
  static Json config_map(const std::string& name, const std::string& value) {
    return {{"metadata", {{"name", name}, {"labels", {{"made-by", "test"}}}}}, {"data", {{"v", value}}}};
  }
  /// Controllers put a ConfigMap of their own into each namespace.
  static constexpr const char* kMine = "made-by=test";
  static bool eventually(const std::function<bool()>& holds, std::chrono::seconds longest = 10s) {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(20ms);
    }
    return true;
  }

  static inline int serial = 0;
  const RealClock clock;
  std::unique_ptr<Random> random = make_random();
  Config config;
  std::shared_ptr<Transport> transport;
  std::unique_ptr<Client> client;
  std::string ns;
};

TEST_F(RealApi, CreateGetUpdatePatchRemove) {
  const auto created = client->create(kConfigMaps, ns, config_map("a", "1"));
  ASSERT_TRUE(created) << created.error().to_string();
  EXPECT_FALSE(uid_of(*created).empty());
  EXPECT_EQ(client->create(kConfigMaps, ns, config_map("a", "1")).error().code, Code::kAlreadyExists);

  Json object = *client->get(kConfigMaps, {ns, "a"});
  EXPECT_EQ(object["data"]["v"], "1");
  object["data"]["v"] = "2";
  ASSERT_TRUE(client->update(kConfigMaps, ns, object));
  EXPECT_EQ(client->update(kConfigMaps, ns, object).error().code, Code::kConflict)
      << "its version is old now";

  ASSERT_TRUE(
      client->patch(kConfigMaps, {ns, "a"}, PatchType::kMerge, {{"data", {{"v", nullptr}, {"w", "3"}}}}));
  object = *client->get(kConfigMaps, {ns, "a"});
  EXPECT_EQ(object["data"], (Json{{"w", "3"}}));
  ASSERT_TRUE(client->patch(kConfigMaps, {ns, "a"}, PatchType::kJson,
                            Json::array({{{"op", "replace"}, {"path", "/data/w"}, {"value", "4"}}})));
  EXPECT_EQ((*client->get(kConfigMaps, {ns, "a"}))["data"]["w"], "4");

  ASSERT_TRUE(client->remove(kConfigMaps, {ns, "a"}));
  EXPECT_EQ(client->get(kConfigMaps, {ns, "a"}).error().code, Code::kNotFound);
  EXPECT_EQ(client->remove(kConfigMaps, {ns, "a"}).error().code, Code::kNotFound);
}

TEST_F(RealApi, InvalidObjectsNameTheField) {
  const auto refused =
      client->create(kDeployments, ns, {{"metadata", {{"name", "d"}}}, {"spec", Json::object()}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("spec.selector"));
  EXPECT_EQ(client->create(kConfigMaps, ns, config_map("Not_A_Name", "1")).error().code, Code::kInvalid);
  EXPECT_EQ(client->create(kConfigMaps, ns + "-absent", config_map("a", "1")).error().code, Code::kNotFound);
}

TEST_F(RealApi, RemoveHonoursPreconditions) {
  const auto created = client->create(kConfigMaps, ns, config_map("a", "1"));
  ASSERT_TRUE(created);
  EXPECT_EQ(
      client->remove(kConfigMaps, {ns, "a"}, {.uid = "00000000-0000-0000-0000-000000000000"}).error().code,
      Code::kConflict);
  EXPECT_EQ(client->remove(kConfigMaps, {ns, "a"}, {.resource_version = "1"}).error().code, Code::kConflict);
  EXPECT_TRUE(client->remove(kConfigMaps, {ns, "a"},
                             {.uid = uid_of(*created), .resource_version = resource_version_of(*created)}));
}

TEST_F(RealApi, ListGoesThroughPages) {
  constexpr int kObjects = 620;
  std::atomic<int> next{0}, failed{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 8; ++i) {
      workers.emplace_back([&] {
        for (int n = next++; n < kObjects; n = next++) {
          failed += client->create(kConfigMaps, ns, config_map("c" + std::to_string(n), "x")) ? 0 : 1;
        }
      });
    }
  }
  ASSERT_EQ(failed, 0);
  const auto first = client->list_page(kConfigMaps, ns, {.label_selector = kMine}, "");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->items.size(), 500U);
  EXPECT_FALSE(first->continue_token.empty());
  const auto all = client->list(kConfigMaps, ns, {.label_selector = kMine});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->items.size(), static_cast<std::size_t>(kObjects));
  std::set<std::string> names;
  for (const Json& item : all->items) {
    names.insert(object_name(item));
    EXPECT_EQ(item["kind"], "ConfigMap");
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kObjects));

  Informer informer(
      *client, {.resource = kConfigMaps, .ns = ns, .label_selector = kMine}, [](const ObjectKey&) {}, clock,
      *random);
  informer.start();
  ASSERT_TRUE(informer.wait_for_sync(20s));
  EXPECT_EQ(informer.store().size(), static_cast<std::size_t>(kObjects));
}

TEST_F(RealApi, InformerSeesCreateUpdateAndDelete) {
  std::mutex mutex;
  std::multiset<std::string> told;
  Informer informer(
      *client, {.resource = kConfigMaps, .ns = ns, .label_selector = "eldr.dev/test"},
      [&](const ObjectKey& key) {
        const std::lock_guard lock(mutex);
        told.insert(key.name);
      },
      clock, *random);
  informer.start();
  ASSERT_TRUE(informer.wait_for_sync(20s));
  EXPECT_EQ(informer.store().size(), 0U);
  Json object = config_map("a", "1");
  set_label(object, "eldr.dev/test", "yes");
  ASSERT_TRUE(client->create(kConfigMaps, ns, object));
  ASSERT_TRUE(client->create(kConfigMaps, ns, config_map("unlabelled", "1")));
  const auto value = [&] {
    const auto seen = informer.store().get({ns, "a"});
    return seen == nullptr ? "" : string_at(*seen, {"data", "v"});
  };
  EXPECT_TRUE(eventually([&] { return value() == "1"; }));
  ASSERT_TRUE(client->patch(kConfigMaps, {ns, "a"}, PatchType::kMerge, {{"data", {{"v", "2"}}}}));
  EXPECT_TRUE(eventually([&] { return value() == "2"; }));
  const auto seen = informer.store().get({ns, "a"});
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(find(*seen, {"metadata", "managedFields"}), nullptr);
  ASSERT_TRUE(client->remove(kConfigMaps, {ns, "a"}));
  EXPECT_TRUE(eventually([&] { return informer.store().size() == 0; }));
  EXPECT_TRUE(informer.health());
  const auto begun = clock.steady();
  informer.stop();
  EXPECT_LT(clock.steady() - begun, 2s) << "a watch in progress is cut off";
  const std::lock_guard lock(mutex);
  EXPECT_EQ(told.count("a"), 3U);
  EXPECT_EQ(told.count("unlabelled"), 0U);
}

/// Gives the first watch a resource version from before the server's history.
class OldVersionOnce final : public Transport {
 public:
  explicit OldVersionOnce(std::shared_ptr<Transport> inner) : inner_(std::move(inner)) {}
  Result<HttpResponse> send(const HttpRequest& request) override {
    lists += request.target.find("probes?") != std::string::npos ? 1 : 0;
    return inner_->send(request);
  }
  Result<StreamResponse> open_stream(const HttpRequest& request, std::chrono::milliseconds longest) override {
    HttpRequest changed = request;
    if (watches++ == 0) {
      const auto at = changed.target.find("resourceVersion=") + 16;
      changed.target.replace(at, changed.target.find('&', at) - at, "1");
    }
    return inner_->open_stream(changed, longest);
  }
  std::atomic<int> lists{0}, watches{0};

 private:
  std::shared_ptr<Transport> inner_;
};

TEST_F(RealApi, InformerSurvivesAResourceVersionThatIsTooOld) {
  // A kind that is new: the server's history of it begins now, so that version 1 is too old for certain.
  const Resource definitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                             "CustomResourceDefinition", false};
  const std::string group = ns + ".test.eldr.dev";
  const Resource probes{group, "v1", "probes", "Probe", true};
  const Json schema = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  const Json version = {
      {"name", "v1"}, {"served", true}, {"storage", true}, {"schema", {{"openAPIV3Schema", schema}}}};
  const Json names = {{"plural", "probes"}, {"singular", "probe"}, {"kind", "Probe"}};
  const Json definition = {
      {"metadata", {{"name", "probes." + group}}},
      {"spec", {{"group", group}, {"scope", "Namespaced"}, {"names", names}, {"versions", {version}}}}};
  const auto defined = client->create(definitions, "", definition);
  ASSERT_TRUE(defined) << defined.error().to_string();
  const Json before = {{"metadata", {{"name", "before"}}}};
  ASSERT_TRUE(eventually([&] { return client->create(probes, ns, before).has_value(); }, 30s));

  auto old_once = std::make_shared<OldVersionOnce>(transport);
  const Client through(old_once, {}, clock);
  Informer informer(
      through,
      {.resource = probes, .ns = ns, .label_selector = {}, .field_selector = {}, .mapper = {}, .watcher = {}},
      [](const ObjectKey&) {}, clock, *random);
  informer.start();
  ASSERT_TRUE(informer.wait_for_sync(20s));
  EXPECT_TRUE(eventually([&] { return old_once->watches >= 2; }));
  EXPECT_EQ(old_once->lists, 2) << "the 410 made it list again";
  ASSERT_TRUE(client->create(probes, ns, {{"metadata", {{"name", "after"}}}}));
  EXPECT_TRUE(eventually([&] { return informer.store().size() == 2; }));
  informer.stop();
  EXPECT_TRUE(client->remove(definitions, {"", "probes." + group}));
}

TEST_F(RealApi, WatchEndsRegularlyAndMalformedVersionIsAnError) {
  const auto list = client->list(kConfigMaps, ns);
  ASSERT_TRUE(list);
  auto stream = client->watch(kConfigMaps, ns, {.resource_version = list->resource_version, .timeout = 1s});
  ASSERT_TRUE(stream) << stream.error().to_string();
  std::string end = "not yet";
  while (!end.empty()) {
    auto bytes = (*stream)->read(10s);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    end = *bytes;
  }
  const auto refused = client->watch(kConfigMaps, ns, {.resource_version = "not-a-version"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("not-a-version"));
}

TEST_F(RealApi, ApplyOwnsAndRemovesFields) {
  const ApplyOptions mine{.field_manager = "eldr-test"};
  Json object = config_map("a", "1");
  object["data"]["extra"] = "x";
  ASSERT_TRUE(client->apply(kConfigMaps, ns, object, mine));
  ASSERT_TRUE(client->patch(kConfigMaps, {ns, "a"}, PatchType::kMerge, {{"data", {{"others", "y"}}}}));
  const auto applied = client->apply(kConfigMaps, ns, config_map("a", "2"), mine);
  ASSERT_TRUE(applied) << applied.error().to_string();
  EXPECT_EQ((*applied)["data"], (Json{{"v", "2"}, {"others", "y"}})) << "mine is gone, theirs stays";

  const auto again = client->apply(kConfigMaps, ns, config_map("a", "2"), mine);
  ASSERT_TRUE(again);
  EXPECT_EQ(resource_version_of(*again), resource_version_of(*applied)) << "no change, no new version";

  const ApplyOptions polite{.field_manager = "somebody-else", .force = false};
  EXPECT_EQ(client->apply(kConfigMaps, ns, config_map("a", "3"), polite).error().code, Code::kConflict);
  const ApplyOptions dry{.field_manager = "eldr-test", .dry_run = true};
  ASSERT_TRUE(client->apply(kConfigMaps, ns, config_map("a", "9"), dry));
  EXPECT_EQ((*client->get(kConfigMaps, {ns, "a"}))["data"]["v"], "2");
}

TEST_F(RealApi, StatusAndScaleSubresources) {
  const Json labels = {{"app", "d"}};
  const Json deployment = {{"metadata", {{"name", "d"}}},
                           {"spec",
                            {{"replicas", 2},
                             {"selector", {{"matchLabels", labels}}},
                             {"template",
                              {{"metadata", {{"labels", labels}}},
                               {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}}}}}}}}}}};
  ASSERT_TRUE(client->apply(kDeployments, ns, deployment, {.field_manager = "eldr-test"}));
  const auto resource = client->discover("apps/v1", "Deployment");
  ASSERT_TRUE(resource);
  EXPECT_EQ(*resource, kDeployments);
  EXPECT_EQ(client->has_subresource(*resource, "scale"), true);
  auto scale = client->get_scale(*resource, {ns, "d"});
  ASSERT_TRUE(scale) << scale.error().to_string();
  EXPECT_EQ(scale->replicas, 2);
  EXPECT_EQ(scale->selector, "app=d");
  scale = client->set_scale(*resource, {ns, "d"}, 5);
  ASSERT_TRUE(scale) << scale.error().to_string();
  EXPECT_EQ(scale->replicas, 5);
  EXPECT_EQ((*client->get(kDeployments, {ns, "d"}))["spec"]["replicas"], 5);
  EXPECT_EQ(client->get_scale(*resource, {ns, "absent"}).error().code, Code::kNotFound);
  EXPECT_EQ(client->get_scale(kConfigMaps, {ns, "absent"}).error().code, Code::kNotFound);

  const auto status = client->apply_status(
      kDeployments, ns, {{"metadata", {{"name", "d"}}}, {"status", {{"observedGeneration", 1}}}},
      {.field_manager = "eldr-test-status"});
  ASSERT_TRUE(status) << status.error().to_string();
  EXPECT_EQ((*status)["spec"]["replicas"], 5) << "the spec is not touched through status";
}

TEST_F(RealApi, DiscoveryKnowsWhatIsServed) {
  EXPECT_EQ(*client->discover("v1", "ConfigMap"), kConfigMaps);
  EXPECT_EQ(*client->discover("v1", "Namespace"), kNamespaces) << "cluster-scoped";
  EXPECT_EQ(client->discover("apps/v1", "Nonsense").error().code, Code::kNotFound);
  EXPECT_EQ(client->discover("nonsense.example.com/v1", "X").error().code, Code::kNotFound);
  EXPECT_EQ(client->has_subresource(kConfigMaps, "scale"), false);
}

TEST_F(RealApi, ForeignAuthorityAndWrongNameAreRefused) {
  Config foreign = config;
  foreign.certificate_authority = {.file = "", .text = kForeignAuthority};
  const auto refused = client_with(foreign).get_raw("/version");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("certificate is refused"));

  Config unknown = config;  // the system's authorities did not sign it either
  unknown.certificate_authority = {};
  EXPECT_FALSE(client_with(unknown).get_raw("/version"));

  Config wrong_name = config;
  wrong_name.tls_server_name = "wrong.example.com";
  EXPECT_FALSE(client_with(wrong_name).get_raw("/version"));
  Config right_name = config;
  right_name.tls_server_name = "kubernetes.default.svc";
  EXPECT_TRUE(client_with(right_name).get_raw("/version"));

  Config careless = foreign;
  careless.insecure_skip_tls_verify = true;
  EXPECT_TRUE(client_with(careless).get_raw("/version"));
}

TEST_F(RealApi, RotatedFilesArePickedUp) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("eldr-kube-rotate-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(directory / name) << text;
  };
  Config rotated = config;
  rotated.certificate_authority = {.file = (directory / "ca.crt").string(), .text = ""};
  write("ca.crt", kForeignAuthority);
  const Client through(transport_with(rotated), {}, clock);
  EXPECT_FALSE(through.get_raw("/version"));
  write("ca.crt", *config.certificate_authority.read());
  EXPECT_TRUE(through.get_raw("/version")) << "without a restart";
  write("ca.crt", "no PEM here");
  const Client fresh(transport_with(rotated), {}, clock);
  const auto refused = fresh.get_raw("/version");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no PEM certificate"));
  std::filesystem::remove_all(directory);
}

TEST_F(RealApi, TokenFileIsReadAgain) {
  ASSERT_TRUE(client->create(kServiceAccounts, ns, {{"metadata", {{"name", "reader"}}}}));
  HttpRequest request;
  request.method = "POST";
  request.target = kServiceAccounts.object_path(ns, "reader", "token");
  request.content_type = "application/json";
  request.body =
      R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}})";
  const auto answer = transport->send(request);
  ASSERT_TRUE(answer);
  const std::string token = string_at(Json::parse(answer->body, nullptr, false), {"status", "token"});
  if (token.empty()) {
    GTEST_SKIP() << "this API server gives out no tokens: " << answer->body;
  }
  const auto file =
      std::filesystem::temp_directory_path() / ("eldr-kube-token-" + std::to_string(::getpid()));
  std::ofstream(file) << "bogus";
  Config with_token = config;
  with_token.client_certificate = {};
  with_token.client_key = {};
  with_token.token_file = file.string();
  const Client reader = client_with(with_token);
  EXPECT_EQ(reader.get(kConfigMaps, {ns, "a"}).error().code, Code::kUnauthorized);
  std::ofstream(file) << token;
  EXPECT_EQ(reader.get(kConfigMaps, {ns, "a"}).error().code, Code::kForbidden) << "known, and has no rights";
  std::filesystem::remove(file);
}

TEST_F(RealApi, LeaseGoesFromOneElectorToTheOther) {
  struct Candidate {
    std::atomic<int> started{0}, lost{0};
    std::unique_ptr<LeaderElector> elector;
  } first, second;
  const auto run = [&](Candidate& candidate, const std::string& identity) {
    LeaderElectionOptions options;
    options.lease = {ns, "operator"};
    options.identity = identity;
    options.lease_duration = 3s;
    options.renew_deadline = 2s;
    options.retry_period = 200ms;
    candidate.elector = std::make_unique<LeaderElector>(
        *client, options, LeaderCallbacks{[&] { ++candidate.started; }, [&] { ++candidate.lost; }, {}}, clock,
        *random);
    ASSERT_TRUE(candidate.elector->start());
  };
  run(first, "first");
  ASSERT_TRUE(eventually([&] { return first.started == 1; }));
  run(second, "second");
  std::this_thread::sleep_for(4s);
  EXPECT_EQ(second.started, 0);
  EXPECT_TRUE(first.elector->is_leader());
  first.elector->stop_and_release();
  const auto begun = clock.steady();
  EXPECT_TRUE(eventually([&] { return second.started == 1; }));
  EXPECT_LT(clock.steady() - begun, 2s) << "released, so nobody waits for it to run out";
  EXPECT_EQ(string_at(*client->get(kLeases, {ns, "operator"}), {"spec", "holderIdentity"}), "second");
  second.elector->stop_and_release();
  EXPECT_EQ(first.lost + second.lost, 0);
}

TEST_F(RealApi, EventsAreAcceptedAndBecomeSeries) {
  const auto object = client->create(kConfigMaps, ns, config_map("a", "1"));
  ASSERT_TRUE(object);
  EventRecorder recorder(*client, {.controller = "eldr.dev/test", .instance = "test"}, clock);
  recorder.start();
  for (int i = 0; i < 3; ++i) {
    recorder.record(reference_to(kConfigMaps, *object), EventType::kWarning, "Tested", "Testing", "a note");
  }
  recorder.stop(10s);
  EXPECT_EQ(recorder.dropped(), 0U);
  const auto events = client->list(kEvents, ns);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->items.size(), 1U);
  EXPECT_EQ(events->items[0]["series"]["count"], 3);
  EXPECT_EQ(events->items[0]["regarding"]["uid"], uid_of(*object));
}

TEST_F(RealApi, NobodyThereIsUnavailableWithinTheDeadline) {
  Config nobody = config;
  nobody.server = "https://127.0.0.1:1";
  const Client lonely = client_with(nobody);
  const auto begun = clock.steady();
  EXPECT_EQ(lonely.get_raw("/version", {.timeout = 2s}).error().code, Code::kUnavailable);
  EXPECT_EQ(lonely.watch(kPods, ns, {}, {.timeout = 2s}).error().code, Code::kUnavailable);
  EXPECT_LT(clock.steady() - begun, 3s);
}

}  // namespace
}  // namespace eldr::kube
