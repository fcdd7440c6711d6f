// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/config.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/kube/token_source.h"
#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using ::testing::HasSubstr;

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory = std::filesystem::temp_directory_path() /
                ("eldr-config-" + std::string(info->name()) + "-" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory);
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory / name) << text;
    return (directory / name).string();
  }
  Result<Config> parsed(const std::string& text) { return parse_kubeconfig(text, directory.string(), "kc"); }
  /// A kubeconfig with these fields in its cluster and its user.
  static std::string kubeconfig(const std::string& cluster, const std::string& user) {
    return "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: serving}}]\n"
           "clusters: [{name: k, cluster: {" +
           cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
  }
  void expect_error(const std::string& text, const std::string& field) {
    const auto config = parsed(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Code::kInvalid);
    EXPECT_THAT(config.error().message, HasSubstr(field)) << text;
    EXPECT_THAT(config.error().message, HasSubstr("kc")) << "the file is named";
  }
  std::filesystem::path directory;
};

TEST_F(ConfigTest, ReadsEverything) {
  write("ca.crt", "CA");
  write("key.pem", "KEY");
  const auto config =
      parsed(kubeconfig("server: \"https://h:6443/\", certificate-authority: ca.crt, tls-server-name: other",
                        "client-certificate-data: Q0VSVA==, client-key: key.pem, token: t, tokenFile: tok"));
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->server, "https://h:6443");
  EXPECT_EQ(config->default_namespace, "serving");
  EXPECT_EQ(config->certificate_authority.file, (directory / "ca.crt").string())
      << "relative to the kubeconfig";
  EXPECT_EQ(*config->certificate_authority.read(), "CA");
  EXPECT_EQ(*config->client_certificate.read(), "CERT");
  EXPECT_EQ(*config->client_key.read(), "KEY");
  EXPECT_EQ(config->token, "t");
  EXPECT_EQ(config->token_file, (directory / "tok").string());
  EXPECT_EQ(config->tls_server_name, "other");
  EXPECT_FALSE(config->insecure_skip_tls_verify);
}

TEST_F(ConfigTest, ErrorsNameTheField) {
  const std::string good_server = "server: \"https://h\"";
  expect_error("[]", "mapping");
  expect_error("a: [", "not YAML");
  expect_error("contexts: []", "current-context");
  expect_error("current-context: nope\ncontexts: [{name: a, context: {}}, {name: b, context: {}}]",
               "\"nope\" is not among contexts: a, b");
  expect_error("current-context: c\ncontexts: {a: b}", "contexts");
  expect_error("current-context: c\ncontexts: [{context: {}}]", "contexts");
  expect_error("current-context: c\ncontexts: [{name: c, context: {cluster: zzz}}]",
               "contexts[c].cluster: \"zzz\"");
  expect_error(
      "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: zzz}}]\n"
      "clusters: [{name: k, cluster: {server: \"https://h\"}}]",
      "contexts[c].user: \"zzz\"");
  expect_error(kubeconfig("", ""), "clusters[k].server");
  expect_error(kubeconfig("server: \"ftp://h\"", ""), "must begin with https://");
  expect_error(kubeconfig("server: [1]", ""), "clusters[k].server: must be a string");
  expect_error(kubeconfig(good_server + ", insecure-skip-tls-verify: maybe", ""), "must be true or false");
  expect_error(kubeconfig(good_server + ", certificate-authority-data: \"***\"", ""),
               "clusters[k].certificate-authority-data: is not base64");
  expect_error(kubeconfig(good_server + ", certificate-authority: missing.crt", ""),
               "clusters[k].certificate-authority");
  expect_error(kubeconfig(good_server + ", proxy-url: \"http://p\"", ""), "clusters[k].proxy-url");
  expect_error(kubeconfig(good_server, "client-certificate-data: Q0VSVA=="),
               "users[u].client-key: is missing");
  expect_error(kubeconfig(good_server, "client-key-data: Q0VSVA=="),
               "users[u].client-certificate: is missing");
  expect_error(kubeconfig(good_server, "exec: {command: aws}"), "users[u].exec: credential plugins");
  expect_error(kubeconfig(good_server, "auth-provider: {name: gcp}"), "users[u].auth-provider");
  expect_error(kubeconfig(good_server, "username: a, password: b"), "users[u].username");
}

