// SPDX-License-Identifier: Apache-2.0
// Heads of HTTP/1.x messages: parsed by Boost.Beast's strict parser (which stays in head.cpp), written as
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/status.h"
#include "lib/http/message.h"
#include "router/server/framing.h"

namespace eldr::router {

struct RequestHead {
  std::string method;
  std::string target;
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  unsigned version = 11;  ///< 10 or 11
  http::Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;

  std::string_view header(std::string_view name) const { return http::find_header(headers, name); }
  BodyFraming framing() const {
    return chunked ? BodyFraming::chunked() : BodyFraming::length(content_length.value_or(0));
  }
};

struct ResponseHead {
  int status = 0;
  std::string reason;
  unsigned version = 11;
  http::Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;

  /// `to_head`: the answer to a HEAD request, which has no body whatever its headers say.
  BodyFraming framing(bool to_head) const;
};

/// One past the blank line that ends a head, or npos. `from`: where the last search left off.
std::size_t end_of_head(std::string_view bytes, std::size_t from);

/// `head` up to and with its blank line. kInvalid: not HTTP/1.x, folded lines, conflicting lengths, a
/// transfer coding other than chunked.
Result<RequestHead> parse_request_head(std::string_view head);
Result<ResponseHead> parse_response_head(std::string_view head);

/// Whether a header belongs to one connection only (RFC 9110, 7.6.1) and is not relayed. `connection` is the
/// message's Connection header, which may name more.
bool is_hop_by_hop(std::string_view name, std::string_view connection);

/// Appends "name: value\r\n".
void append_header(std::string& head, std::string_view name, std::string_view value);

bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace eldr::router
