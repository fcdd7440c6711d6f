// SPDX-License-Identifier: Apache-2.0
// The times and sizes by which a watcher lives; most are client-go's. Plain values.
#pragma once

#include <chrono>

namespace eldr::kube {

struct WatcherConfig {
  int page_size = 500;  ///< objects a page; halved while pages are too large to hold

  // The wait after the n-th failure in a row is uniform between 0 and min(longest, first * 2^n).
  std::chrono::milliseconds backoff_first{800};
  std::chrono::milliseconds backoff_longest{30'000};
  /// A watch this old resets the backoff.
  std::chrono::milliseconds healthy_after{120'000};
  /// A watch that ends regularly before this counts as a failure.
  std::chrono::milliseconds shortest_good_watch{1'000};

  // timeoutSeconds, after which the server ends a watch, is drawn between these two.
  std::chrono::seconds watch_shortest{300};
  std::chrono::seconds watch_longest{600};
  /// How much longer than that we wait for the server to do it.
  std::chrono::milliseconds idle_margin{30'000};
  /// Once a watch has had a bookmark (they come about once a minute), a silence of this length ends it.
  std::chrono::milliseconds longest_bookmark_gap{180'000};
};

}  // namespace eldr::kube
