// SPDX-License-Identifier: Apache-2.0
#include "operator/controller.h"

#include <utility>

#include "lib/base/log.h"
#include "operator/api/labels.h"

namespace eldr::op {
namespace {

constexpr std::chrono::milliseconds kSyncCheck{500};

std::vector<kube::InformerOptions> what_to_watch(const std::string& ns) {
  std::vector<kube::InformerOptions> list;
  list.push_back({.resource = kube::kEldrPolicies,
                  .ns = ns,
                  .label_selector = {},
                  .field_selector = {},
                  .mapper = kube::own_key(),
                  .watcher = {}});
  // Children and pods carry the policy's name in a label; a change of one concerns that policy.
  for (const kube::Resource& resource : {kube::kConfigMaps, kube::kJobs, kube::kDeployments, kube::kPods})
    list.push_back({.resource = resource,
                    .ns = ns,
                    .label_selector = kPolicyLabel,
                    .field_selector = {},
                    .mapper = kube::label_key(kPolicyLabel),
                    .watcher = {}});
  return list;
}

}  // namespace

Controller::Controller(ControllerOptions options, kube::Random& random)
    : options_(std::move(options)),
      queue_(*options_.environment.clock, {.backoff_longest = std::chrono::minutes(5)},
             options_.queue_metrics),
      watches_(
          *options_.environment.client, [this](const ObjectKey& key) { queue_.add(key); },
          *options_.environment.clock, random),
      reconciler_(options_.environment, &watches_) {
  std::vector<std::string> namespaces = options_.namespaces;
  if (namespaces.empty()) namespaces.emplace_back();
  for (const std::string& ns : namespaces)
    for (kube::InformerOptions& watched : what_to_watch(ns)) {
      informer_names_.push_back(watched.resource.plural + (ns.empty() ? "" : " in " + ns));
      informers_.push_back(std::make_unique<kube::Informer>(
          *options_.environment.client, std::move(watched), [this](const ObjectKey& key) { queue_.add(key); },
          *options_.environment.clock, random));
    }
}

Controller::~Controller() { stop(); }

void Controller::start_watching() {
  for (const auto& informer : informers_) informer->start();
}

void Controller::start_working() {
  for (int i = 0; i < options_.workers; ++i)
    workers_.emplace_back([this](std::stop_token stop) { work(std::move(stop)); });
}

void Controller::stop() {
  for (std::jthread& worker : workers_) worker.request_stop();
  queue_.shut_down();
  workers_.clear();
  for (const auto& informer : informers_) informer->stop();
}

Status Controller::ready() const {
  for (std::size_t i = 0; i < informers_.size(); ++i) {
    if (informers_[i]->has_synced()) continue;
    const Status health = informers_[i]->health();
    return failure(Code::kUnavailable, "the cache of " + informer_names_[i] + " is not filled yet" +
                                           (health ? "" : ": " + health.error().to_string()));
  }
  return {};
}

void Controller::work(std::stop_token stop) {
  for (const auto& informer : informers_)
    while (!stop.stop_requested() && !informer->wait_for_sync(kSyncCheck)) {
    }
  while (!stop.stop_requested()) {
    const auto key = queue_.get();
    if (!key) return;
    reconcile(*key);
    queue_.done(*key);
  }
}

void Controller::reconcile(const ObjectKey& key) {
  const std::uint64_t id = ++reconciles_;
  const Clock& clock = *options_.environment.clock;
  if (options_.reconcile_metrics) options_.reconcile_metrics->started();
  const auto began = clock.steady();
  const auto result = reconciler_.reconcile(key);
  const double seconds = std::chrono::duration<double>(clock.steady() - began).count();

  auto outcome = kube::ReconcileResult::kSuccess;
  if (!result) {
    outcome = kube::ReconcileResult::kError;
    queue_.add_rate_limited(key, std::chrono::seconds(result.error().retry_after_seconds));
    spdlog::warn("reconcile={} policy={} failed after {:.3f} s: {}", id, key.to_string(), seconds,
                 result.error().to_string());
  } else {
    queue_.forget(key);
    if (result->requeue_after) {
      outcome = kube::ReconcileResult::kRequeueAfter;
      queue_.add_after(key, *result->requeue_after);
    }
    spdlog::debug("reconcile={} policy={} took {:.3f} s", id, key.to_string(), seconds);
  }
  if (options_.reconcile_metrics) options_.reconcile_metrics->finished(outcome, seconds);
}

}  // namespace eldr::op
