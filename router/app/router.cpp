// SPDX-License-Identifier: Apache-2.0
#include "router/app/router.h"

#include <atomic>
#include <mutex>

#include "lib/base/log.h"
#include "lib/http/listen_address.h"
#include "router/admin/admin.h"
#include "router/server/server.h"
#include "router/server/shared.h"

namespace eldr::router {
namespace {

/// The fields that only a new process can change, as text to compare.
std::vector<std::pair<const char*, bool>> fixed_differences(const Config& a, const Config& b) {
  const auto& la = a.limits;
  const auto& lb = b.limits;
  const auto& ta = a.timeouts;
  const auto& tb = b.timeouts;
  const bool limits =
      std::tie(la.body, la.header, la.prefill_answer, la.connections, la.in_flight, la.idle_per_worker,
               la.attempts) != std::tie(lb.body, lb.header, lb.prefill_answer, lb.connections, lb.in_flight,
                                        lb.idle_per_worker, lb.attempts);
  const bool timeouts =
      std::tie(ta.header, ta.body, ta.keep_alive, ta.write, ta.connect, ta.prefill, ta.first_byte, ta.idle,
               ta.total) != std::tie(tb.header, tb.body, tb.keep_alive, tb.write, tb.connect, tb.prefill,
                                     tb.first_byte, tb.idle, tb.total);
  const bool health = std::tie(a.health.failures, a.health.eject, a.health.max_eject) !=
                      std::tie(b.health.failures, b.health.eject, b.health.max_eject);
  return {{"listen", a.listen != b.listen},
          {"admin", a.admin != b.admin},
          {"threads", a.threads != b.threads},
          {"kubernetes", a.kubernetes.has_value() != b.kubernetes.has_value()},
          {"loadPollSeconds", a.load_poll != b.load_poll},
          {"limits", limits},
          {"timeouts", timeouts},
          {"health", health}};
}

}  // namespace

class Router::Impl {
 public:
  Impl(Config config, Options options)
      : options_(std::move(options)),
        config_(std::move(config)),
        workers_(std::make_shared<WorkerRegistry>(config_.health)),
        shared_(*options_.clock, config_.limits, config_.timeouts, workers_) {}

  Status start(const LoadedConfig& loaded) {
    if (auto status = use(loaded); !status) return status;
    if (auto status = find_workers(); !status) return status;
    auto listen = http::parse_listen_address(config_.listen);
    if (!listen) return failure(listen.error());
    auto data = DataServer::start(shared_, {*listen, config_.threads, options_.seed, config_.load_poll});
    if (!data) return failure(data.error());
    data_ = std::move(*data);
    return start_admin();
  }

  Status reload(const LoadedConfig& loaded) {
    const std::lock_guard lock(mutex_);
    auto status = use(loaded);
    shared_.metrics.config_reload(status.has_value());
    if (!status) {
      spdlog::error("the changed configuration is refused, the present one stays: {}",
                    status.error().to_string());
      return status;
    }
    for (const auto& [field, differs] : fixed_differences(config_, loaded.config))
      if (differs) spdlog::warn("{} changed in the file: takes effect at the next start", field);
    if (!config_.kubernetes) publish_listed_workers(loaded.config, *workers_);
    spdlog::info("configuration {} in use", shared_.routing.load()->revision);
    return {};
  }

  void reload_failed(const Error& error) {
    shared_.metrics.config_reload(false);
    spdlog::error("the changed configuration cannot be used, the present one stays: {}", error.to_string());
  }

  std::uint16_t port() const { return data_->port(); }
  std::uint16_t admin_port() const { return admin_->port(); }
  void leave_service() { leaving_ = true; }
  bool drain() {
    leaving_ = true;
    const bool ended = data_->drain(config_.drain);
    data_->stop();
    return ended;
  }
  Milliseconds drain_limit() const { return config_.drain; }

 private:
  /// Everything that a reload may change.
  Status use(const LoadedConfig& loaded) {
    std::optional<std::span<const std::byte>> file;
    if (loaded.centroids) file = *loaded.centroids;
    auto routing = make_routing(loaded.config, loaded.text, file);
    if (!routing) return failure(routing.error());
    shared_.routing.store(std::move(*routing));
    return {};
  }

  Status find_workers() {
    if (!config_.kubernetes) {
      publish_listed_workers(config_, *workers_);
      return {};
    }
    if (!options_.pod_source)
      return failure(Code::kInvalid, "kubernetes: this program was built without it, list workers instead");
    auto source = options_.pod_source(*config_.kubernetes, workers_, shared_.metrics.registry());
    if (!source) return failure(source.error());
    source_ = std::move(*source);
    return {};
  }

  Status start_admin() {
    auto listen = http::parse_listen_address(config_.admin);
    if (!listen) return failure(listen.error());
    auto options = admin_options({[this] { return shared_.routing.load(); }, workers_, options_.clock,
                                  [this] { return ready(); }, shared_.metrics.collectable()});
    options.server.address = listen->address;
    options.server.port = listen->port;
    auto admin = http::serve_admin(std::move(options));
    if (!admin) return failure(admin.error().with_context("admin"));
    admin_ = std::move(*admin);
    return {};
  }

  Status ready() const {
    if (leaving_) return failure(Code::kUnavailable, "the router is shutting down");
    return source_ ? source_->ready() : Status{};
  }

  const Options options_;
  const Config config_;
  const std::shared_ptr<WorkerRegistry> workers_;
  ServerShared shared_;
  std::mutex mutex_;
  std::atomic<bool> leaving_{false};
  std::unique_ptr<WorkerSource> source_;
  std::unique_ptr<DataServer> data_;
  std::unique_ptr<http::Server> admin_;  // last: gone first, since its pages look at all of the above
};

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::~Router() = default;

Result<std::unique_ptr<Router>> Router::start(LoadedConfig loaded, Options options) {
  auto impl = std::make_unique<Impl>(loaded.config, std::move(options));
  if (auto status = impl->start(loaded); !status) return failure(status.error());
  return std::unique_ptr<Router>(new Router(std::move(impl)));
}

std::uint16_t Router::port() const { return impl_->port(); }
std::uint16_t Router::admin_port() const { return impl_->admin_port(); }
Status Router::reload(LoadedConfig loaded) { return impl_->reload(loaded); }
void Router::reload_failed(const Error& error) { impl_->reload_failed(error); }
void Router::leave_service() { impl_->leave_service(); }
bool Router::drain() { return impl_->drain(); }
Milliseconds Router::drain_limit() const { return impl_->drain_limit(); }

}  // namespace eldr::router
