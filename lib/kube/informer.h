// SPDX-License-Identifier: Apache-2.0
// Keeps a Store equal to what the API server has, on a thread of its own, and tells a handler which keys to
// look at. Level-driven: the handler gets keys only, never the event, so a missed or merged event loses
// nothing.
//
// Thread-safety: all methods may be called from any thread. The client, the clock and the randomness must
// outlive it. The handler and the mapper are called on the informer's thread, never at once, and must return
// quickly: put the key into a queue.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/kube/client.h"
#include "lib/kube/random.h"
#include "lib/kube/store.h"
#include "lib/kube/watcher_config.h"

namespace eldr::kube {

/// From an object to the keys that its change concerns. Asked for the old and the new object.
using KeyMapper = std::function<std::vector<ObjectKey>(const Json&)>;
/// The object's own key.
KeyMapper own_key();
/// The key of the controlling owner, when it is of that kind: for children.
KeyMapper controller_key(std::string owner_kind);
/// namespace/<value of the label>: for objects that a label ties to a policy.
KeyMapper label_key(std::string label);

struct InformerOptions {
  Resource resource{};
  std::string ns{};  ///< empty: all namespaces
  std::string label_selector{};
  std::string field_selector{};
  KeyMapper mapper{};  ///< none: own_key()
  WatcherConfig watcher{};
};

class Informer {
 public:
  using Handler = std::function<void(const ObjectKey&)>;
  Informer(const Client& client, InformerOptions options, Handler handler, const Clock& clock,
           Random& random);
  ~Informer();  ///< stops
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void start();
  /// Returns when the thread has ended: a list or watch in progress is cut off.
  void stop();

  /// The first list is in the store, and the handler has been told of all of it.
  bool has_synced() const;
  /// Waits for that; false when `longest` passed or the informer stopped.
  bool wait_for_sync(std::chrono::milliseconds longest) const;
  /// What went wrong last, for readiness messages; success while the watch is well.
  Status health() const;
  const Store& store() const;

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

}  // namespace eldr::kube
