// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/store.h"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

bool same_version(const Json& a, const Json& b) {
  return uid_of(a) == uid_of(b) && resource_version_of(a) == resource_version_of(b);
}

}  // namespace

struct Store::Private {
  mutable std::shared_mutex mutex;
  std::map<ObjectKey, ObjectPtr> objects;
};

Store::Store() : private_(std::make_unique<Private>()) {}
Store::~Store() = default;

ObjectPtr Store::get(const ObjectKey& key) const {
  const std::shared_lock lock(private_->mutex);
  const auto found = private_->objects.find(key);
  return found == private_->objects.end() ? nullptr : found->second;
}

std::vector<ObjectPtr> Store::list() const {
  const std::shared_lock lock(private_->mutex);
  std::vector<ObjectPtr> all;
  all.reserve(private_->objects.size());
  for (const auto& [key, object] : private_->objects) {
    all.push_back(object);
  }
  return all;
}

std::vector<ObjectPtr> Store::list(const std::string& ns) const {
  const std::shared_lock lock(private_->mutex);
  std::vector<ObjectPtr> some;
  for (auto at = private_->objects.lower_bound({ns, ""}); at != private_->objects.end() && at->first.ns == ns;
       ++at) {
    some.push_back(at->second);
  }
  return some;
}

std::size_t Store::size() const {
  const std::shared_lock lock(private_->mutex);
  return private_->objects.size();
}

std::vector<Store::Change> Store::replace(std::vector<Json> objects) {
  std::map<ObjectKey, ObjectPtr> fresh;
  for (Json& object : objects) {
    ObjectKey key = key_of(object);
    fresh.insert_or_assign(std::move(key), std::make_shared<const Json>(std::move(object)));
  }
  {
    const std::unique_lock lock(private_->mutex);
    private_->objects.swap(fresh);
  }
  // `fresh` is now the old content. Only this thread writes, so the new one can be read without the lock.
  std::vector<Change> changes;
  for (const auto& [key, after] : private_->objects) {
    const auto old = fresh.find(key);
    if (old == fresh.end()) {
      changes.push_back({key, nullptr, after});
    } else if (!same_version(*old->second, *after)) {
      changes.push_back({key, old->second, after});
    }
  }
  for (const auto& [key, before] : fresh) {
    if (!private_->objects.contains(key)) {
      changes.push_back({key, before, nullptr});
    }
  }
  return changes;
}

Store::Change Store::put(Json object) {
  Change change{key_of(object), nullptr, std::make_shared<const Json>(std::move(object))};
  const std::unique_lock lock(private_->mutex);
  change.before = std::exchange(private_->objects[change.key], change.after);
  return change;
}

Store::Change Store::erase(const ObjectKey& key) {
  Change change{key, nullptr, nullptr};
  const std::unique_lock lock(private_->mutex);
  if (const auto found = private_->objects.find(key); found != private_->objects.end()) {
    change.before = std::move(found->second);
    private_->objects.erase(found);
  }
  return change;
}

}  // namespace eldr::kube
