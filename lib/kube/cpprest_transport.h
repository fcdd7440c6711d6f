// SPDX-License-Identifier: Apache-2.0
// The Transport on cpprestsdk. All that is known to be weak in that library is handled in the one .cpp behind
// this header: no total deadline, misleading timeout texts, unbounded buffering, dead pooled connections, a
// thread pool sized at first use. No type of it leaves that file.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/kube/config.h"
#include "lib/kube/transport.h"

namespace eldr::kube {

/// Starts the HTTP library's threads. Call once, first in main(), before any other thread exists; destroy all
/// transports before main returns.
void init_http_threads();

struct CpprestOptions {
  std::string user_agent = "eldr";         ///< "eldr-operator/0.1.0"
  std::chrono::seconds token_refresh{60};  ///< how long a read token file is believed
  std::size_t stream_buffer = std::size_t{1}
                              << 20;  ///< bytes of a watch held unread before the server is slowed
};

/// `clock` must outlive the transport. Fails with kInvalid when the config's address is not one; certificates
/// are read anew for each connection, so rotated files need no restart.
Result<std::unique_ptr<Transport>> make_cpprest_transport(Config config, CpprestOptions options,
                                                          const Clock& clock);

}  // namespace eldr::kube