TEST_F(ConfigTest, ErrorsDoNotRepeatSecrets) {
  const auto config = parsed(kubeconfig("server: \"https://h\"", "token: [sesame]"));
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("users[u].token"));
  EXPECT_THAT(config.error().message, ::testing::Not(HasSubstr("sesame")));
}

TEST_F(ConfigTest, OrderOfPlaces) {
  const std::string flag = write("flag", kubeconfig("server: \"https://flag\"", ""));
  const std::string variable = write("variable", kubeconfig("server: \"https://variable\"", ""));
  std::filesystem::create_directories(directory / ".kube");
  write(".kube/config", kubeconfig("server: \"https://home\"", ""));
  write("token", "T");
  write("ca.crt", "CA");
  write("namespace", "pods-own");
  Environment environment;
  environment.kubeconfig = variable;
  environment.home = directory.string();
  environment.service_host = "fd00::1";
  environment.service_port = "443";
  environment.service_account_directory = directory.string();
  EXPECT_EQ(load_config(flag, environment)->server, "https://flag");
  EXPECT_EQ(load_config("", environment)->server, "https://variable");
  environment.kubeconfig.clear();
  const auto in_cluster = load_config("", environment);
  ASSERT_TRUE(in_cluster);
  EXPECT_EQ(in_cluster->server, "https://[fd00::1]:443");
  EXPECT_EQ(in_cluster->default_namespace, "pods-own");
  EXPECT_EQ(in_cluster->token_file, (directory / "token").string());
  environment.service_host.clear();
  EXPECT_EQ(load_config("", environment)->server, "https://home");
  environment.home.clear();
  EXPECT_THAT(load_config("", environment).error().message, HasSubstr("--kubeconfig"));
  EXPECT_EQ(load_config("/nowhere/kc", environment).error().code, Code::kNotFound);
}

TEST_F(ConfigTest, ListOfFilesIsMergedAndTheFirstWins) {
  const std::string first =
      write("first", "current-context: c\nclusters: [{name: k, cluster: {server: \"https://1\"}}]");
  const std::string second = write("second", kubeconfig("server: \"https://2\"", "token: t"));
  Environment environment;
  environment.kubeconfig = first + ":/nowhere:" + second;
  const auto config = load_config("", environment);
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->server, "https://1");
  EXPECT_EQ(config->token, "t");
}

TEST_F(ConfigTest, InClusterWithoutATokenSaysWhy) {
  Environment environment;
  environment.service_host = "10.0.0.1";
  environment.service_port = "443";
  environment.service_account_directory = directory.string();
  EXPECT_THAT(load_config("", environment).error().message, HasSubstr("automountServiceAccountToken"));
}

TEST_F(ConfigTest, TokenFileIsReadAgainAfterAMinute) {
  testing::FakeClock clock;
  Config config;
  config.token_file = write("token", "one\n");
  TokenSource tokens(config, std::chrono::seconds(60), clock);
  EXPECT_EQ(tokens.token(), "one");
  write("token", "two");
  clock.advance(std::chrono::seconds(59));
  EXPECT_EQ(tokens.token(), "one");
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(tokens.token(), "two");
  write("token", "three");
  tokens.distrust();
  EXPECT_EQ(tokens.token(), "three") << "a 401 makes it look at once";
  std::filesystem::remove(directory / "token");
  clock.advance(std::chrono::seconds(61));
  EXPECT_EQ(tokens.token(), "three") << "better an old token than none";
}

TEST_F(ConfigTest, TokenFileThatHoldsNoTokenIsRefused) {
  testing::FakeClock clock;
  for (const char* text : {"", "  \n", "a b", "a\r\nX-Evil: 1"}) {
    Config config;
    config.token_file = write("token", text);
    TokenSource tokens(config, std::chrono::seconds(60), clock);
    EXPECT_FALSE(tokens.token()) << text;
  }
  Config config;
  config.token_file = (directory / "absent").string();
  TokenSource tokens(config, std::chrono::seconds(60), clock);
  EXPECT_THAT(tokens.token().error().message, HasSubstr("absent"));
}

}  // namespace
}  // namespace eldr::kube
