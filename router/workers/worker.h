// SPDX-License-Identifier: Apache-2.0
// One prefill or decode worker, and the account of requests given to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/clock.h"
#include "router/workers/health.h"
#include "router/workers/load.h"

namespace eldr::router {

enum class Role { kPrefill, kDecode };
std::string_view name_of(Role role);  ///< "prefill", "decode"

/// What a source knows of a worker.
struct WorkerSpec {
  std::string id;  ///< unique in its role: "10.0.0.1:8000", a pod's name
  std::string host;
  std::uint16_t port = 0;
  std::optional<std::int32_t> cluster;  ///< decode workers: the cluster whose requests it serves
};

/// Identity is fixed; counters and health live as long as any request or snapshot holds the worker, so a
/// worker that left the registry still finishes its streams. Thread-safe.
class Worker {
 public:
  Worker(Role role, const WorkerSpec& spec, HealthConfig health);

  const Role role;
  const std::string id;
  const std::string host;
  const std::uint16_t port;
  const std::string authority;  ///< "host:port" as the Host header has it
  const std::uint64_t id_hash;  ///< for rendezvous hashing

  std::optional<std::int32_t> cluster() const;
  void set_cluster(std::optional<std::int32_t> cluster);

  Health health;
  Load load;
  std::atomic<std::uint64_t> requests{0};  ///< attempts made on it
  std::atomic<std::uint64_t> failures{0};

 private:
  std::atomic<std::int64_t> cluster_;  // -1: none
};
using WorkerPtr = std::shared_ptr<Worker>;

/// One request's hold on a worker: counted in flight while it lives; says how the attempt went, once. An
/// attempt that ends without a word says nothing about the worker's health.
class WorkerLease {
 public:
  WorkerLease() = default;
  WorkerLease(WorkerPtr worker, Clock::Steady now);
  WorkerLease(WorkerLease&& other) noexcept
      : worker_(std::move(other.worker_)), probe_(std::exchange(other.probe_, false)) {}
  WorkerLease& operator=(WorkerLease&& other) noexcept;
  WorkerLease(const WorkerLease&) = delete;
  WorkerLease& operator=(const WorkerLease&) = delete;
  ~WorkerLease() { release(); }

  explicit operator bool() const { return worker_ != nullptr; }
  Worker& operator*() const { return *worker_; }
  Worker* operator->() const { return worker_.get(); }

  void succeeded();
  /// True: this failure ejected the worker.
  bool failed(Clock::Steady now);
  void release();

 private:
  WorkerPtr worker_;
  bool probe_ = false;
};

}  // namespace eldr::router
