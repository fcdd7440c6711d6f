// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/informer.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/base/log.h"
#include "lib/kube/byte_splitter.h"
#include "lib/kube/object.h"
#include "lib/kube/watcher.h"

namespace eldr::kube {
namespace {

using std::chrono::milliseconds;

std::vector<ObjectKey> mapped(const KeyMapper& mapper, const Store::Change& change) {
  std::vector<ObjectKey> keys;
  for (const ObjectPtr& object : {change.before, change.after}) {
    if (object == nullptr) {
      continue;
    }
    for (ObjectKey& key : mapper(*object)) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        keys.push_back(std::move(key));
      }
    }
  }
  return keys;
}

}  // namespace

KeyMapper own_key() {
  return [](const Json& object) { return std::vector<ObjectKey>{key_of(object)}; };
}

KeyMapper controller_key(std::string owner_kind) {
  return [kind = std::move(owner_kind)](const Json& object) {
    std::vector<ObjectKey> keys;
    if (const auto owner = controller_of(object); owner && owner->kind == kind) {
      keys.push_back({object_namespace(object), owner->name});
    }
    return keys;
  };
}

KeyMapper label_key(std::string label) {
  return [label = std::move(label)](const Json& object) {
    std::vector<ObjectKey> keys;
    if (auto value = label_of(object, label); value && !value->empty()) {
      keys.push_back({object_namespace(object), std::move(*value)});
    }
    return keys;
  };
}

struct Informer::Private {
  Private(const Client& client, InformerOptions options, Handler handler, const Clock& clock, Random& random)
      : client(client),
        options(std::move(options)),
        handler(std::move(handler)),
        clock(clock),
        random(random) {}

  const Client& client;
  const InformerOptions options;
  const Handler handler;
  const Clock& clock;
  Random& random;
  Store store;

  mutable std::mutex mutex;
  mutable std::condition_variable_any changed;
  bool synced = false;
  bool stopped = false;
  Status health = failure(Code::kUnavailable, "not started");
  std::jthread thread;

  // The watch in progress; touched by the informer's thread alone.
  std::unique_ptr<WatchStream> stream;
  ByteSplitter splitter;
  std::deque<std::string> lines;
  std::optional<Error> broken;  ///< comes after `lines`

  void run(const std::stop_token& stop) {
    WatcherState state;
    WatcherInput input = Started{};
    while (!stop.stop_requested()) {
      WatcherStep next =
          step(options.watcher, std::move(state), std::move(input), clock.steady(), random.uniform());
      if (!next.note.empty()) {
        spdlog::warn("watch of {}: {}", options.resource.plural, next.note);
      }
      for (CacheChange& change : next.changes) {
        std::visit([this](auto& what) { apply(std::move(what)); }, change);
      }
      state = std::move(next.state);
      input = std::visit([&](const auto& command) { return perform(command, stop); }, next.command);
      note_health(input);
    }
    stream.reset();
    const std::lock_guard lock(mutex);
    stopped = true;
    health = failure(Code::kCancelled, "stopped");
    changed.notify_all();
  }

  // --- what to do to the cache
  void apply(ReplaceAll&& list) {
    for (Json& object : list.objects) {
      strip_managed_fields(object);
    }
    for (const Store::Change& change : store.replace(std::move(list.objects))) {
      tell(change);
    }
    const std::lock_guard lock(mutex);
    synced = true;
    changed.notify_all();
  }
  void apply(Put&& put) {
    strip_managed_fields(put.object);
    const Store::Change change = store.put(std::move(put.object));
    // The server may repeat what the list had.
    if (change.before == nullptr ||
        resource_version_of(*change.before) != resource_version_of(*change.after)) {
      tell(change);
    }
  }
  void apply(Erase&& gone) {
    if (const auto change = store.erase(key_of(gone.object)); change.before != nullptr) {
      tell(change);
    }
  }
  void tell(const Store::Change& change) const {
    for (const ObjectKey& key : mapped(options.mapper, change)) {
      handler(key);
    }
  }

