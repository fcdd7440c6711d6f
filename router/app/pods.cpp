// SPDX-License-Identifier: Apache-2.0
#include "router/app/pods.h"

#include "lib/base/log.h"
#include "lib/kube/connect.h"
#include "lib/kube/cpprest_transport.h"
#include "lib/kube/metrics.h"
#include "lib/kube/random.h"
#include "router/workers/pods.h"

namespace eldr::router {
namespace {

/// The watch together with the connection that it needs. Members end in reverse: the watch first.
class ConnectedPods final : public WorkerSource {
 public:
  ConnectedPods(std::shared_ptr<prometheus::Registry> registry)
      : registry_(std::move(registry)),
        rest_metrics(kube::make_client_metrics(*registry_)),
        random(kube::make_random()) {}
  Status ready() const override { return pods->ready(); }

 private:
  std::shared_ptr<prometheus::Registry> registry_;

 public:
  std::unique_ptr<kube::ClientMetrics> rest_metrics;
  std::unique_ptr<kube::Random> random;
  kube::Connection connection;
  std::unique_ptr<WorkerSource> pods;
};

}  // namespace

PodSourceFactory pod_source_factory(std::string kubeconfig, const Clock& clock) {
  return [kubeconfig = std::move(kubeconfig), &clock](
             const KubernetesConfig& config, std::shared_ptr<WorkerRegistry> workers,
             std::shared_ptr<prometheus::Registry> metrics) -> Result<std::unique_ptr<WorkerSource>> {
    auto source = std::make_unique<ConnectedPods>(std::move(metrics));
    auto connection = kube::connect(kubeconfig, kube::environment_of_process(), "router", clock,
                                    source->rest_metrics.get());
    if (!connection) return failure(connection.error().with_context("kubernetes"));
    source->connection = std::move(*connection);
    spdlog::info("watching pods of namespace {} at {}", config.namespace_name, source->connection.server);
    source->pods = watch_pods(*source->connection.client, config, std::move(workers), clock, *source->random);
    return std::unique_ptr<WorkerSource>(std::move(source));
  };
}

}  // namespace eldr::router
