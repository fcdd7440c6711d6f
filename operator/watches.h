// SPDX-License-Identifier: Apache-2.0
// Watches of what policies name but do not own: the data set's ConfigMap or claim, the scale target, the pods
// of both pools. Each is one narrow watch (by name or by selector), shared by the policies that want it, so
// that the operator never holds all ConfigMaps or pods of a cluster in memory.
//
// Thread-safe. The client, the clock and the randomness must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/kube/informer.h"
#include "operator/reconciler.h"

namespace eldr::op {

/// What to watch. Ordered, so that equal ones are watched once.
struct WatchTarget {
  std::string path;  ///< the resource's collection path
  std::string label_selector, field_selector;
  kube::Resource resource;
  std::string ns;
  bool operator<(const WatchTarget& other) const {
    return std::tie(path, label_selector, field_selector) <
           std::tie(other.path, other.label_selector, other.field_selector);
  }
};

/// What a reconcile's scope depends on. Pure.
std::set<WatchTarget> targets_of(const Scope& scope);

class Watches final : public Interest {
 public:
  /// `enqueue` is called with a policy's key whenever something that it wants has changed.
  Watches(const kube::Client& client, std::function<void(const ObjectKey&)> enqueue, const Clock& clock,
          kube::Random& random);
  ~Watches() override;  ///< stops all

  void wants(const Scope& scope) override;
  void forget(const ObjectKey& policy) override;
  std::size_t size() const;

 private:
  struct Watch {
    std::set<ObjectKey> policies;
    std::unique_ptr<kube::Informer> informer;
  };
  void replace(const ObjectKey& policy, const std::set<WatchTarget>& targets);
  void changed(const WatchTarget& target);

  const kube::Client& client_;
  std::function<void(const ObjectKey&)> enqueue_;
  const Clock& clock_;
  kube::Random& random_;
  mutable std::mutex mutex_;
  std::map<WatchTarget, Watch> watches_;
};

}  // namespace eldr::op
