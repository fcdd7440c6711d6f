// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/event_recorder.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/base/log.h"
#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

using std::chrono::milliseconds;

constexpr int kTries = 3;
constexpr milliseconds kRetryWait{1'000};
constexpr milliseconds kCallTimeout{10'000};
constexpr milliseconds kFlushPeriod{1'000};

/// At most `bytes`, without half of a UTF-8 character at the end.
std::string cut(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) {
    return text;
  }
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) {
    --bytes;
  }
  text.resize(bytes);
  return text;
}

struct Record {
  ObjectReference regarding;
  EventType type = EventType::kNormal;
  std::string reason, action, note;
  Clock::Wall at;

  /// What makes two events the same but for their time.
  std::string identity() const {
    std::string text;
    for (const std::string* part : {&regarding.api_version, &regarding.kind, &regarding.ns, &regarding.name,
                                    &regarding.uid, &reason, &action, &note}) {
      text += *part;
      text += '\0';
    }
    return text + (type == EventType::kNormal ? 'n' : 'w');
  }
};

struct Series {
  ObjectKey event;  ///< the object that was created for the first of them
  int count = 1;
  Clock::Wall last_at;      ///< of the last repetition
  Clock::Steady last_seen;  ///< the same, for windows
  Clock::Steady last_written;
  bool unwritten = false;  ///< the count has grown since then
};

}  // namespace

ObjectReference reference_to(const Resource& resource, const Json& object) {
  return ObjectReference{resource.api_version(), resource.kind,  object_namespace(object),
                         object_name(object),    uid_of(object), resource_version_of(object)};
}

struct EventRecorder::Private {
  Private(const Client& client, EventRecorderOptions options, const Clock& clock)
      : client(client), options(std::move(options)), clock(clock) {}

  const Client& client;
  const EventRecorderOptions options;
  const Clock& clock;

  mutable std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Record> queue;
  std::uint64_t dropped = 0;
  std::uint64_t written = 0;
  bool finishing = false;  ///< write what is queued, then end

