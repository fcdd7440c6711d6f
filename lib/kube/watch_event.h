// SPDX-License-Identifier: Apache-2.0
// One line of a watch. Pure; thread-safe.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "lib/base/status.h"
#include "lib/kube/json.h"

namespace eldr::kube {

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type = WatchEventType::kError;
  Json object;
};

/// kInternal for what is not {"type": …, "object": {…}} with a known type and, but for ERROR, an object that
/// has a resource version and (but for BOOKMARK) a name.
Result<WatchEvent> parse_watch_line(std::string_view line);

}  // namespace eldr::kube
