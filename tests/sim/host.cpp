// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/host.h"

#include <spdlog/spdlog.h>

namespace eldr::sim {

Result<std::unique_ptr<Host>> Host::start(http::ServerOptions server, WorkerOptions options,
                                          const ExpertModel& model, const Clock& clock, WorkerHooks hooks) {
  std::unique_ptr<Host> host(new Host(std::move(server)));
  hooks.refuse_connections = [h = host.get()](std::chrono::milliseconds time) {
    const std::lock_guard lock(h->mutex_);
    h->refuse_for_ = time;
    h->changed_.notify_all();
  };
  host->worker_ = std::make_unique<Worker>(std::move(options), model, clock, std::move(hooks));
  {
    const std::lock_guard lock(host->mutex_);
    if (const Status status = host->listen(); !status) {
      return failure(status.error());
    }
    host->server_options_.port = host->server_->port();
    host->worker_->set_advertise_port(host->server_options_.port);
  }
  host->thread_ = std::thread([h = host.get()] { h->refuse_when_asked(); });
  return host;
}

Host::~Host() { stop(std::chrono::milliseconds(0)); }

Status Host::listen() {
  auto server = http::Server::listen(server_options_,
                                     [this](const http::Request& request, http::ResponseWriter& writer) {
                                       worker_->handle(request, writer);
                                     });
  if (!server) {
    return failure(server.error());
  }
  server_ = std::move(*server);
  return {};
}

// Stopping a server waits for its handlers, one of which asked for this: hence a thread of its own.
void Host::refuse_when_asked() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this] { return stopping_ || refuse_for_.count() > 0; });
    if (stopping_) {
      break;
    }
    const auto time = std::exchange(refuse_for_, std::chrono::milliseconds(0));
    std::unique_ptr<http::Server> server = std::move(server_);
    lock.unlock();
    server->stop(
        std::chrono::milliseconds(100));  // the answer to the fault request goes out; all else is cut
    server.reset();
    lock.lock();
    changed_.wait_for(lock, time, [this] { return stopping_; });
    while (!stopping_) {
      const Status status = listen();
      if (status) {
        break;
      }
      spdlog::warn("cannot listen again: {}", status.error().message);
      changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return stopping_; });
    }
  }
}

void Host::stop(std::chrono::milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
  if (server_) {
    server_->stop(grace);
  }
}

}  // namespace eldr::sim
