// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "lib/base/digest.h"

namespace eldr::kube {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return failure(Code::kNotFound, "file " + path + " does not exist");
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  if (!in || std::filesystem::is_directory(path, error)) {
    return failure(Code::kInvalid, "file " + path + " cannot be read");
  }
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) {
    return failure(Code::kInvalid, "file " + path + " cannot be read");
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLargestFile) {
    return failure(Code::kInvalid, "file " + path + " is larger than 1 MiB");
  }
  return text;
}

/// A parsed kubeconfig, or one file of several.
struct Source {
  YAML::Node root;
  std::string directory;  ///< against which relative file names are resolved
  std::string origin;
};

/// A named entry with where it came from.
struct Entry {
  YAML::Node node;
  const Source* source = nullptr;
};

tl::unexpected<Error> wrong(const std::string& origin, const std::string& field, const std::string& problem) {
  return failure(Code::kInvalid, origin + ": " + field + ": " + problem);
}

/// The scalar under a name; "" when absent or null.
Result<std::string> text_field(const Entry& entry, const std::string& where, const char* name) {
  const YAML::Node node = entry.node[name];
  if (!node || node.IsNull()) {
    return std::string();
  }
  if (!node.IsScalar()) {
    return wrong(entry.source->origin, where + "." + name, "must be a string");
  }
  return node.Scalar();
}

Result<bool> bool_field(const Entry& entry, const std::string& where, const char* name) {
  auto text = text_field(entry, where, name);
  if (!text) {
    return failure(text.error());
  }
  if (text->empty() || *text == "false") {
    return false;
  }
  if (*text == "true") {
    return true;
  }
  return wrong(entry.source->origin, where + "." + name, "\"" + *text + "\" must be true or false");
}

std::string resolved(const Entry& entry, const std::string& file) {
  const std::filesystem::path path(file);
  return path.is_absolute() || file.empty()
             ? file
             : (std::filesystem::path(entry.source->directory) / path).string();
}

/// The pair X (a file) and X-data (base64): the data win, as in client-go.
Result<PemSource> pem_field(const Entry& entry, const std::string& where, const std::string& name) {
  PemSource pem;
  auto data = text_field(entry, where, (name + "-data").c_str());
  if (!data) {
    return failure(data.error());
  }
  if (!data->empty()) {
    const auto bytes = base64_decode(*data, kLargestFile);
    if (!bytes) {
      return wrong(entry.source->origin, where + "." + name + "-data", "is not base64 of at most 1 MiB");
    }
    pem.text = std::string(as_text(*bytes));
    return pem;
  }
  auto file = text_field(entry, where, name.c_str());
  if (!file) {
    return failure(file.error());
  }
  pem.file = resolved(entry, *file);
  if (!pem.file.empty()) {
    if (auto content = pem.read(); !content) {
      return wrong(entry.source->origin, where + "." + name, content.error().message);
    }
  }
  return pem;
}

/// The entry named `name` of a list like clusters: [{name: …, cluster: {…}}]; the first file that has it
/// wins.
Result<Entry> named_entry(const std::vector<Source>& sources, const std::string& list,
                          const std::string& inner, const std::string& name, const std::string& asked_by) {
  std::string known;
  for (const Source& source : sources) {
    const YAML::Node entries = source.root[list];
    if (!entries || entries.IsNull()) {
      continue;
    }
    if (!entries.IsSequence()) {
      return wrong(source.origin, list, "must be a list");
    }
    for (const auto& entry : entries) {
      const YAML::Node entry_name = entry.IsMap() ? entry["name"] : YAML::Node();
      if (!entry_name || !entry_name.IsScalar()) {
        return wrong(source.origin, list, "each entry must be a mapping with a name");
      }
      if (entry_name.Scalar() != name) {
        known += (known.empty() ? "" : ", ") + entry_name.Scalar();
        continue;
      }
      const YAML::Node found = entry[inner];
      if (!found || !found.IsMap()) {
        return wrong(source.origin, list + "[" + name + "]." + inner, "must be a mapping");
      }
      return Entry{found, &source};
    }
  }
  return wrong(
      sources.front().origin, asked_by,
      "\"" + name + "\" is not among " + list + (known.empty() ? " (there are none)" : ": " + known));
}

