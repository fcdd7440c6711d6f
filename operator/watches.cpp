// SPDX-License-Identifier: Apache-2.0
#include "operator/watches.h"

#include <utility>

#include "operator/phases/decode_pool.h"

namespace eldr::op {
namespace {

WatchTarget target(const kube::Resource& resource, const std::string& ns, std::string labels,
                   std::string fields) {
  return {resource.collection_path(ns), std::move(labels), std::move(fields), resource, ns};
}
std::string by_name(const std::string& name) { return "metadata.name=" + name; }

}  // namespace

std::set<WatchTarget> targets_of(const Scope& scope) {
  const std::string& ns = scope.policy.key.ns;
  const Spec& spec = scope.policy.spec;
  std::set<WatchTarget> targets;
  if (spec.dataset.config_map)
    targets.insert(target(kube::kConfigMaps, ns, "", by_name(spec.dataset.config_map->name)));
  for (const auto* volume : {&spec.dataset.persistent_volume_claim, &spec.dataset.trace})
    if (*volume)
      targets.insert(target(kube::kPersistentVolumeClaims, ns, "", by_name((*volume)->claim_name)));
  targets.insert(target(kube::kPods, ns, selector_text(spec.prefill.selector), ""));
  if (scope.pool) {
    targets.insert(target(kube::kPods, ns, scope.pool->selector, ""));
    if (is_watched_target(scope.pool->resource))
      targets.insert(target(scope.pool->resource, ns, "", by_name(spec.decode.scale_target_ref.name)));
  }
  return targets;
}

Watches::Watches(const kube::Client& client, std::function<void(const ObjectKey&)> enqueue,
                 const Clock& clock, kube::Random& random)
    : client_(client), enqueue_(std::move(enqueue)), clock_(clock), random_(random) {}

Watches::~Watches() {
  std::map<WatchTarget, Watch> ending;
  {
    const std::scoped_lock lock(mutex_);
    ending.swap(watches_);
  }
}

void Watches::wants(const Scope& scope) { replace(scope.policy.key, targets_of(scope)); }
void Watches::forget(const ObjectKey& policy) { replace(policy, {}); }

void Watches::replace(const ObjectKey& policy, const std::set<WatchTarget>& targets) {
  std::vector<std::unique_ptr<kube::Informer>>
      ending;  // stopped after the lock is gone: their handlers take it
  const std::scoped_lock lock(mutex_);
  for (const WatchTarget& wanted : targets) {
    Watch& watch = watches_[wanted];
    watch.policies.insert(policy);
    if (watch.informer) continue;
    watch.informer = std::make_unique<kube::Informer>(
        client_,
        kube::InformerOptions{.resource = wanted.resource,
                              .ns = wanted.ns,
                              .label_selector = wanted.label_selector,
                              .field_selector = wanted.field_selector,
                              .mapper = {},
                              .watcher = {}},
        [this, wanted](const ObjectKey&) { changed(wanted); }, clock_, random_);
    watch.informer->start();
  }
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    Watch& watch = entry->second;
    if (targets.count(entry->first) == 0) watch.policies.erase(policy);
    if (watch.policies.empty()) {
      ending.push_back(std::move(watch.informer));
      entry = watches_.erase(entry);
    } else {
      ++entry;
    }
  }
}

void Watches::changed(const WatchTarget& target) {
  std::set<ObjectKey> policies;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = watches_.find(target);
    if (found != watches_.end()) policies = found->second.policies;
  }
  for (const ObjectKey& policy : policies) enqueue_(policy);
}

std::size_t Watches::size() const {
  const std::scoped_lock lock(mutex_);
  return watches_.size();
}

}  // namespace eldr::op
