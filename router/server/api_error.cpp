// SPDX-License-Identifier: Apache-2.0
#include "router/server/api_error.h"

#include "router/protocol/json_members.h"
#include "router/server/head.h"

namespace eldr::router {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 404:
      return "not_found_error";
    case 408:
    case 504:
      return "timeout_error";
    case 429:
    case 503:
      return "overloaded_error";
    case 502:
      return "upstream_error";
    default:
      return status < 500 ? "invalid_request_error" : "internal_error";
  }
}

}  // namespace

std::string error_body(int status, std::string_view message) {
  std::string body = R"({"error":{"message":)";
  body += quote_json(message);
  body += R"(,"type":")";
  body += type_of(status);
  body += R"(","param":null,"code":)";
  body += std::to_string(status);
  body += "}}";
  return body;
}

std::string error_answer(int status, std::string_view message, bool keep_alive, const http::Headers& extra) {
  const std::string body = error_body(status, message);
  std::string answer = "HTTP/1.1 " + std::to_string(status) + " ";
  answer.append(http::reason_of(status)).append("\r\n");
  append_header(answer, "Content-Type", "application/json");
  append_header(answer, "Content-Length", std::to_string(body.size()));
  for (const auto& [name, value] : extra) append_header(answer, name, value);
  append_header(answer, "Connection", keep_alive ? "keep-alive" : "close");
  answer += "\r\n";
  answer += body;
  return answer;
}

}  // namespace eldr::router
