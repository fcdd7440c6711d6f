// SPDX-License-Identifier: Apache-2.0
#include "router/metrics/metrics.h"

#include <string>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "lib/base/version.h"

namespace eldr::router {
namespace {

using prometheus::ClientMetric;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;

const Histogram::BucketBoundaries kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                              0.5,   1,      2.5,   5,    10,    30,   60,  120};

/// One counter for each value of an enum, made at the start so that every series exists from zero.
template <class Enum, std::size_t N>
std::array<Counter*, N> one_for_each(Family<Counter>& family, const char* label) {
  std::array<Counter*, N> counters{};
  for (std::size_t i = 0; i < N; ++i)
    counters[i] = &family.Add({{label, std::string(name_of(static_cast<Enum>(i)))}});
  return counters;
}

template <class Enum, std::size_t N>
void count(const std::array<Counter*, N>& counters, Enum which) {
  counters[static_cast<std::size_t>(which)]->Increment();
}

MetricFamily family_of(std::string name, std::string help, MetricType type) {
  return {std::move(name), std::move(help), type, {}};
}

void add(MetricFamily& family, double value, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

}  // namespace

std::string_view name_of(Route route) {
  static constexpr std::array<std::string_view, 3> kNames = {"completions", "chat_completions", "other"};
  return kNames[static_cast<std::size_t>(route)];
}
std::string_view name_of(Refusal refusal) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "header",           "body",      "too_large",   "bad_json", "no_prefill_worker",
      "no_decode_worker", "in_flight", "connections", "path"};
  return kNames[static_cast<std::size_t>(refusal)];
}
std::string_view name_of(Stage stage) {
  static constexpr std::array<std::string_view, 8> kNames = {"header",     "body", "connect", "prefill",
                                                             "first_byte", "idle", "total",   "write"};
  return kNames[static_cast<std::size_t>(stage)];
}
std::string_view name_of(Gone gone) {
  static constexpr std::array<std::string_view, 3> kNames = {"prefill", "between", "decode"};
  return kNames[static_cast<std::size_t>(gone)];
}
std::string_view name_of(Breaker breaker) {
  static constexpr std::array<std::string_view, 3> kNames = {"decode_worker", "client", "deadline"};
  return kNames[static_cast<std::size_t>(breaker)];
}

class Metrics::Impl final : public prometheus::Collectable {
 public:
  Impl(const Metrics& owner, std::shared_ptr<WorkerRegistry> workers,
       std::function<std::shared_ptr<const Routing>()> routing)
      : owner_(owner), workers_(std::move(workers)), routing_(std::move(routing)) {}

  std::vector<MetricFamily> Collect() const override {
    auto families = registry->Collect();
    collect_router(families);
    collect_workers(families);
    return families;
  }

  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();

