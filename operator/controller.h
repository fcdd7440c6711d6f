// SPDX-License-Identifier: Apache-2.0
// The running operator: watches that fill a queue, and workers that reconcile its keys.
//
// Thread-safety: start_watching, start_working and stop from one thread; the others from any. What the
// options point to must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/kube/informer.h"
#include "lib/kube/metrics.h"
#include "lib/kube/random.h"
#include "lib/kube/work_queue.h"
#include "operator/reconciler.h"
#include "operator/watches.h"

namespace eldr::op {

struct ControllerOptions {
  Environment environment;
  std::vector<std::string> namespaces;  ///< empty: all
  int workers = 4;
  kube::WorkQueueMetrics* queue_metrics = nullptr;
  kube::ReconcileMetrics* reconcile_metrics = nullptr;
};

class Controller {
 public:
  Controller(ControllerOptions options, kube::Random& random);
  ~Controller();  ///< stops
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// Fills the caches and the queue; a replica that does not lead does so too, to be ready.
  void start_watching();
  /// Reconciles, once every cache has synced. Only the leader may.
  void start_working();
  /// Ends the workers after what they are doing, then the watches.
  void stop();

  /// Success once every cache has synced; else names the one that has not, and why.
  Status ready() const;

 private:
  void work(std::stop_token stop);
  void reconcile(const ObjectKey& key);

  ControllerOptions options_;
  kube::WorkQueue queue_;
  std::vector<std::unique_ptr<kube::Informer>> informers_;
  std::vector<std::string> informer_names_;
  Watches watches_;
  Reconciler reconciler_;
  std::atomic<std::uint64_t> reconciles_{0};
  std::vector<std::jthread> workers_;
};

}  // namespace eldr::op