Result<std::string> current_context(const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    const YAML::Node node = source.root["current-context"];
    if (node && node.IsScalar() && !node.Scalar().empty()) {
      return node.Scalar();
    }
  }
  return wrong(sources.front().origin, "current-context", "is not set; name one of the contexts");
}

Status read_cluster(const Entry& cluster, const std::string& where, Config& config) {
  auto server = text_field(cluster, where, "server");
  auto name = text_field(cluster, where, "tls-server-name");
  auto insecure = bool_field(cluster, where, "insecure-skip-tls-verify");
  auto authority = pem_field(cluster, where, "certificate-authority");
  auto proxy = text_field(cluster, where, "proxy-url");
  for (const Error* error : {server ? nullptr : &server.error(), name ? nullptr : &name.error(),
                             insecure ? nullptr : &insecure.error(), authority ? nullptr : &authority.error(),
                             proxy ? nullptr : &proxy.error()}) {
    if (error != nullptr) {
      return failure(*error);
    }
  }
  if (!proxy->empty()) {
    return wrong(cluster.source->origin, where + ".proxy-url", "proxies are not supported; remove the field");
  }
  if (server->rfind("https://", 0) != 0 && server->rfind("http://", 0) != 0) {
    return wrong(cluster.source->origin, where + ".server",
                 "\"" + *server + "\" must begin with https:// or http://");
  }
  config.server = *server;
  while (config.server.back() == '/') {
    config.server.pop_back();
  }
  config.tls_server_name = *name;
  config.insecure_skip_tls_verify = *insecure;
  config.certificate_authority = *authority;
  return {};
}

Status read_user(const Entry& user, const std::string& where, Config& config) {
  for (const char* plugin : {"exec", "auth-provider"}) {
    if (user.node[plugin] && !user.node[plugin].IsNull()) {
      return wrong(
          user.source->origin, where + "." + plugin,
          "credential plugins are not supported; use client-certificate, token or tokenFile (for example "
          "from `kubectl create token`)");
    }
  }
  if (user.node["username"] && !user.node["username"].IsNull()) {
    return wrong(
        user.source->origin, where + ".username",
        "basic authentication is not served by Kubernetes; use client-certificate, token or tokenFile");
  }
  auto certificate = pem_field(user, where, "client-certificate");
  auto key = pem_field(user, where, "client-key");
  auto token = text_field(user, where, "token");
  auto token_file = text_field(user, where, "tokenFile");
  for (const Error* error : {certificate ? nullptr : &certificate.error(), key ? nullptr : &key.error(),
                             token ? nullptr : &token.error(), token_file ? nullptr : &token_file.error()}) {
    if (error != nullptr) {
      return failure(*error);
    }
  }
  if (certificate->empty() != key->empty()) {
    const char* missing = key->empty() ? ".client-key" : ".client-certificate";
    return wrong(user.source->origin, where + missing,
                 "is missing: client-certificate and client-key (or their -data forms) go together");
  }
  config.client_certificate = *certificate;
  config.client_key = *key;
  config.token = *token;
  config.token_file = resolved(user, *token_file);
  return {};
}

Result<Config> config_of(const std::vector<Source>& sources) {
  auto context_name = current_context(sources);
  if (!context_name) {
    return failure(context_name.error());
  }
  auto context = named_entry(sources, "contexts", "context", *context_name, "current-context");
  if (!context) {
    return failure(context.error());
  }
  const std::string where = "contexts[" + *context_name + "]";
  auto cluster_name = text_field(*context, where, "cluster");
  auto user_name = text_field(*context, where, "user");
  auto ns = text_field(*context, where, "namespace");
  if (!cluster_name || !user_name || !ns) {
    return failure(!cluster_name ? cluster_name.error() : !user_name ? user_name.error() : ns.error());
  }
  auto cluster = named_entry(sources, "clusters", "cluster", *cluster_name, where + ".cluster");
  if (!cluster) {
    return failure(cluster.error());
  }
  Config config;
  config.origin = context->source->origin + ", context " + *context_name;
  config.default_namespace = ns->empty() ? "default" : *ns;
  if (auto read = read_cluster(*cluster, "clusters[" + *cluster_name + "]", config); !read) {
    return failure(read.error());
  }
  if (!user_name->empty()) {
    auto user = named_entry(sources, "users", "user", *user_name, where + ".user");
    if (!user) {
      return failure(user.error());
    }
    if (auto read = read_user(*user, "users[" + *user_name + "]", config); !read) {
      return failure(read.error());
    }
  }
  return config;
}

