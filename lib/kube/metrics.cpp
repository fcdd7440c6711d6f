// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace eldr::kube {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// client-go's and controller-runtime's buckets, in seconds.
const Buckets kQueueBuckets{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000};
const Buckets kRequestBuckets{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
const Buckets kReconcileBuckets{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                                0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1,    1.25, 1.5,
                                1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,    7,
                                8,     9,    10,    15,   20,  25,   30,  40,   50,   60};

class PrometheusClientMetrics final : public ClientMetrics {
 public:
  explicit PrometheusClientMetrics(prometheus::Registry& registry)
      : total_(BuildCounter()
                   .Name("rest_client_requests_total")
                   .Help("API requests by HTTP status and method.")
                   .Register(registry)),
        duration_(BuildHistogram()
                      .Name("rest_client_request_duration_seconds")
                      .Help("Time from an API request to its answer.")
                      .Register(registry)) {}
  void request_done(std::string_view method, std::string_view code, double seconds) override {
    const std::string verb(method);
    total_.Add({{"code", std::string(code)}, {"method", verb}}).Increment();
    duration_.Add({{"method", verb}}, kRequestBuckets).Observe(seconds);
  }

 private:
  Family<Counter>& total_;
  Family<Histogram>& duration_;
};

class PrometheusWorkQueueMetrics final : public WorkQueueMetrics {
 public:
  PrometheusWorkQueueMetrics(prometheus::Registry& registry, const std::string& queue)
      : depth_(BuildGauge()
                   .Name("workqueue_depth")
                   .Help("Keys that wait for a worker.")
                   .Register(registry)
                   .Add({{"name", queue}})),
        adds_(BuildCounter()
                  .Name("workqueue_adds_total")
                  .Help("Keys added to the queue.")
                  .Register(registry)
                  .Add({{"name", queue}})),
        retries_(BuildCounter()
                     .Name("workqueue_retries_total")
                     .Help("Keys put back after a failure.")
                     .Register(registry)
                     .Add({{"name", queue}})),
        waited_(BuildHistogram()
                    .Name("workqueue_queue_duration_seconds")
                    .Help("Time a key waits for a worker.")
                    .Register(registry)
                    .Add({{"name", queue}}, kQueueBuckets)),
        worked_(BuildHistogram()
                    .Name("workqueue_work_duration_seconds")
                    .Help("Time a worker takes for a key.")
                    .Register(registry)
                    .Add({{"name", queue}}, kQueueBuckets)) {}
  void depth(std::size_t keys) override { depth_.Set(static_cast<double>(keys)); }
  void added() override { adds_.Increment(); }
  void retried() override { retries_.Increment(); }
  void waited(double seconds) override { waited_.Observe(seconds); }
  void worked(double seconds) override { worked_.Observe(seconds); }

 private:
  Gauge& depth_;
  Counter& adds_;
  Counter& retries_;
  Histogram& waited_;
  Histogram& worked_;
};

class PrometheusLeaderElectionMetrics final : public LeaderElectionMetrics {
 public:
  PrometheusLeaderElectionMetrics(prometheus::Registry& registry, const std::string& name)
      : leading_(BuildGauge()
                     .Name("leader_election_master_status")
                     .Help("1 while this process leads.")
                     .Register(registry)
                     .Add({{"name", name}})) {}
  void leading(bool yes) override { leading_.Set(yes ? 1 : 0); }

 private:
  Gauge& leading_;
};

const char* label_of(ReconcileResult result) {
  switch (result) {
    case ReconcileResult::kSuccess:
      return "success";
    case ReconcileResult::kError:
      return "error";
    case ReconcileResult::kRequeue:
      return "requeue";
    case ReconcileResult::kRequeueAfter:
      break;
  }
  return "requeue_after";
}

class PrometheusReconcileMetrics final : public ReconcileMetrics {
 public:
  PrometheusReconcileMetrics(prometheus::Registry& registry, const std::string& controller)
      : controller_(controller),
        total_(BuildCounter()
                   .Name("controller_runtime_reconcile_total")
                   .Help("Reconciliations by result.")
                   .Register(registry)),
        errors_(BuildCounter()
                    .Name("controller_runtime_reconcile_errors_total")
                    .Help("Reconciliations that failed.")
                    .Register(registry)
                    .Add({{"controller", controller}})),
        time_(BuildHistogram()
                  .Name("controller_runtime_reconcile_time_seconds")
                  .Help("Length of a reconciliation.")
                  .Register(registry)
                  .Add({{"controller", controller}}, kReconcileBuckets)),
        workers_(BuildGauge()
                     .Name("controller_runtime_active_workers")
                     .Help("Workers that reconcile now.")
                     .Register(registry)
                     .Add({{"controller", controller}})) {
    for (const auto result : {ReconcileResult::kSuccess, ReconcileResult::kError, ReconcileResult::kRequeue,
                              ReconcileResult::kRequeueAfter}) {
      counter(result);  // present with 0 from the start, so that a rate sees the first one
    }
  }
  void started() override { workers_.Increment(); }
  void finished(ReconcileResult result, double seconds) override {
    workers_.Decrement();
    counter(result).Increment();
    if (result == ReconcileResult::kError) {
      errors_.Increment();
    }
    time_.Observe(seconds);
  }

 private:
  Counter& counter(ReconcileResult result) {
    return total_.Add({{"controller", controller_}, {"result", label_of(result)}});
  }
  const std::string controller_;
  Family<Counter>& total_;
  Counter& errors_;
  Histogram& time_;
  Gauge& workers_;
};

}  // namespace

std::unique_ptr<ClientMetrics> make_client_metrics(prometheus::Registry& registry) {
  return std::make_unique<PrometheusClientMetrics>(registry);
}
std::unique_ptr<WorkQueueMetrics> make_work_queue_metrics(prometheus::Registry& registry,
                                                          const std::string& queue) {
  return std::make_unique<PrometheusWorkQueueMetrics>(registry, queue);
}
std::unique_ptr<LeaderElectionMetrics> make_leader_election_metrics(prometheus::Registry& registry,
                                                                    const std::string& name) {
  return std::make_unique<PrometheusLeaderElectionMetrics>(registry, name);
}
std::unique_ptr<ReconcileMetrics> make_reconcile_metrics(prometheus::Registry& registry,
                                                         const std::string& controller) {
  return std::make_unique<PrometheusReconcileMetrics>(registry, controller);
}

}  // namespace eldr::kube
