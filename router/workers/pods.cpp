// SPDX-License-Identifier: Apache-2.0
#include "router/workers/pods.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "lib/kube/informer.h"
#include "lib/kube/object.h"

namespace eldr::router {
namespace {

constexpr std::string_view kClusterLabel = "eldr.dev/cluster";

std::optional<std::int32_t> cluster_of(const kube::Json& pod) {
  const auto label = kube::label_of(pod, kClusterLabel);
  if (!label || label->empty()) return std::nullopt;
  std::int32_t id = -1;
  const auto* end = label->data() + label->size();
  const auto [stop, error] = std::from_chars(label->data(), end, id);
  if (error != std::errc{} || stop != end || id < 0) return std::nullopt;
  return id;
}

/// One pool: an informer whose every news publishes the pool's whole list.
class PodPoolWatch {
 public:
  PodPoolWatch(const kube::Client& client, const std::string& ns, const PodPool& pool, Role role,
               std::shared_ptr<WorkerRegistry> registry, const Clock& clock, kube::Random& random)
      : pool_(pool), role_(role), registry_(std::move(registry)) {
    kube::InformerOptions options;
    options.resource = kube::kPods;
    options.ns = ns;
    options.label_selector = pool.selector;
    informer_ = std::make_unique<kube::Informer>(
        client, std::move(options), [this](const kube::ObjectKey&) { publish(); }, clock, random);
    informer_->start();
  }

  Status ready() const {
    if (informer_->has_synced()) return {};
    if (auto status = informer_->health(); !status)
      return failure(status.error().with_context(std::string(name_of(role_)) + " pods"));
    return failure(Code::kUnavailable, std::string(name_of(role_)) + " pods: not listed yet");
  }

 private:
  void publish() {
    std::vector<WorkerSpec> specs;
    for (const auto& pod : informer_->store().list())
      if (auto spec = worker_of_pod(*pod, pool_.port)) specs.push_back(std::move(*spec));
    registry_->replace(role_, std::move(specs));
  }

  const PodPool pool_;
  const Role role_;
  const std::shared_ptr<WorkerRegistry> registry_;
  std::unique_ptr<kube::Informer> informer_;  // last: its thread ends before what it uses goes
};

class PodSource final : public WorkerSource {
 public:
  PodSource(const kube::Client& client, const KubernetesConfig& config,
            const std::shared_ptr<WorkerRegistry>& registry, const Clock& clock, kube::Random& random)
      : prefill_(client, config.namespace_name, config.prefill, Role::kPrefill, registry, clock, random),
        decode_(client, config.namespace_name, config.decode, Role::kDecode, registry, clock, random) {}

  Status ready() const override {
    if (auto status = prefill_.ready(); !status) return status;
    return decode_.ready();
  }

 private:
  PodPoolWatch prefill_;
  PodPoolWatch decode_;
};

}  // namespace

std::optional<WorkerSpec> worker_of_pod(const kube::Json& pod, std::uint16_t port) {
  if (kube::is_deleting(pod) || !kube::condition_is_true(pod, "Ready")) return std::nullopt;
  auto address = kube::string_at(pod, {"status", "podIP"});
  if (address.empty()) return std::nullopt;
  return WorkerSpec{kube::object_name(pod), std::move(address), port, cluster_of(pod)};
}

std::unique_ptr<WorkerSource> watch_pods(const kube::Client& client, const KubernetesConfig& config,
                                         std::shared_ptr<WorkerRegistry> registry, const Clock& clock,
                                         kube::Random& random) {
  return std::make_unique<PodSource>(client, config, registry, clock, random);
}

}  // namespace eldr::router
