// SPDX-License-Identifier: Apache-2.0
// router.yaml and the centroid file it names, read together and watched for change.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/status.h"
#include "router/config/config.h"

namespace eldr::router {

inline constexpr std::size_t kMaxConfigFile = 4U << 20U;

struct LoadedConfig {
  Config config;
  std::string text;  ///< of router.yaml, for its revision
  std::optional<std::vector<std::byte>> centroids;
};

/// kNotFound, kInvalid with the field.
Result<LoadedConfig> load_config_files(const std::string& path);

/// Notices that router.yaml or its centroid file is another file than before (inode, size or time of change;
/// also through the links of a mounted ConfigMap). Not thread-safe.
class ConfigFiles {
 public:
  explicit ConfigFiles(std::string path) : path_(std::move(path)) {}
  /// Loads and remembers what the files looked like.
  Result<LoadedConfig> load();
  /// Whether they look different from the last load().
  bool changed() const;

 private:
  std::string looks() const;
  std::string path_;
  std::string centroids_;
  std::string seen_;
};

}  // namespace eldr::router
