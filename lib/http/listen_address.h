// SPDX-License-Identifier: Apache-2.0
// Addresses to listen on, as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/status.h"

namespace eldr::http {

struct ListenAddress {
  std::string address;  ///< numeric IPv4 or IPv6, without brackets
  std::uint16_t port = 0;
};

/// "0.0.0.0:8000", "[::]:8000", ":8000" (every IPv4 address), "localhost:8000" (127.0.0.1), "127.0.0.1:0" (a
/// free port). kInvalid names the value and what is allowed.
Result<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace eldr::http