  Family<Counter>& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
  }
  Histogram& histogram(const char* name, const char* help, const Histogram::BucketBoundaries& bounds) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry).Add({}, bounds);
  }

  Family<Counter>& requests =
      counter("eldr_router_requests_total", "Requests answered, by path and status (0: the client left).");
  Family<Counter>& decisions = counter("eldr_router_decisions_total",
                                       "Decode workers chosen, by policy and by what the choice rested on.");
  Family<Counter>& clusters =
      counter("eldr_router_cluster_requests_total", "Requests given to a worker of each cluster.");
  Histogram& request_seconds =
      histogram("eldr_router_request_seconds", "Whole requests, from headers to last byte.", kSeconds);
  Histogram& prefill_seconds = histogram(
      "eldr_router_prefill_seconds", "Prefill legs, from choosing a worker to its whole answer.", kSeconds);
  Histogram& first_byte_seconds =
      histogram("eldr_router_first_byte_seconds", "From a request's headers to the first byte of its answer.",
                kSeconds);
  Histogram& best_similarity =
      histogram("eldr_router_best_similarity", "Best cosine of a request's signature with a centroid.",
                {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95});
  Histogram& band_size = histogram("eldr_router_band_size", "Workers that a choice by similarity was among.",
                                   {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128});
  std::array<Counter*, 9> refusals = one_for_each<Refusal, 9>(
      counter("eldr_router_refused_total", "Requests refused before a worker was asked."), "reason");
  std::array<Counter*, 2> retries = one_for_each<Role, 2>(
      counter("eldr_router_retries_total", "Attempts of a leg beyond its first."), "leg");
  std::array<Counter*, 2> fail_opens = one_for_each<Role, 2>(
      counter("eldr_router_fail_open_total", "Choices made among ejected workers, since no other was left."),
      "role");
  std::array<Counter*, 2> ejections = one_for_each<Role, 2>(
      counter("eldr_router_ejections_total", "Times that failures ejected a worker."), "role");
  std::array<Counter*, 8> deadlines =
      one_for_each<Stage, 8>(counter("eldr_router_deadlines_total", "Waits that ran out."), "stage");
  std::array<Counter*, 3> gone = one_for_each<Gone, 3>(
      counter("eldr_router_client_gone_total", "Clients that left before their answer was whole."), "stage");
  std::array<Counter*, 3> broken = one_for_each<Breaker, 3>(
      counter("eldr_router_broken_streams_total", "Answers that ended before they were whole."), "by");
  Family<Counter>& reloads =
      counter("eldr_router_config_reloads_total", "Changed configuration files, by result.");
  Counter& reload_accepted = reloads.Add({{"result", "accepted"}});
  Counter& reload_refused = reloads.Add({{"result", "refused"}});
  Counter& load_poll_failures =
      counter("eldr_router_load_poll_failures_total", "Load polls of decode workers without an answer.")
          .Add({});

 private:
  void collect_router(std::vector<MetricFamily>& families) const {
    auto in_flight =
        family_of("eldr_router_in_flight_requests", "Requests in the router now.", MetricType::Gauge);
    add(in_flight, static_cast<double>(owner_.in_flight.load()));
    auto connections = family_of("eldr_router_connections", "Clients connected now.", MetricType::Gauge);
    add(connections, static_cast<double>(owner_.connections.load()));
    auto draining = family_of("eldr_router_draining",
                              "1 while the router lets its streams end before it exits.", MetricType::Gauge);
    add(draining, owner_.draining.load() ? 1 : 0);
    auto info = family_of("eldr_router_config_info", "The configuration in use; the value is always 1.",
                          MetricType::Gauge);
    if (const auto routing = routing_())
      add(info, 1,
          {{"revision", routing->revision},
           {"centroids", routing->centroids_revision},
           {"policy", std::string(name_of(routing->config.policy))}});
    auto build = family_of("eldr_router_build_info", "The program's version; the value is always 1.",
                           MetricType::Gauge);
    add(build, 1, {{"version", kVersion}});
    for (auto* family : {&in_flight, &connections, &draining, &info, &build})
      families.push_back(std::move(*family));
  }

  void collect_workers(std::vector<MetricFamily>& families) const {
    auto count = family_of("eldr_router_workers", "Workers known, by role.", MetricType::Gauge);
    auto in_flight = family_of("eldr_router_worker_in_flight", "Requests of this router on a worker now.",
                               MetricType::Gauge);
    auto load =
        family_of("eldr_router_worker_load",
                  "A worker's load as decisions see it: own requests and those of others at the last poll.",
                  MetricType::Gauge);
    auto ejected = family_of("eldr_router_worker_ejected",
                             "1 while a worker takes no requests after failures.", MetricType::Gauge);
    auto requests =
        family_of("eldr_router_worker_requests_total", "Attempts made on a worker.", MetricType::Counter);
    auto failures = family_of("eldr_router_worker_failures_total",
                              "Attempts that failed by the worker's fault.", MetricType::Counter);
    const auto set = workers_->snapshot();
    for (const auto role : {Role::kPrefill, Role::kDecode}) {
      const std::string role_name(name_of(role));
      add(count, static_cast<double>(set->of(role).size()), {{"role", role_name}});
      for (const auto& worker : set->of(role)) {
        const std::vector<ClientMetric::Label> labels = {{"role", role_name}, {"worker", worker->id}};
        add(in_flight, worker->load.own(), labels);
        add(load, worker->load.own() + worker->load.others(), labels);
        add(ejected, worker->health.is_ejected() ? 1 : 0, labels);
        add(requests, static_cast<double>(worker->requests.load()), labels);
        add(failures, static_cast<double>(worker->failures.load()), labels);
      }
    }
    for (auto* family : {&count, &in_flight, &load, &ejected, &requests, &failures})
      families.push_back(std::move(*family));
  }

  const Metrics& owner_;
  std::shared_ptr<WorkerRegistry> workers_;
  std::function<std::shared_ptr<const Routing>()> routing_;
};

Metrics::Metrics(std::shared_ptr<WorkerRegistry> workers,
                 std::function<std::shared_ptr<const Routing>()> routing)
    : impl_(std::make_shared<Impl>(*this, std::move(workers), std::move(routing))) {}
Metrics::~Metrics() = default;

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const { return impl_; }
std::shared_ptr<prometheus::Registry> Metrics::registry() const { return impl_->registry; }

void Metrics::request(Route route, int status, double seconds) {
  impl_->requests.Add({{"path", std::string(name_of(route))}, {"code", std::to_string(status)}}).Increment();
  impl_->request_seconds.Observe(seconds);
}
void Metrics::prefill_leg(double seconds) { impl_->prefill_seconds.Observe(seconds); }
void Metrics::first_byte(double seconds) { impl_->first_byte_seconds.Observe(seconds); }

void Metrics::decided(Reason reason, const Decision& decision, std::string_view policy) {
  impl_->decisions.Add({{"policy", std::string(policy)}, {"reason", std::string(name_of(reason))}})
      .Increment();
  if (decision.cluster) impl_->clusters.Add({{"cluster", std::to_string(*decision.cluster)}}).Increment();
  if (reason != Reason::kSignature) return;
  if (decision.best) impl_->best_similarity.Observe(*decision.best);
  impl_->band_size.Observe(static_cast<double>(decision.band));
}
void Metrics::refused(Refusal refusal) { count(impl_->refusals, refusal); }
void Metrics::retried(Role role) { count(impl_->retries, role); }
void Metrics::failed_open(Role role) { count(impl_->fail_opens, role); }
void Metrics::ejected(Role role) { count(impl_->ejections, role); }
void Metrics::deadline(Stage stage) { count(impl_->deadlines, stage); }
void Metrics::client_gone(Gone gone) { count(impl_->gone, gone); }
void Metrics::stream_broken(Breaker breaker) { count(impl_->broken, breaker); }
void Metrics::config_reload(bool accepted) {
  (accepted ? impl_->reload_accepted : impl_->reload_refused).Increment();
}
void Metrics::load_poll_failed() { impl_->load_poll_failures.Increment(); }

}  // namespace eldr::router
