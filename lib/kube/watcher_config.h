// SPDX-License-Identifier: Apache-2.0
// The times by which a watcher lives; the defaults are client-go's. Plain values.
#pragma once

#include <chrono>

namespace eldr::kube {

struct WatcherConfig {
  std::chrono::milliseconds backoff_first{800};
  std::chrono::milliseconds backoff_longest{30'000};
  std::chrono::milliseconds healthy_after{120'000};  ///< a watch this old resets the backoff
  std::chrono::seconds watch_shortest{300};          ///< timeoutSeconds is drawn between these two
  std::chrono::seconds watch_longest{600};
  std::chrono::milliseconds idle_margin{
      30'000};  ///< how much longer than timeoutSeconds we wait for the server
};

}  // namespace eldr::kube
