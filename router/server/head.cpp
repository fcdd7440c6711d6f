// SPDX-License-Identifier: Apache-2.0
#include "router/server/head.h"

#include <algorithm>
#include <array>
#include <limits>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace eldr::router {
namespace {

namespace beast_http = boost::beast::http;
namespace asio = boost::asio;

constexpr std::size_t kMaxHeaders = 128;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Runs Beast's parser over a whole head and copies what is common to both directions.
template <bool kIsRequest, class Head>
Status parse(std::string_view text, beast_http::parser<kIsRequest, beast_http::empty_body>& parser,
             Head& head) {
  parser.header_limit(std::numeric_limits<std::uint32_t>::max());  // the caller's buffer is the limit
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  boost::system::error_code error;
  parser.put(asio::buffer(text.data(), text.size()), error);
  if (error) return failure(Code::kInvalid, "not valid HTTP: " + error.message());
  if (!parser.is_header_done()) return failure(Code::kInvalid, "not valid HTTP: the head does not end");
  const auto& message = parser.get();
  head.version = message.version();
  if (head.version != 10 && head.version != 11)
    return failure(Code::kInvalid, "not valid HTTP: version " + std::to_string(head.version / 10) + "." +
                                       std::to_string(head.version % 10) + " is not spoken here");
  bool has_length = false;
  bool has_coding = false;
  for (const auto& field : message) {
    if (head.headers.size() == kMaxHeaders) return failure(Code::kInvalid, "more than 128 headers");
    const auto name = field.name_string();
    const auto value = field.value();
    if (field.name() == beast_http::field::content_length) {
      if (has_length) return failure(Code::kInvalid, "Content-Length given twice");
      has_length = true;
    }
    if (field.name() == beast_http::field::transfer_encoding) {
      if (has_coding || !equals_ignoring_case({value.data(), value.size()}, "chunked"))
        return failure(Code::kInvalid, "Transfer-Encoding: only \"chunked\" is understood");
      has_coding = true;
    }
    head.headers.emplace_back(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  if (has_length && has_coding)
    return failure(Code::kInvalid, "Content-Length and Transfer-Encoding together");
  if (has_coding && head.version == 10)
    return failure(Code::kInvalid, "Transfer-Encoding in an HTTP/1.0 message");
  head.chunked = has_coding;
  if (has_length && parser.content_length()) head.content_length = *parser.content_length();
  head.keep_alive = message.keep_alive();
  return {};
}

/// Folded header lines were a way to smuggle; nobody needs them.
bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

/// Whether a comma-separated list holds `token`.
bool list_has(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    auto item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (equals_ignoring_case(item, token)) return true;
  }
  return false;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

std::size_t end_of_head(std::string_view bytes, std::size_t from) {
  const auto at = bytes.find("\r\n\r\n", from > 3 ? from - 3 : 0);
  return at == std::string_view::npos ? at : at + 4;
}

Result<RequestHead> parse_request_head(std::string_view text) {
  if (has_folded_line(text)) return failure(Code::kInvalid, "not valid HTTP: a folded header line");
  beast_http::request_parser<beast_http::empty_body> parser;
  RequestHead head;
  if (auto status = parse<true>(text, parser, head); !status) return failure(status.error());
  const auto& message = parser.get();
  head.method.assign(message.method_string().data(), message.method_string().size());
  head.target.assign(message.target().data(), message.target().size());
  head.expects_continue = equals_ignoring_case(head.header("Expect"), "100-continue");
  return head;
}

Result<ResponseHead> parse_response_head(std::string_view text) {
  if (has_folded_line(text)) return failure(Code::kInvalid, "not valid HTTP: a folded header line");
  beast_http::response_parser<beast_http::empty_body> parser;
  ResponseHead head;
  if (auto status = parse<false>(text, parser, head); !status) return failure(status.error());
  head.status = static_cast<int>(parser.get().result_int());
  head.reason.assign(parser.get().reason().data(), parser.get().reason().size());
  return head;
}

BodyFraming ResponseHead::framing(bool to_head) const {
  if (to_head || status == 204 || status == 304 || status < 200) return BodyFraming::none();
  if (chunked) return BodyFraming::chunked();
  if (content_length) return BodyFraming::length(*content_length);
  return BodyFraming::until_close();
}

bool is_hop_by_hop(std::string_view name, std::string_view connection) {
  static constexpr std::array<std::string_view, 9> kNames = {"Connection",
                                                             "Keep-Alive",
                                                             "Proxy-Connection",
                                                             "Proxy-Authenticate",
                                                             "Proxy-Authorization",
                                                             "TE",
                                                             "Trailer",
                                                             "Transfer-Encoding",
                                                             "Upgrade"};
  for (const auto hop : kNames)
    if (equals_ignoring_case(name, hop)) return true;
  return !connection.empty() && list_has(connection, name);
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace eldr::router
