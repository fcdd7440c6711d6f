// SPDX-License-Identifier: Apache-2.0
// Prometheus metrics under the names that users of controller-runtime already graph:
//   rest_client_requests_total{code,method}, rest_client_request_duration_seconds{method}
//   workqueue_depth{name}, workqueue_adds_total, workqueue_retries_total, workqueue_queue_duration_seconds,
//   workqueue_work_duration_seconds
//   leader_election_master_status{name}
//   controller_runtime_reconcile_total{controller,result},
//   controller_runtime_reconcile_errors_total{controller},
//   controller_runtime_reconcile_time_seconds{controller}, controller_runtime_active_workers{controller}
// Thread-safe. The registry must outlive every object made here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/kube/client.h"
#include "lib/kube/leader_election.h"
#include "lib/kube/work_queue.h"

namespace prometheus {
class Registry;
}

namespace eldr::kube {

std::unique_ptr<ClientMetrics> make_client_metrics(prometheus::Registry& registry);
std::unique_ptr<WorkQueueMetrics> make_work_queue_metrics(prometheus::Registry& registry,
                                                          const std::string& queue);
std::unique_ptr<LeaderElectionMetrics> make_leader_election_metrics(prometheus::Registry& registry,
                                                                    const std::string& name);

enum class ReconcileResult { kSuccess, kError, kRequeue, kRequeueAfter };

class ReconcileMetrics {
 public:
  virtual ~ReconcileMetrics() = default;
  virtual void started() = 0;  ///< a worker is busy
  virtual void finished(ReconcileResult result, double seconds) = 0;
};
std::unique_ptr<ReconcileMetrics> make_reconcile_metrics(prometheus::Registry& registry,
                                                         const std::string& controller);

}  // namespace eldr::kube
