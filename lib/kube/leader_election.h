// SPDX-License-Identifier: Apache-2.0
// One active replica of several, by a Lease object (coordination.k8s.io/v1). Whether another's lease has run
// out is judged by how long *we* have seen it unchanged, so clocks of different nodes need not agree.
//
// Thread-safety: all methods may be called from any thread. The client, the clock and the randomness must
// outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/random.h"

namespace eldr::kube {

/// Told about leadership; see metrics.h.
class LeaderElectionMetrics {
 public:
  virtual ~LeaderElectionMetrics() = default;
  virtual void leading(bool yes) = 0;
};

struct LeaderElectionOptions {
  ObjectKey lease{};                                 ///< {"eldr-system", "eldr-operator"}
  std::string identity{};                            ///< of this replica: the pod's name and something random
  std::chrono::milliseconds lease_duration{15'000};  ///< others wait this long for a silent leader
  std::chrono::milliseconds renew_deadline{10'000};  ///< a leader that cannot renew for this long gives up
  std::chrono::milliseconds retry_period{2'000};     ///< between tries, jittered up to 1.2 times
};

struct LeaderCallbacks {
  std::function<void()> started{};  ///< we lead: start the guarded work, and return at once, since the
                                    ///< elector's own thread calls it.
  std::function<void()> lost{};  ///< we do not lead any more: the process should exit. Called at most once.
  std::function<void(const std::string&)> new_leader{};  ///< optional: the identity seen, also our own
};

class LeaderElector {
 public:
  LeaderElector(const Client& client, LeaderElectionOptions options, LeaderCallbacks callbacks,
                const Clock& clock, Random& random, LeaderElectionMetrics* metrics = nullptr);
  ~LeaderElector();  ///< like stop(), without a release
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  /// kInvalid when the three durations do not fit together (lease > renew > 1.2 · retry) or names are
  /// missing.
  Status start();
  /// Ends the elector's thread and, when we lead, gives the lease back so that another replica takes over at
  /// once. Call it only AFTER the guarded work has stopped. `lost` is not called.
  void stop_and_release();

  bool is_leader() const;      ///< held, and renewed within the renew deadline by our clock
  std::string leader() const;  ///< identity last seen in the lease; "" when unknown

  /// One try to acquire or renew; what the thread does every retry period. For tests with a fake clock.
  /// Returns whether we hold the lease now.
  Result<bool> try_once();

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

}  // namespace eldr::kube
