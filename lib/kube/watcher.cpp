// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/watcher.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "lib/kube/api_error.h"
#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

using std::chrono::milliseconds;

constexpr int kPatience = 3;

/// One step in the making.
class Stepper {
 public:
  Stepper(const WatcherConfig& config, WatcherState state, Clock::Steady now, double random)
      : config_(config), now_(now), random_(random) {
    step_.state = std::move(state);
    if (step_.state.page_size == 0) {
      step_.state.page_size = config_.page_size;
    }
    fetch();
  }

  WatcherStep take() { return std::move(step_); }

  void operator()(Started&&) { list_from_the_start(""); }

  void operator()(PageArrived&& arrived) {
    WatcherState& state = step_.state;
    ObjectPage& page = arrived.page;
    if (state.phase != WatcherPhase::kListing) {
      return unexpected("a page");
    }
    std::move(page.items.begin(), page.items.end(), std::back_inserter(state.pages));
    state.continue_token = std::move(page.continue_token);
    if (!state.continue_token.empty()) {
      return fetch();
    }
    state.resource_version = std::move(page.resource_version);
    step_.changes.emplace_back(ReplaceAll{std::exchange(state.pages, {})});
    open();
  }

  void operator()(WatchOpened&&) {
    WatcherState& state = step_.state;
    if (state.phase != WatcherPhase::kOpening) {
      return unexpected("a watch");
    }
    state.phase = WatcherPhase::kWatching;
    state.watching_since = now_;
    state.watch_deadline = now_ + state.watch_timeout + config_.idle_margin;
    state.bookmarks_seen = false;
    read_on();
  }

  void operator()(EventArrived&& arrived) {
    WatcherState& state = step_.state;
    if (state.phase != WatcherPhase::kWatching) {
      return unexpected("an event");
    }
    WatchEvent& event = arrived.event;
    if (event.type == WatchEventType::kError) {
      return failed(error_from_status(event.object, "watch"));
    }
    state.resource_version = resource_version_of(event.object);
    state.bookmarks_seen = state.bookmarks_seen || event.type == WatchEventType::kBookmark;
    if (event.type == WatchEventType::kDeleted) {
      step_.changes.emplace_back(Erase{std::move(event.object)});
    } else if (event.type != WatchEventType::kBookmark) {
      step_.changes.emplace_back(Put{std::move(event.object)});
    }
    read_on();
  }

  void operator()(NothingArrived&&) {
    WatcherState& state = step_.state;
    if (state.phase != WatcherPhase::kWatching) {
      return unexpected("silence");
    }
    if (now_ < state.read_deadline) {
      step_.command = ReadWatch{state.read_deadline};
      return;
    }
    failed(Error{Code::kTimeout, "the server has been silent for too long", 0});
  }

  void operator()(WatchEnded&& ended) {
    if (step_.state.phase != WatcherPhase::kWatching) {
      return unexpected("the end of a watch");
    }
    if (ended.cut_off) {
      return failed(Error{Code::kUnavailable, "the watch was cut off in the middle of a line", 0});
    }
    // A server that ends every watch at once must not be asked in a tight loop.
    if (now_ - step_.state.watching_since < config_.shortest_good_watch) {
      return failed(Error{Code::kUnavailable, "the watch ended as soon as it began", 0});
    }
    forgive_if_healthy();
    open();
  }

  void operator()(CallFailed&& call) { failed(call.error); }

  void operator()(WaitOver&&) {
    WatcherState& state = step_.state;
    if (state.phase != WatcherPhase::kBackingOff) {
      return unexpected("the end of a wait");
    }
    if (state.resume == WatcherPhase::kOpening) {
      return open();
    }
    state.phase = WatcherPhase::kListing;  // goes on with the page that failed
    fetch();
  }

 private:
  void list_from_the_start(std::string note) {
    WatcherState& state = step_.state;
    state.phase = WatcherPhase::kListing;
    forget_pages();
    fetch();
    step_.note = std::move(note);
  }

