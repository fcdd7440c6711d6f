// SPDX-License-Identifier: Apache-2.0
// The router's metrics, all beginning with eldr_router_ (docs/reference/router.md lists them). Label values
// come from fixed sets, and from worker ids, whose series end when the worker leaves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "router/routing/decision.h"
#include "router/routing/reason.h"
#include "router/workers/registry.h"

namespace prometheus {
class Collectable;
class Registry;
}  // namespace prometheus

namespace eldr::router {

/// Which paths requests are counted under.
enum class Route { kCompletions, kChat, kOther };
/// Why a request was refused before any worker was asked.
enum class Refusal {
  kHeader,
  kBody,
  kTooLarge,
  kBadJson,
  kNoPrefill,
  kNoDecode,
  kInFlight,
  kConnections,
  kPath
};
/// Where a wait ran out.
enum class Stage { kHeader, kBody, kConnect, kPrefill, kFirstByte, kIdle, kTotal, kWrite };
/// When the client went away.
enum class Gone { kPrefill, kBetween, kDecode };
/// What broke a stream that had begun.
enum class Breaker { kDecodeWorker, kClient, kDeadline };

std::string_view name_of(Route route);
std::string_view name_of(Refusal refusal);
std::string_view name_of(Stage stage);
std::string_view name_of(Gone gone);
std::string_view name_of(Breaker breaker);

/// Thread-safe.
class Metrics {
 public:
  /// `workers` and `routing` are read at each scrape.
  Metrics(std::shared_ptr<WorkerRegistry> workers, std::function<std::shared_ptr<const Routing>()> routing);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// All of it, for a /metrics page.
  std::shared_ptr<prometheus::Collectable> collectable() const;
  /// Where other layers (the Kubernetes client) may put theirs; shown on the same page.
  std::shared_ptr<prometheus::Registry> registry() const;

  void request(Route route, int status, double seconds);
  void prefill_leg(double seconds);
  void first_byte(double seconds);
  void decided(Reason reason, const Decision& decision, std::string_view policy);
  void refused(Refusal refusal);
  void retried(Role role);
  void failed_open(Role role);
  void ejected(Role role);
  void deadline(Stage stage);
  void client_gone(Gone gone);
  void stream_broken(Breaker breaker);
  void config_reload(bool accepted);
  void load_poll_failed();

  std::atomic<std::uint64_t> in_flight{0};    ///< requests
  std::atomic<std::uint64_t> connections{0};  ///< clients connected
  std::atomic<bool> draining{false};

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace eldr::router
