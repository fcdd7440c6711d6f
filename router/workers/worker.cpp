// SPDX-License-Identifier: Apache-2.0
#include "router/workers/worker.h"

#include <xxhash.h>

namespace eldr::router {

std::string_view name_of(Role role) { return role == Role::kPrefill ? "prefill" : "decode"; }

Worker::Worker(Role worker_role, const WorkerSpec& spec, HealthConfig config)
    : role(worker_role),
      id(spec.id),
      host(spec.host),
      port(spec.port),
      authority((spec.host.find(':') == std::string::npos ? spec.host : "[" + spec.host + "]") + ":" +
                std::to_string(spec.port)),
      id_hash(XXH3_64bits(spec.id.data(), spec.id.size())),
      health(config),
      cluster_(spec.cluster ? *spec.cluster : -1) {}

std::optional<std::int32_t> Worker::cluster() const {
  const auto value = cluster_.load(std::memory_order_relaxed);
  if (value < 0) return std::nullopt;
  return static_cast<std::int32_t>(value);
}

void Worker::set_cluster(std::optional<std::int32_t> cluster) {
  cluster_.store(cluster ? *cluster : -1, std::memory_order_relaxed);
}

WorkerLease::WorkerLease(WorkerPtr worker, Clock::Steady now) : worker_(std::move(worker)) {
  worker_->load.began();
  worker_->requests.fetch_add(1, std::memory_order_relaxed);
  probe_ = worker_->health.claim_probe(now);
}

WorkerLease& WorkerLease::operator=(WorkerLease&& other) noexcept {
  if (this != &other) {
    release();
    worker_ = std::move(other.worker_);
    probe_ = std::exchange(other.probe_, false);
  }
  return *this;
}

void WorkerLease::succeeded() {
  probe_ = false;
  worker_->health.succeeded();
}

bool WorkerLease::failed(Clock::Steady now) {
  probe_ = false;
  worker_->failures.fetch_add(1, std::memory_order_relaxed);
  return worker_->health.failed(now);
}

void WorkerLease::release() {
  if (!worker_) return;
  if (probe_) worker_->health.abandon_probe();
  worker_->load.ended();
  worker_.reset();
  probe_ = false;
}

}  // namespace eldr::router
