// SPDX-License-Identifier: Apache-2.0
// eldr-operator: connects, watches, leads, reconciles, and ends cleanly on SIGTERM.
#include <condition_variable>
#include <csignal>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include <prometheus/registry.h>
#include <unistd.h>

#include "lib/base/exit_code.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/http/admin.h"
#include "lib/http/listen_address.h"
#include "lib/kube/connect.h"
#include "lib/kube/cpprest_transport.h"
#include "lib/kube/event_recorder.h"
#include "lib/kube/leader_election.h"
#include "lib/kube/metrics.h"
#include "lib/kube/random.h"
#include "operator/controller.h"
#include "operator/options.h"

namespace eldr::op {
namespace {

constexpr std::chrono::seconds kEventGrace{2};

int fail(const Error& error) {
  spdlog::error("{}", error.to_string());
  return exit_code_for(error);
}

/// Waits for SIGTERM, SIGINT or the loss of the lease. Signals are blocked in all threads and taken here.
class End {
 public:
  End() {
    sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    main_ = pthread_self();
  }
  void lease_lost() {
    lost_ = true;
    pthread_kill(main_, SIGUSR1);
  }
  /// True when a person or Kubernetes asked; false when the lease was lost.
  bool wait() {
    int signal = 0;
    while (sigwait(&signals_, &signal) != 0 || (signal == SIGUSR1 && !lost_)) {
    }
    return !lost_;
  }

 private:
  sigset_t signals_{};
  pthread_t main_{};
  std::atomic<bool> lost_{false};
};

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

Result<std::unique_ptr<http::Server>> serve(const std::string& address, http::AdminOptions options) {
  const auto parsed = http::parse_listen_address(address);
  if (!parsed) return failure(parsed.error());
  options.server.address = parsed->address;
  options.server.port = parsed->port;
  auto server = http::serve_admin(std::move(options));
  if (server) spdlog::info("admin port {} listens on {}:{}", address, parsed->address, (*server)->port());
  return server;
}

int run(const Options& options, End& end) {
  auto registry = std::make_shared<prometheus::Registry>();
  const auto client_metrics = kube::make_client_metrics(*registry);
  const auto queue_metrics = kube::make_work_queue_metrics(*registry, "eldrpolicy");
  const auto reconcile_metrics = kube::make_reconcile_metrics(*registry, "eldrpolicy");
  const auto election_metrics = kube::make_leader_election_metrics(*registry, "eldr-operator");
  const RealClock clock;
  const auto random = kube::make_random();

  auto connection = kube::connect(options.kubeconfig, kube::environment_of_process(), "operator", clock,
                                  client_metrics.get());
  if (!connection) return fail(connection.error());
  const kube::Client& client = *connection->client;
  spdlog::info(
      "eldr-operator {} looks after {} on {}", kVersion,
      options.namespaces.empty() ? "all namespaces" : fmt::format("{}", fmt::join(options.namespaces, ", ")),
      connection->server);

  kube::EventRecorder recorder(client, {.controller = "eldr.dev/operator", .instance = host_name()}, clock);
  recorder.start();
  RecorderSink events(recorder);
  Controller controller({.environment = {.client = &client,
                                         .clock = &clock,
                                         .events = &events,
                                         .calibrator_image = options.calibrator_image,
                                         .router_image = options.router_image},
                         .namespaces = options.namespaces,
                         .workers = options.workers,
                         .queue_metrics = queue_metrics.get(),
                         .reconcile_metrics = reconcile_metrics.get()},
                        *random);

  std::unique_ptr<http::Server> metrics_server, health_server;
  if (!options.metrics_address.empty()) {
    http::AdminOptions admin;
    admin.metrics = registry;
    auto server = serve(options.metrics_address, std::move(admin));
    if (!server) return fail(server.error().with_context("--metrics-address"));
    metrics_server = std::move(*server);
  }
  if (!options.health_address.empty()) {
    http::AdminOptions admin;
    admin.ready = [&controller] { return controller.ready(); };
    auto server = serve(options.health_address, std::move(admin));
    if (!server) return fail(server.error().with_context("--health-address"));
    health_server = std::move(*server);
  }

  controller.start_watching();
  std::unique_ptr<kube::LeaderElector> elector;
  if (options.leader_elect) {
    const std::string ns =
        options.lease_namespace.empty() ? connection->default_namespace : options.lease_namespace;
    const std::string identity = host_name() + "_" + std::to_string(std::uint64_t(random->uniform() * 1e15));
    elector = std::make_unique<kube::LeaderElector>(
        client, kube::LeaderElectionOptions{.lease = {ns, "eldr-operator"}, .identity = identity},
        kube::LeaderCallbacks{.started = [&controller] { controller.start_working(); },
                              .lost = [&end] { end.lease_lost(); },
                              .new_leader = {}},
        clock, *random, election_metrics.get());
    if (const Status started = elector->start(); !started) return fail(started.error());
  } else {
    controller.start_working();
  }

  const bool asked = end.wait();
  spdlog::info("{}", asked ? "ends as asked" : "ends: the lease was lost");
  if (!asked) {
    // Somebody else may work already: go at once, without finishing anything.
    std::cerr.flush();
    _exit(kExitTryAgain);
  }
  controller.stop();
  if (elector) elector->stop_and_release();
  recorder.stop(kEventGrace);
  return kExitOk;
}

}  // namespace
}  // namespace eldr::op

int main(int argc, char** argv) {
  eldr::op::End end;  // before any thread starts: they inherit the blocked signals
  eldr::op::Options options;
  if (const auto code = eldr::op::parse_options(argc, argv, options)) return *code;
  if (const auto logging = eldr::init_logging("eldr-operator", options.log_format, options.log_level);
      !logging) {
    std::cerr << logging.error().to_string() << "\n";
    return eldr::kExitUsage;
  }
  eldr::kube::init_http_threads();
  return eldr::op::run(options, end);
}
