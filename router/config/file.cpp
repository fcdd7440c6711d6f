// SPDX-License-Identifier: Apache-2.0
#include "router/config/file.h"

#include <sys/stat.h>

#include "lib/base/digest.h"
#include "lib/signature/centroids.h"
#include "lib/signature/safetensors.h"

namespace eldr::router {
namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string look_at(const std::string& path) {
  struct stat file {};
  if (path.empty() || ::stat(path.c_str(), &file) != 0) return "none;";
  return std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino) + ":" +
         std::to_string(file.st_size) + ":" + std::to_string(file.st_mtim.tv_sec) + "." +
         std::to_string(file.st_mtim.tv_nsec) + ";";
}

}  // namespace

Result<LoadedConfig> load_config_files(const std::string& path) {
  auto bytes = signature::read_file(path, kMaxConfigFile);
  if (!bytes) return failure(bytes.error());
  LoadedConfig loaded;
  loaded.text = std::string(as_text(*bytes));
  auto config = parse_config(loaded.text, folder_of(path));
  if (!config) return failure(config.error().with_context(path));
  loaded.config = std::move(*config);
  if (!loaded.config.centroids.empty()) {
    auto centroids = signature::read_file(loaded.config.centroids, signature::kMaxCentroidFile);
    if (!centroids) return failure(centroids.error().with_context("centroids"));
    loaded.centroids = std::move(*centroids);
  }
  return loaded;
}

std::string ConfigFiles::looks() const { return look_at(path_) + look_at(centroids_); }

Result<LoadedConfig> ConfigFiles::load() {
  // Looked at before reading: a change in between is noticed the next time.
  seen_ = looks();
  auto loaded = load_config_files(path_);
  if (loaded && loaded->config.centroids != centroids_) {
    centroids_ = loaded->config.centroids;
    seen_ = looks();
  }
  return loaded;
}

bool ConfigFiles::changed() const { return looks() != seen_; }

}  // namespace eldr::router
