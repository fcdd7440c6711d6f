// SPDX-License-Identifier: Apache-2.0
// The cache of one resource's objects, by key. Thread-safe: one writer (the informer), any number of readers.
// Readers get shared, immutable objects, so that nothing changes under their hands.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lib/kube/json.h"
#include "lib/kube/resource.h"

namespace eldr::kube {

using ObjectPtr = std::shared_ptr<const Json>;

class Store {
 public:
  Store();
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// nullptr when it is not there.
  ObjectPtr get(const ObjectKey& key) const;
  /// Ordered by key; a consistent snapshot.
  std::vector<ObjectPtr> list() const;
  std::vector<ObjectPtr> list(const std::string& ns) const;
  std::size_t size() const;

  struct Change {
    ObjectKey key;
    ObjectPtr before;  ///< nullptr: it is new
    ObjectPtr after;   ///< nullptr: it is gone
  };
  /// Swaps the whole content at once. Returns what differs (by uid and resource version).
  std::vector<Change> replace(std::vector<Json> objects);
  Change put(Json object);
  /// No change (both nullptr) when it was not there.
  Change erase(const ObjectKey& key);

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

}  // namespace eldr::kube
