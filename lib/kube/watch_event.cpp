// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/watch_event.h"

#include <optional>
#include <string>
#include <utility>

#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

std::optional<WatchEventType> type_of(const std::string& text) {
  if (text == "ADDED") {
    return WatchEventType::kAdded;
  }
  if (text == "MODIFIED") {
    return WatchEventType::kModified;
  }
  if (text == "DELETED") {
    return WatchEventType::kDeleted;
  }
  if (text == "BOOKMARK") {
    return WatchEventType::kBookmark;
  }
  if (text == "ERROR") {
    return WatchEventType::kError;
  }
  return std::nullopt;
}

}  // namespace

Result<WatchEvent> parse_watch_line(std::string_view line) {
  Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) {
    return failure(Code::kInternal, "a line of the watch is not a JSON object");
  }
  const auto type = type_of(string_at(event, {"type"}));
  if (!type) {
    return failure(Code::kInternal, "a line of the watch has an unknown type");
  }
  const auto object = event.find("object");
  if (object == event.end() || !object->is_object()) {
    return failure(Code::kInternal, "a line of the watch has no object");
  }
  if (*type != WatchEventType::kError && resource_version_of(*object).empty()) {
    return failure(Code::kInternal, "an object of the watch has no metadata.resourceVersion");
  }
  if (*type != WatchEventType::kError && *type != WatchEventType::kBookmark && object_name(*object).empty()) {
    return failure(Code::kInternal, "an object of the watch has no metadata.name");
  }
  return WatchEvent{*type, std::move(*object)};
}

}  // namespace eldr::kube
