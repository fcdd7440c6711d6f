// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/integration.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include <unistd.h>

#include "lib/kube/cpprest_transport.h"

namespace eldr::op::testing {

void IntegrationTest::SetUp() {
  const char* kubeconfig = std::getenv("ELDR_TEST_KUBECONFIG");
  if (kubeconfig == nullptr || *kubeconfig == '\0')
    GTEST_SKIP() << "needs an API server: ELDR_TEST_KUBECONFIG is not set (scripts/test sets it)";
  kube::init_http_threads();
  auto made = kube::connect(kubeconfig, {}, "operator-test", clock);
  ASSERT_TRUE(made) << made.error().to_string();
  connection = std::move(*made);
  client = connection.client.get();

  std::ifstream in(std::string(ELDR_SOURCE_DIR) + "/crds/eldrpolicies.yaml");
  std::stringstream text;
  text << in.rdbuf();
  const auto crd =
      client->apply(kube::kCustomResourceDefinitions, "", from_yaml(text.str()), {.field_manager = "test"});
  ASSERT_TRUE(crd) << crd.error().to_string();
  wait_for("the CRD is established", [this] {
    const auto found = client->get(kube::kCustomResourceDefinitions, {"", "eldrpolicies.eldr.dev"});
    return found && kube::condition_is_true(*found, "Established");
  });
  static int count = 0;
  ns = "eldr-test-" + std::to_string(getpid()) + "-" + std::to_string(++count);
  const auto space = client->create(kube::kNamespaces, "", {{"metadata", {{"name", ns}}}});
  ASSERT_TRUE(space) << space.error().to_string();
  wait_for("the namespace has its service account", [this] {
    return client->get(kube::kServiceAccounts, {ns, "default"}).has_value();
  });
}

void IntegrationTest::TearDown() {
  if (client != nullptr && !ns.empty()) (void)client->remove(kube::kNamespaces, {"", ns});
}

Json IntegrationTest::get(const kube::Resource& resource, const std::string& name) const {
  const auto found = client->get(resource, {ns, name});
  return found ? *found : Json();
}

std::vector<Json> IntegrationTest::list(const kube::Resource& resource, const std::string& selector) const {
  const auto found = client->list(resource, ns, {.label_selector = selector});
  EXPECT_TRUE(found) << found.error().to_string();
  return found ? found->items : std::vector<Json>();
}

Json IntegrationTest::apply(const kube::Resource& resource, Json object) const {
  const auto made = client->apply(resource, ns, std::move(object), {.field_manager = "test"});
  EXPECT_TRUE(made) << made.error().to_string();
  return made ? *made : Json();
}

void IntegrationTest::merge(const kube::Resource& resource, const std::string& name, const Json& patch,
                            const std::string& subresource) const {
  const auto made = client->patch(resource, {ns, name}, kube::PatchType::kMerge, patch, subresource);
  EXPECT_TRUE(made) << made.error().to_string();
}

void IntegrationTest::wait_for(const std::string& what, const std::function<bool()>& condition) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) {
      const Json policy = ns.empty() ? Json() : get(kube::kEldrPolicies, "qwen3");
      FAIL() << "never happened: " << what << "\n"
             << (policy.is_object() ? policy.value("status", Json()).dump(1) : "");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace eldr::op::testing
