// SPDX-License-Identifier: Apache-2.0
// eldr-router: the command line, signals, and the order of starting and stopping.
#include <iostream>
#include <random>

#include <CLI/CLI.hpp>
#include <signal.h>

#include "lib/base/command_line.h"
#include "lib/base/exit_code.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/kube/cpprest_transport.h"
#include "router/app/pods.h"
#include "router/app/router.h"
#include "router/routing/routing.h"

namespace {

using namespace eldr;

/// SIGTERM and SIGINT are waited for, never handled asynchronously. Call before any thread starts.
sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a client that went away is an error code, not a reason to die
  return signals;
}

/// True when a stop signal came within `longest`.
bool wait_for_stop(const sigset_t& signals, std::chrono::milliseconds longest) {
  const timespec wait{longest.count() / 1000, (longest.count() % 1000) * 1'000'000};
  for (;;) {
    if (sigtimedwait(&signals, nullptr, &wait) > 0) return true;
    if (errno != EINTR) return false;
  }
}

/// Looks at the files once a second until a stop signal comes.
void serve_until_stopped(router::Router& router, router::ConfigFiles& files, const sigset_t& signals) {
  while (!wait_for_stop(signals, std::chrono::seconds(1))) {
    if (!files.changed()) continue;
    auto loaded = files.load();
    if (loaded)
      static_cast<void>(router.reload(std::move(*loaded)));
    else
      router.reload_failed(loaded.error());
  }
}

int fail(const Error& error) {
  spdlog::error("{}", error.to_string());
  std::cerr << "eldr-router: " << error.message << "\n";
  return error.code == Code::kInvalid || error.code == Code::kNotFound ? kExitConfig : exit_code_for(error);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Routes requests of a mixture-of-experts model through prefill and decode workers, each to a\n"
      "decode worker that already reads the experts it will need.",
      "eldr-router"};
  app.set_version_flag("--version", std::string("eldr-router ") + kVersion);
  std::string config;
  std::string log_format = "text";
  std::string log_level = "info";
  std::string kubeconfig;
  int lame_duck_seconds = 0;
  bool check = false;
  app.add_option("--config", config, "router.yaml")->required();
  app.add_option("--kubeconfig", kubeconfig,
                 "for `kubernetes:` outside a cluster; default: $KUBECONFIG or the pod's own");
  app.add_option("--lame-duck-seconds", lame_duck_seconds,
                 "after SIGTERM: not ready, but still listening, for this long")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_flag("--check", check, "read the configuration, say what is wrong with it, and exit");
  app.add_option("--log-format", log_format, "text or json")->capture_default_str();
  app.add_option("--log-level", log_level, "trace, debug, info, warn, error, off")->capture_default_str();
  try {
    app.parse(words_last_first(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (auto status = init_logging("eldr-router", log_format, log_level); !status) {
    std::cerr << "eldr-router: " << status.error().message << "\n";
    return kExitUsage;
  }
  const sigset_t signals = block_stop_signals();

  router::ConfigFiles files(config);
  auto loaded = files.load();
  if (!loaded) return fail(loaded.error());
  if (check) {
    std::optional<std::span<const std::byte>> centroids;
    if (loaded->centroids) centroids = *loaded->centroids;
    const auto routing = router::make_routing(loaded->config, loaded->text, centroids);
    if (!routing) return fail(routing.error());
    std::cout << config << ": good, revision " << (*routing)->revision << "\n";
    return kExitOk;
  }
  if (loaded->config.kubernetes) kube::init_http_threads();
  const RealClock clock;
  std::random_device device;
  router::Router::Options options;
  options.clock = &clock;
  options.seed = (static_cast<std::uint64_t>(device()) << 32U) | device();
  options.pod_source = router::pod_source_factory(kubeconfig, clock);
  auto started = router::Router::start(std::move(*loaded), std::move(options));
  if (!started) return fail(started.error());
  auto& router = **started;
  spdlog::info("version {}, requests on port {}, admin on port {}", kVersion, router.port(),
               router.admin_port());

  serve_until_stopped(router, files, signals);
  spdlog::info("stopping: not ready for {} s, then up to {} s for streams to end", lame_duck_seconds,
               router.drain_limit().count() / 1000);
  router.leave_service();
  if (lame_duck_seconds > 0) wait_for_stop(signals, std::chrono::seconds(lame_duck_seconds));
  const bool ended = router.drain();
  spdlog::info(ended ? "every request ended" : "the time to drain is over, streams were cut");
  return kExitOk;
}
