// SPDX-License-Identifier: Apache-2.0
#include "router/server/exchange.h"

#include <algorithm>
#include <cstdio>

#include "router/server/api_error.h"

namespace eldr::router {
namespace {

constexpr std::string_view kCompletions = "/v1/completions";
constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::size_t kMaxRequestId = 128;

bool is_passed_through(std::string_view path) {
  return path.starts_with("/v1/") || path == "/tokenize" || path == "/detokenize";
}

/// 128 random bits as hexadecimal digits.
std::string random_id(std::uint64_t high, std::uint64_t low) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

/// Counts a request in flight while it lives.
class InFlight {
 public:
  explicit InFlight(Metrics& metrics) : metrics_(metrics), now_(++metrics.in_flight) {}
  ~InFlight() { --metrics_.in_flight; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  std::uint64_t now() const { return now_; }

 private:
  Metrics& metrics_;
  std::uint64_t now_;
};

}  // namespace

Exchange::Exchange(ThreadContext& thread, ClientLink& client, RequestHead head)
    : thread_(thread),
      shared_(thread.shared),
      client_(client),
      head_(std::move(head)),
      routing_(shared_.routing.load()),
      workers_(shared_.workers->snapshot()),
      began_(shared_.clock.steady()),
      total_due_(began_ + shared_.timeouts.total),
      wants_debug_(head_.header("X-Eldr-Debug") == "1"),
      keep_alive_(head_.keep_alive) {
  const auto given = head_.header("X-Request-Id");
  request_id_ = given.empty() || given.size() > kMaxRequestId ? random_id(thread_.draw(), thread_.draw())
                                                              : std::string(given);
}

Route Exchange::route() const {
  const auto path = head_.path();
  return path == kCompletions ? Route::kCompletions : path == kChat ? Route::kChat : Route::kOther;
}

Clock::Steady Exchange::due(Milliseconds wait) const {
  return std::min(thread_.deadlines.now() + wait, total_due_);
}

Async<bool> Exchange::run() {
  const InFlight in_flight(shared_.metrics);
  body_read_ = !head_.chunked && head_.content_length.value_or(0) == 0;
  if (in_flight.now() > shared_.limits.in_flight) {
    const std::string message = "the router has as many requests in flight as it may, try again";
    co_await refuse(503, message, Refusal::kInFlight);
  } else {
    co_await serve();
  }
  const std::chrono::duration<double> took = shared_.clock.steady() - began_;
  shared_.metrics.request(route(), status_, took.count());
  co_return keep_alive_&& body_read_;
}

Async<void> Exchange::serve() {
  const auto which = route();
  if (which == Route::kOther && !is_passed_through(head_.path())) {
    const std::string message =
        "no such path here: /v1/completions, /v1/chat/completions, other /v1/ paths, /tokenize";
    co_await refuse(404, message, Refusal::kPath);
    co_return;
  }
  if (which != Route::kOther && head_.method != "POST") {
    const std::string message = "method " + head_.method + " is not allowed here, expected POST";
    co_await refuse(405, message, Refusal::kPath);
    co_return;
  }
  const bool taken = co_await take_body();
  if (!taken) co_return;
  client_.watch();
  if (workers_->decode.empty()) {
    const std::string message = "no decode worker is ready";
    co_await refuse(503, message, Refusal::kNoDecode);
  } else if (which == Route::kOther) {
    co_await pass_through();
  } else {
    const Api api = which == Route::kChat ? Api::kChat : Api::kCompletions;
    co_await complete(api);
  }
}

Async<bool> Exchange::take_body() {
  const auto body_due = due(shared_.timeouts.body);
  const BodyEnd end =
      co_await read_request_body(client_.stream(), head_, shared_.limits.body, body_due, body_);
  client_.stream().deadline().disarm();
  if (end == BodyEnd::kOk) {
    body_read_ = true;
    co_return true;
  }
  if (end == BodyEnd::kGone) {
    keep_alive_ = false;
    co_return false;
  }
  int status = 400;
  std::string message = "the request body is not valid chunked coding";
  Refusal refusal = Refusal::kBody;
  if (end == BodyEnd::kTooLarge) {
    status = 413;
    message = "the request body is larger than " + std::to_string(shared_.limits.body) + " bytes";
    refusal = Refusal::kTooLarge;
  } else if (end == BodyEnd::kTimeout) {
    status = 408;
    message = "the request body did not arrive in time";
    shared_.metrics.deadline(Stage::kBody);
  }
  co_await refuse(status, message, refusal);
  co_return false;
}

Async<void> Exchange::complete(Api api) {
  const auto coding = head_.header("Content-Encoding");
  if (!coding.empty() && !equals_ignoring_case(coding, "identity")) {
    const std::string message =
        "Content-Encoding: \"" + std::string(coding) + "\" is not allowed, expected none";
    co_await refuse(415, message, Refusal::kBody);
    co_return;
  }
  const auto body = JsonObject::scan(body_.view());
  if (!body) {
    const std::string message = "the request body is " + body.error().message;
    co_await refuse(400, message, Refusal::kBadJson);
    co_return;
  }
  const auto shape = read_shape(*body, api);
  if (!shape) {
    const std::string message = shape.error().message;
    co_await refuse(400, message, Refusal::kBadJson);
    co_return;
  }
  Signal signal;
  PrefillAnswer prefilled;
  if (shape->whole != Whole::kNo) {
    signal.reason = Reason::kWhole;
  } else if (workers_->prefill.empty()) {
    if (routing_->config.without_prefill == WithoutPrefill::kRefuse) {
      const std::string message = "no prefill worker is ready";
      co_await refuse(503, message, Refusal::kNoPrefill);
      co_return;
    }
    signal.reason = Reason::kNoPrefill;
  } else {
    const bool ready = co_await prefill(*body, *shape, api, prefilled);
    if (!ready) co_return;
    if (prefilled.transfer.empty())
      signal.reason = Reason::kNoTransfer;
    else
      signal = read_signal(*routing_, prefilled.eldr);
  }
  const SplicedBody spliced = decode_body(*body, prefilled.transfer);
  co_await decode(spliced.pieces(), spliced.size(), signal);
}

Async<void> Exchange::pass_through() {
  Signal signal;
  signal.reason = Reason::kWhole;
  std::vector<std::string_view> pieces;
  if (body_.size() > 0) pieces.push_back(body_.view());
  co_await decode(pieces, body_.size(), signal);
}

std::string Exchange::request_head(std::string_view authority, std::size_t body_size, Role role) const {
  std::string text;
  text.reserve(512);
  text.append(head_.method).append(" ").append(head_.target).append(" HTTP/1.1\r\n");
  append_header(text, "Host", authority);
  append_header(text, "X-Request-Id", request_id_);
  if (body_size > 0 || head_.method == "POST" || head_.method == "PUT")
    append_header(text, "Content-Length", std::to_string(body_size));
  const auto connection = head_.header("Connection");
  for (const auto& [name, value] : head_.headers) {
    if (is_hop_by_hop(name, connection) || equals_ignoring_case(name, "Host") ||
        equals_ignoring_case(name, "X-Request-Id") || equals_ignoring_case(name, "Content-Length") ||
        equals_ignoring_case(name, "Expect"))
      continue;
    // The prefill answer is read here, so it must come as it is.
    if (role == Role::kPrefill && equals_ignoring_case(name, "Accept-Encoding")) continue;
    append_header(text, name, value);
  }
  text += "\r\n";
  return text;
}

}  // namespace eldr::router