  // --- what to ask of the server
  WatcherInput perform(const FetchPage& fetch, const std::stop_token& stop) {
    stream.reset();
    const ListOptions list{options.label_selector, options.field_selector, fetch.page_size};
    auto page = client.list_page(options.resource, options.ns, list, fetch.continue_token,
                                 {.timeout = {}, .stop = stop});
    if (!page) {
      return CallFailed{page.error()};
    }
    return PageArrived{std::move(*page)};
  }
  WatcherInput perform(const OpenWatch& open, const std::stop_token& stop) {
    stream.reset();
    splitter = ByteSplitter();
    lines.clear();
    broken.reset();
    const WatchOptions watch{options.label_selector, options.field_selector, open.resource_version,
                             open.timeout};
    auto opened = client.watch(options.resource, options.ns, watch, {.timeout = {}, .stop = stop});
    if (!opened) {
      return CallFailed{opened.error()};
    }
    stream = std::move(*opened);
    return WatchOpened{};
  }
  WatcherInput perform(const ReadWatch& read, const std::stop_token&) {
    while (lines.empty()) {
      if (broken) {
        return CallFailed{*std::exchange(broken, std::nullopt)};
      }
      const auto wait = std::chrono::ceil<milliseconds>(read.deadline - clock.steady());
      auto bytes = stream->read(std::max(wait, milliseconds(0)));
      if (!bytes && bytes.error().code == Code::kTimeout) {
        return NothingArrived{};
      }
      if (!bytes) {
        return CallFailed{bytes.error()};
      }
      if (bytes->empty()) {
        return WatchEnded{.cut_off = !splitter.rest().empty()};
      }
      std::vector<std::string> complete;
      if (auto split = splitter.feed(*bytes, complete); !split) {
        broken = split.error();
      }
      lines.insert(lines.end(), std::make_move_iterator(complete.begin()),
                   std::make_move_iterator(complete.end()));
      if (lines.empty() && !broken) {
        return NothingArrived{};  // part of a line: let the state machine look at its deadline
      }
    }
    auto event = parse_watch_line(lines.front());
    lines.pop_front();
    if (!event) {
      return CallFailed{event.error()};
    }
    return EventArrived{std::move(*event)};
  }
  WatcherInput perform(const Wait& wait, const std::stop_token& stop) {
    stream.reset();
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop, wait.duration, [] { return false; });
    return WaitOver{};
  }

  void note_health(const WatcherInput& input) {
    const auto* failed = std::get_if<CallFailed>(&input);
    const bool well =
        std::holds_alternative<WatchOpened>(input) || std::holds_alternative<EventArrived>(input);
    if (failed == nullptr && !well) {
      return;
    }
    const std::lock_guard lock(mutex);
    if (well) {
      health = Status();
    } else {
      health = failure(failed->error);
    }
  }
};

Informer::Informer(const Client& client, InformerOptions options, Handler handler, const Clock& clock,
                   Random& random) {
  if (!options.mapper) {
    options.mapper = own_key();
  }
  private_ = std::make_unique<Private>(client, std::move(options), std::move(handler), clock, random);
}
Informer::~Informer() { stop(); }

void Informer::start() {
  if (!private_->thread.joinable()) {
    private_->thread =
        std::jthread([self = private_.get()](const std::stop_token& stop) { self->run(stop); });
  }
}

void Informer::stop() {
  if (private_->thread.joinable()) {
    private_->thread.request_stop();
    private_->thread.join();
  }
}

bool Informer::has_synced() const {
  const std::lock_guard lock(private_->mutex);
  return private_->synced;
}

bool Informer::wait_for_sync(std::chrono::milliseconds longest) const {
  std::unique_lock lock(private_->mutex);
  private_->changed.wait_for(lock, longest, [this] { return private_->synced || private_->stopped; });
  return private_->synced && !private_->stopped;
}

Status Informer::health() const {
  const std::lock_guard lock(private_->mutex);
  return private_->health;
}

const Store& Informer::store() const { return private_->store; }

}  // namespace eldr::kube
