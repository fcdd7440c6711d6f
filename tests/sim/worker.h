// SPDX-License-Identifier: Apache-2.0
// A simulated vLLM worker: its HTTP surface over the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/http/server.h"
#include "tests/sim/batch.h"
#include "tests/sim/experts.h"
#include "tests/sim/faults.h"

namespace eldr::sim {

/// prefill: counts experts and leases KV. decode: pulls KV. engine: returns routed experts, has no KV
/// transfer.
enum class Role { kPrefill, kDecode, kEngine };
std::string_view name_of(Role role);

struct WorkerOptions {
  Role role = Role::kDecode;
  std::string model = "sim/moe";
  std::uint32_t max_model_len = 8192;  ///< tokens, prompt and answer
  CostModel cost;
  BatchLimits batch;
  std::uint32_t kv_blocks = 65'536;
  std::chrono::milliseconds lease{30'000};
  std::string
      advertise_host;  ///< where decode workers reach this one; empty: the address that the router used
  std::uint16_t advertise_port = 0;  ///< set once the port is known
  std::vector<Fault> faults;
  std::uint64_t instance = 0;  ///< random: tells apart this process in engine and request ids
};

/// Set by main, so that tests see what would happen.
struct WorkerHooks {
  std::function<void()> die;
  std::function<void(std::chrono::milliseconds)> refuse_connections;
};

/// Thread-safe. The clock and the model must outlive it.
class Worker {
 public:
  Worker(WorkerOptions options, const ExpertModel& model, const Clock& clock, WorkerHooks hooks);
  ~Worker();

  /// The whole surface: README.md lists the paths.
  void handle(const http::Request& request, http::ResponseWriter& writer);
  void set_advertise_port(std::uint16_t port);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace eldr::sim