  void forget_pages() {
    step_.state.pages.clear();
    step_.state.continue_token.clear();
  }

  void fetch() { step_.command = FetchPage{step_.state.continue_token, step_.state.page_size}; }

  void open() {
    WatcherState& state = step_.state;
    state.phase = WatcherPhase::kOpening;
    const auto spread = static_cast<double>((config_.watch_longest - config_.watch_shortest).count());
    state.watch_timeout =
        config_.watch_shortest + std::chrono::seconds(static_cast<std::int64_t>(spread * random_));
    step_.command = OpenWatch{state.resource_version, state.watch_timeout};
  }

  /// Bookmarks come about once a minute where there are any. They are not promised; but once this watch has
  /// had one, a long silence means that the connection is half open, and asking again costs nothing.
  void read_on() {
    WatcherState& state = step_.state;
    state.read_deadline = state.watch_deadline;
    if (state.bookmarks_seen) {
      state.read_deadline = std::min(state.read_deadline, now_ + config_.longest_bookmark_gap);
    }
    step_.command = ReadWatch{state.read_deadline};
  }

  void failed(const Error& error) {
    WatcherState& state = step_.state;
    forgive_if_healthy();
    const bool listing = state.phase == WatcherPhase::kListing;
    if (listing && error.code == Code::kResourceExhausted && state.page_size > 1) {
      state.page_size /= 2;
      fetch();
      step_.note = error.to_string() + "; asking for pages of " + std::to_string(state.page_size);
      return;
    }
    if (error.code == Code::kExpired) {
      // The version we would go on from, or the snapshot behind a continue token, is gone. The first relist
      // is at once; when it happens again before a watch was ever well, the backoff applies.
      if (state.failures++ == 0) {
        return list_from_the_start(error.to_string() + "; listing again");
      }
      forget_pages();
      return back_off(WatcherPhase::kListing, error);
    }
    // An error that does not pass by itself may come from where we stand: after a few, start over.
    const bool stuck = !error.retryable() && state.failures >= kPatience;
    if (stuck) {
      forget_pages();
    }
    back_off(listing || stuck ? WatcherPhase::kListing : WatcherPhase::kOpening, error);
  }

  void back_off(WatcherPhase resume, const Error& error) {
    WatcherState& state = step_.state;
    state.phase = WatcherPhase::kBackingOff;
    state.resume = resume;
    const int doublings = std::min(state.failures, 20);
    state.failures = std::min(state.failures + 1, 1000);
    const auto ceiling =
        std::min<milliseconds>(config_.backoff_longest, config_.backoff_first * (1LL << doublings));
    auto wait = std::chrono::duration_cast<milliseconds>(ceiling * random_);  // full jitter
    wait = std::max<milliseconds>(wait, std::chrono::seconds(error.retry_after_seconds));
    step_.command = Wait{wait};
    step_.note = error.to_string() + "; next try in " + std::to_string(wait.count()) + " ms";
  }

  void forgive_if_healthy() {
    WatcherState& state = step_.state;
    if (state.phase == WatcherPhase::kWatching && now_ - state.watching_since >= config_.healthy_after) {
      state.failures = 0;
    }
  }

  /// The driver broke the protocol. Starting over is always right.
  void unexpected(const char* what) {
    list_from_the_start(std::string("unexpected: ") + what + "; listing again");
  }

  const WatcherConfig& config_;
  const Clock::Steady now_;
  const double random_;
  WatcherStep step_;
};

}  // namespace

WatcherStep step(const WatcherConfig& config, WatcherState state, WatcherInput input, Clock::Steady now,
                 double random) {
  Stepper stepper(config, std::move(state), now, random);
  std::visit([&stepper](auto&& happened) { stepper(std::move(happened)); }, std::move(input));
  return stepper.take();
}

}  // namespace eldr::kube