Result<Source> parsed(std::string_view text, const std::string& directory, const std::string& origin) {
  try {
    YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) {
      return failure(Code::kInvalid, origin + ": is not a kubeconfig: expected a mapping");
    }
    return Source{root, directory, origin};
  } catch (const YAML::Exception& exception) {
    return failure(Code::kInvalid, origin + ": is not YAML: " + exception.what());
  }
}

/// yaml-cpp throws on what we did not think of: that stops here.
Result<Config> config_of_guarded(const std::vector<Source>& sources) {
  try {
    return config_of(sources);
  } catch (const YAML::Exception& exception) {
    return failure(Code::kInvalid, sources.front().origin + ": " + exception.what());
  }
}

Result<Config> load_kubeconfigs(const std::vector<std::string>& paths, bool all_required) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    auto text = read_file(path);
    if (!text && text.error().code == Code::kNotFound && !all_required) {
      continue;  // as kubectl does with a list
    }
    if (!text) {
      return failure(text.error().with_context("kubeconfig"));
    }
    auto source = parsed(*text, std::filesystem::absolute(path).parent_path().string(), path);
    if (!source) {
      return failure(source.error());
    }
    sources.push_back(*source);
  }
  if (sources.empty()) {
    return failure(Code::kNotFound, "kubeconfig: none of the files of $KUBECONFIG exists");
  }
  return config_of_guarded(sources);
}

std::vector<std::string> split_paths(const std::string& text) {
  std::vector<std::string> paths;
  std::istringstream in(text);
  for (std::string path; std::getline(in, path, ':');) {
    if (!path.empty()) {
      paths.push_back(path);
    }
  }
  return paths;
}

Result<Config> in_cluster_config(const Environment& environment) {
  const std::string directory = environment.service_account_directory + "/";
  Config config;
  const bool is_v6 = environment.service_host.find(':') != std::string::npos;
  const std::string host = is_v6 ? "[" + environment.service_host + "]" : environment.service_host;
  config.server = "https://" + host + ":" + environment.service_port;
  config.origin = "service account in " + environment.service_account_directory;
  config.certificate_authority.file = directory + "ca.crt";
  config.token_file = directory + "token";
  for (const std::string& file : {config.certificate_authority.file, config.token_file}) {
    if (auto text = read_file(file); !text) {
      return failure(
          text.error().with_context("in-cluster credentials (is automountServiceAccountToken off?)"));
    }
  }
  if (auto ns = read_file(directory + "namespace"); ns && !ns->empty()) {
    config.default_namespace = *ns;
  }
  return config;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Environment environment_of_process() {
  Environment environment;
  environment.kubeconfig = variable("KUBECONFIG");
  environment.home = variable("HOME");
  environment.service_host = variable("KUBERNETES_SERVICE_HOST");
  environment.service_port = variable("KUBERNETES_SERVICE_PORT");
  return environment;
}

Result<std::string> PemSource::read() const {
  if (file.empty()) {
    return text;
  }
  auto content = read_file(file);
  if (!content) {
    return failure(Code::kInvalid, content.error().message);
  }
  return content;
}

Result<Config> parse_kubeconfig(std::string_view text, const std::string& directory,
                                const std::string& origin) {
  auto source = parsed(text, directory, origin);
  if (!source) {
    return failure(source.error());
  }
  return config_of_guarded({*source});
}

Result<Config> load_config(const std::string& explicit_path, const Environment& environment) {
  if (!explicit_path.empty()) {
    return load_kubeconfigs({explicit_path}, true);
  }
  if (const auto paths = split_paths(environment.kubeconfig); !paths.empty()) {
    return load_kubeconfigs(paths, paths.size() == 1);
  }
  if (!environment.service_host.empty() && !environment.service_port.empty()) {
    return in_cluster_config(environment);
  }
  const std::string usual = environment.home + "/.kube/config";
  std::error_code error;
  if (!environment.home.empty() && std::filesystem::exists(usual, error)) {
    return load_kubeconfigs({usual}, true);
  }
  return failure(
      Code::kInvalid,
      "no way to the Kubernetes API: give --kubeconfig, set KUBECONFIG, or run in a pod with a service "
      "account");
}

}  // namespace eldr::kube
