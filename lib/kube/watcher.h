// SPDX-License-Identifier: Apache-2.0
// How a cache follows a resource: LIST in pages, WATCH from the list's resource version, list again when that
// is too old, back off when things fail. A state machine without I/O, clock or threads: step() takes the
// configuration, the state and what just happened, and says the next state, what to do to the cache, and what
// to ask of the server next. informer.h drives it. Pure functions; thread-safe.
//
//            ┌────────────── Expired (410) ───────────────┐
//            v                                            │
//   kListing ── last page ──> kOpening ── stream ──> kWatching
//      │  ^                     │  ^                    │
//    error└── wait over ─┐    error└── wait over ─┐   broken, cut off, bad line
//      v                 │      v                 │     v
//   kBackingOff ─────────┴── kBackingOff ─────────┴── kBackingOff        (regular end of a watch: kOpening at
//   once)
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/watch_event.h"
#include "lib/kube/watcher_config.h"

namespace eldr::kube {

enum class WatcherPhase {
  kListing,     ///< fetching pages of a list
  kOpening,     ///< has a resource version, asks for a watch from there
  kWatching,    ///< reads events
  kBackingOff,  ///< waits, then goes to `resume`
};

struct WatcherState {
  WatcherPhase phase = WatcherPhase::kListing;
  WatcherPhase resume = WatcherPhase::kListing;  ///< after kBackingOff
  std::vector<Json> pages;                       ///< kListing: items so far
  std::string continue_token;                    ///< kListing: of the next page
  int page_size = 0;                             ///< kListing: of the next page; 0: the configuration's
  std::string resource_version;                  ///< of the last event or list seen
  int failures = 0;                              ///< in a row, the exponent of the backoff
  std::chrono::seconds watch_timeout{0};         ///< kOpening, kWatching: what the server was asked for
  Clock::Steady watching_since{};                ///< kWatching
  Clock::Steady watch_deadline{};                ///< kWatching: when the server should long have ended it
  Clock::Steady read_deadline{};                 ///< kWatching: when silence becomes a failure
  bool bookmarks_seen = false;                   ///< kWatching: on this watch
};

// What happened.
struct Started {};
struct PageArrived {
  ObjectPage page;
};
struct WatchOpened {};
struct EventArrived {
  WatchEvent event;
};
struct NothingArrived {};  ///< a read timed out
struct WatchEnded {
  bool cut_off = false;  ///< in the middle of a line
};
struct CallFailed {
  Error error;  ///< of the list, of opening the watch, of reading it or of a line that is no event
};
struct WaitOver {};
using WatcherInput = std::variant<Started, PageArrived, WatchOpened, EventArrived, NothingArrived, WatchEnded,
                                  CallFailed, WaitOver>;

// What to do to the cache, in order.
struct ReplaceAll {
  std::vector<Json> objects;  ///< whatever is not among them is gone
};
struct Put {
  Json object;
};
struct Erase {
  Json object;  ///< its last state
};
using CacheChange = std::variant<ReplaceAll, Put, Erase>;

// What to ask next.
struct FetchPage {
  std::string continue_token;
  int page_size = 0;
};
struct OpenWatch {
  std::string resource_version;
  std::chrono::seconds timeout;
};
struct ReadWatch {
  Clock::Steady deadline;  ///< give up on a silent server then
};
struct Wait {
  std::chrono::milliseconds duration;
};
using WatcherCommand = std::variant<FetchPage, OpenWatch, ReadWatch, Wait>;

struct WatcherStep {
  WatcherState state;
  std::vector<CacheChange> changes;
  WatcherCommand command;
  std::string note;  ///< for the log: why it relists, reconnects or waits; "" when all goes as usual
};

/// `random` is uniform in [0, 1): for the backoff's jitter and the watch's length.
WatcherStep step(const WatcherConfig& config, WatcherState state, WatcherInput input, Clock::Steady now,
                 double random);

}  // namespace eldr::kube
