// SPDX-License-Identifier: Apache-2.0
// Fills an OpenSSL context from a Config: whom to trust, and who we are. Called for each new connection, so
// rotated files are picked up on reconnect. Internal to lib/kube.
#pragma once

#include <mutex>
#include <string>

#include "lib/base/status.h"
#include "lib/kube/config.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace eldr::kube {

/// What the last handshakes found wrong, so that an error can say more than "Error in SSL handshake".
/// Thread-safe.
class TlsProblem {
 public:
  void set(std::string text);
  /// The text, which is then forgotten; "" when there is none.
  std::string take();

 private:
  std::mutex mutex_;
  std::string text_;
};

/// Loads the authorities (only the config's own when it names some), the client certificate and the key. A
/// context that this failed for must not be used. `problem` must outlive the context: the verification writes
/// to it.
Status configure_tls(ssl_ctx_st* context, const Config& config, TlsProblem* problem);

}  // namespace eldr::kube