  std::map<std::string, Series> known;  ///< by identity; touched by the thread alone
  std::uint64_t serial = 0;
  std::jthread thread;

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto record = next(stop);
      if (record) {
        handle(*record, stop);
      }
      const bool last = !record && is_finishing();
      write_series(stop, last);
      if (last) {
        return;
      }
    }
  }

  std::optional<Record> next(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop, kFlushPeriod, [this] { return !queue.empty() || finishing; });
    if (queue.empty()) {
      return std::nullopt;
    }
    Record record = std::move(queue.front());
    queue.pop_front();
    return record;
  }
  bool is_finishing() const {
    const std::lock_guard lock(mutex);
    return finishing && queue.empty();
  }

  void handle(const Record& record, const std::stop_token& stop) {
    const auto now = clock.steady();
    std::string identity = record.identity();
    const auto found = known.find(identity);
    if (found != known.end() && now - found->second.last_seen < options.series_window) {
      Series& series = found->second;
      ++series.count;
      series.last_at = record.at;
      series.last_seen = now;
      series.unwritten = true;
      return;  // write_series() writes it when its time has come
    }
    const std::string ns = record.regarding.ns.empty() ? "default" : record.regarding.ns;
    const std::string name = unique_name(record);
    const Json event = event_of(record, name);
    const bool good = attempt([&] { return client.create(kEvents, ns, event, call(stop)); }, stop);
    if (good) {
      make_room();
      known[std::move(identity)] = Series{{ns, name}, 1, record.at, now, now, false};
    }
  }

  /// Writes the counts that are due, and forgets series that have ended.
  void write_series(const std::stop_token& stop, bool all) {
    const auto now = clock.steady();
    for (auto at = known.begin(); at != known.end();) {
      Series& series = at->second;
      const bool over = now - series.last_seen >= options.series_window;
      if (series.unwritten && (all || over || now - series.last_written >= options.series_refresh)) {
        series.unwritten = false;
        series.last_written = now;
        const Json patch = {
            {"series",
             {{"count", series.count}, {"lastObservedTime", format_rfc3339_micro(series.last_at)}}}};
        attempt([&] { return client.patch(kEvents, series.event, PatchType::kMerge, patch, "", call(stop)); },
                stop);
      }
      at = over ? known.erase(at) : std::next(at);
    }
  }

  void make_room() {
    if (known.size() < options.series) {
      return;
    }
    const auto oldest = std::min_element(known.begin(), known.end(), [](const auto& a, const auto& b) {
      return a.second.last_seen < b.second.last_seen;
    });
    known.erase(oldest);
  }

  /// Tries a write a few times when the server is not well. Returns whether it is done; counts it either way.
  template <class Write>
  bool attempt(const Write& write, const std::stop_token& stop) {
    for (int tries = 1;; ++tries) {
      const auto result = write();
      if (result) {
        const std::lock_guard lock(mutex);
        ++written;
        return true;
      }
      const Error& error = result.error();
      const bool again =
          error.code == Code::kUnavailable || error.code == Code::kTimeout || error.code == Code::kThrottled;
      std::unique_lock lock(mutex);
      if (!again || tries == kTries || finishing || stop.stop_requested()) {
        ++dropped;
        lock.unlock();
        spdlog::debug("event dropped: {}", error.to_string());
        return false;
      }
      changed.wait_for(lock, stop,
                       std::max<milliseconds>(kRetryWait, std::chrono::seconds(error.retry_after_seconds)),
                       [this] { return finishing; });
    }
  }

  static CallOptions call(const std::stop_token& stop) { return {.timeout = kCallTimeout, .stop = stop}; }

  std::string unique_name(const Record& record) {
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(record.at.time_since_epoch()).count();
    char suffix[48];
    std::snprintf(suffix, sizeof suffix, ".%llx%llx", static_cast<unsigned long long>(micros),
                  static_cast<unsigned long long>(++serial & 0xFFF));
    return cut(record.regarding.name, 253 - sizeof suffix) + suffix;
  }

  Json event_of(const Record& record, const std::string& name) const {
    Json regarding = {{"apiVersion", record.regarding.api_version},
                      {"kind", record.regarding.kind},
                      {"name", record.regarding.name}};
    for (const auto& [field, value] :
         {std::pair{"namespace", &record.regarding.ns}, std::pair{"uid", &record.regarding.uid},
          std::pair{"resourceVersion", &record.regarding.resource_version}}) {
      if (!value->empty()) {
        regarding[field] = *value;
      }
    }
    return Json{{"metadata", {{"name", name}}},
                {"eventTime", format_rfc3339_micro(record.at)},
                {"reportingController", options.controller},
                {"reportingInstance", cut(options.instance, 128)},
                {"type", record.type == EventType::kNormal ? "Normal" : "Warning"},
                {"reason", record.reason},
                {"action", record.action},
                {"note", record.note},
                {"regarding", regarding}};
  }
};

EventRecorder::EventRecorder(const Client& client, EventRecorderOptions options, const Clock& clock)
    : private_(std::make_unique<Private>(client, std::move(options), clock)) {}

EventRecorder::~EventRecorder() { stop(milliseconds(0)); }

void EventRecorder::start() {
  if (!private_->thread.joinable()) {
    private_->thread =
        std::jthread([self = private_.get()](const std::stop_token& stop) { self->run(stop); });
  }
}

void EventRecorder::stop(milliseconds grace) {
  if (!private_->thread.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(private_->mutex);
    private_->finishing = true;
    private_->changed.notify_all();
  }
  // A watchman ends the thread's calls when the grace is over; it leaves as soon as the thread has ended.
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::jthread watchman([&] {
    std::unique_lock lock(mutex);
    if (!ended.wait_for(lock, grace, [&] { return done; })) {
      private_->thread.request_stop();
    }
  });
  private_->thread.join();
  const std::lock_guard lock(mutex);
  done = true;
  ended.notify_all();
}

void EventRecorder::record(const ObjectReference& regarding, EventType type, const std::string& reason,
                           const std::string& action, const std::string& note) {
  Record record{regarding, type, cut(reason, 128), cut(action, 128), cut(note, 1024), private_->clock.wall()};
  const std::lock_guard lock(private_->mutex);
  if (private_->finishing || private_->queue.size() >= private_->options.queue) {
    ++private_->dropped;
    return;
  }
  private_->queue.push_back(std::move(record));
  private_->changed.notify_all();
}

std::uint64_t EventRecorder::dropped() const {
  const std::lock_guard lock(private_->mutex);
  return private_->dropped;
}

std::uint64_t EventRecorder::written() const {
  const std::lock_guard lock(private_->mutex);
  return private_->written;
}

}  // namespace eldr::kube
