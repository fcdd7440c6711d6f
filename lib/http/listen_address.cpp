// SPDX-License-Identifier: Apache-2.0
#include "lib/http/listen_address.h"

#include <charconv>

#include <arpa/inet.h>

namespace eldr::http {
namespace {

tl::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return failure(Code::kInvalid,
                 "listen address \"" + std::string(text) + "\": " + std::string(why) +
                     "; allowed: ADDRESS:PORT with a numeric address, as 0.0.0.0:8000, [::]:8000 or "
                     ":8000");
}

bool is_numeric(int family, const std::string& address) {
  unsigned char storage[sizeof(in6_addr)];
  return inet_pton(family, address.c_str(), storage) == 1;
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return refuse(text, "no port");
  }
  const std::string_view port_text = text.substr(colon + 1);
  std::string host(text.substr(0, colon));

  ListenAddress parsed;
  const auto [end, ec] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), parsed.port);
  if (ec != std::errc{} || end != port_text.data() + port_text.size()) {
    return refuse(text, "the port is not a number from 0 to 65535");
  }

  if (host.empty()) {
    parsed.address = "0.0.0.0";
  } else if (host == "localhost") {
    parsed.address = "127.0.0.1";
  } else if (host.front() == '[' && host.back() == ']') {
    parsed.address = host.substr(1, host.size() - 2);
    if (!is_numeric(AF_INET6, parsed.address)) {
      return refuse(text, "not an IPv6 address in brackets");
    }
  } else if (is_numeric(AF_INET, host)) {
    parsed.address = host;
  } else {
    return refuse(text, "not a numeric address");
  }
  return parsed;
}

}  // namespace eldr::http
