// SPDX-License-Identifier: Apache-2.0
// Files that change while the router runs.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/signature/safetensors.h"
#include "tests/router/support/test_router.h"
#include "tests/signature/samples.h"

namespace eldr::router::testing {
namespace {

using nlohmann::json;

TEST(Reload, TakesOverWorkersAndRoutingAndKeepsTheOldOnErrors) {
  FakeWorker prefill(prefilled());
  FakeWorker one(decoded());
  FakeWorker two(decoded());
  TestRouter router({&prefill}, {&one});
  const auto revision = json::parse(router.admin("GET", "/eldr/v1/config").body)["revision"];
  ASSERT_TRUE(router->reload(TestRouter::config({&prefill}, {&two}, "routing: {policy: Random}\n")));
  EXPECT_EQ(router.post("/v1/completions", R"({"prompt":"p"})").status, 200);
  EXPECT_EQ(one.count(), 0U);
  EXPECT_EQ(two.count(), 1U);
  const auto config = json::parse(router.admin("GET", "/eldr/v1/config").body);
  EXPECT_NE(config["revision"], revision);
  EXPECT_EQ(config["routing"]["policy"], "Random");
  EXPECT_EQ(router.metric("eldr_router_config_reloads_total{result=\"accepted\"}"), 1);

  auto broken = TestRouter::config({&prefill}, {&one}, "");
  broken.centroids = std::vector<std::byte>(10);
  EXPECT_FALSE(router->reload(std::move(broken)));
  router->reload_failed(Error{Code::kInvalid, "routing.tau: …", 0});
  EXPECT_EQ(json::parse(router.admin("GET", "/eldr/v1/config").body), config);
  EXPECT_EQ(router.post("/v1/completions", R"({"prompt":"p"})").status, 200);
  EXPECT_EQ(two.count(), 2U);
  EXPECT_EQ(router.metric("eldr_router_config_reloads_total{result=\"refused\"}"), 2);
}

class ConfigFilesTest : public ::testing::Test {
 protected:
  ConfigFilesTest() {
    std::string pattern = ::testing::TempDir() + "routerXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ConfigFilesTest() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  std::string folder_;
};

TEST_F(ConfigFilesTest, NoticesAChangeOfEitherFile) {
  write("router.yaml", "centroids: c.safetensors\ndecode: [{url: \"http://127.0.0.1:1\"}]\n");
  const auto centroids = *signature::serialize_centroids(signature::samples::centroids(1));
  ASSERT_TRUE(signature::write_file_atomically(folder_ + "/c.safetensors", centroids));
  ConfigFiles files(folder_ + "/router.yaml");
  const auto loaded = files.load();
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->centroids, centroids);
  EXPECT_FALSE(files.changed());
  ASSERT_TRUE(signature::write_file_atomically(
      folder_ + "/c.safetensors", *signature::serialize_centroids(signature::samples::centroids(2))));
  EXPECT_TRUE(files.changed());
  ASSERT_TRUE(files.load());
  EXPECT_FALSE(files.changed());
  write("router.yaml", "decode: [{url: \"http://127.0.0.1:2\"}]\n");
  EXPECT_TRUE(files.changed());
  EXPECT_FALSE(files.load()->centroids);
  write("router.yaml", "decode: 5\n");
  EXPECT_TRUE(files.changed());
  const auto wrong = files.load();
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("router.yaml: decode"), std::string::npos) << wrong.error().message;
  EXPECT_FALSE(files.changed());  // the same mistake is reported once
}

TEST_F(ConfigFilesTest, SaysWhatIsMissing) {
  EXPECT_EQ(load_config_files(folder_ + "/none.yaml").error().code, Code::kNotFound);
  write("router.yaml", "centroids: none.safetensors\ndecode: [{url: \"http://127.0.0.1:1\"}]\n");
  const auto loaded = load_config_files(folder_ + "/router.yaml");
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("none.safetensors"), std::string::npos) << loaded.error().message;
}

}  // namespace
}  // namespace eldr::router::testing
