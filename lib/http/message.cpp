// SPDX-License-Identifier: Apache-2.0
#include "lib/http/message.h"

#include <algorithm>
#include <ostream>

#include <boost/beast/http/status.hpp>

namespace eldr::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

// RFC 9110, section 5.6.2.
bool is_token_char(char c) {
  const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_value_char(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u == '\t' || (u >= 0x20 && u != 0x7F);
}

}  // namespace

std::string_view find_header(const Headers& headers, std::string_view name) {
  const auto it =
      std::find_if(headers.begin(), headers.end(), [&](const auto& h) { return same_name(h.first, name); });
  return it == headers.end() ? std::string_view{} : std::string_view{it->second};
}

bool is_valid_header(std::string_view name, std::string_view value) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_token_char) &&
         std::all_of(value.begin(), value.end(), is_value_char);
}

std::string_view reason_of(int status) {
  if (status < 100 || status > 999) {
    return "Unknown";
  }
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(static_cast<unsigned>(status)));
  return reason == "<unknown-status>" ? std::string_view("Unknown")
                                      : std::string_view(reason.data(), reason.size());
}

}  // namespace eldr::http
