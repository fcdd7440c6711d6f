// SPDX-License-Identifier: Apache-2.0
// Bodies and answers as the router meets them: what a strict parser takes, the byte scanner takes, with the
// same members; an edit of bytes equals the edit of the parsed document; chunk framing does not depend on
// where the network cuts.
#include <string>

#include <nlohmann/json.hpp>

#include "lib/base/digest.h"
#include "router/protocol/legs.h"
#include "router/server/framing.h"
#include "router/server/head.h"
#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {
namespace {

using namespace router;
using nlohmann::json;

/// Depth counts brackets whether they pair or not: an upper bound.
bool within_limits(std::string_view text) {
  std::size_t open = 0;
  std::size_t colons = 0;
  for (const char c : text) {
    open += c == '{' || c == '[' ? 1 : 0;
    colons += c == ':' ? 1 : 0;
  }
  return open < kMaxJsonDepth && colons < kMaxJsonMembers;
}

void check_bodies(std::string_view text, const JsonObject& object, const json& document) {
  for (const auto api : {Api::kCompletions, Api::kChat}) {
    const auto prefill = json::parse(prefill_body(object, api, "[1,2]").to_string(), nullptr, false);
    require(prefill.is_object(), "a prefill body is an object");
    require(prefill["max_tokens"] == 1 && prefill["stream"] == false, "a prefill body is capped");
    require(!prefill.contains("min_tokens") && !prefill.contains("stream_options"),
            "nothing contradicts the cap");
    static_cast<void>(read_shape(object, api));
  }
  const auto decode = decode_body(object, R"({"a":1})");
  auto expected = document;
  expected["kv_transfer_params"] = json{{"a", 1}};
  require(json::parse(decode.to_string(), nullptr, false) == expected,
          "a decode body is the original and a transfer");
  require(decode.size() <= text.size() + 40, "a decode body grows by the transfer only");
}

void check_json(std::string_view text) {
  const auto object = JsonObject::scan(text);
  const auto document = json::parse(text, nullptr, false);
  // The strict parser takes a zero byte for the end of its input, and what follows goes unseen.
  const bool all_seen = text.find('\0') == std::string_view::npos;
  if (document.is_object() && within_limits(text) && all_seen) {
    require(object.has_value(), "what a strict parser takes is taken");
    check_bodies(text, *object, document);
  } else if (object) {
    // Nested nonsense is the worker's to refuse; the edits must still be possible.
    static_cast<void>(prefill_body(*object, Api::kChat, "").to_string());
    static_cast<void>(decode_body(*object, "").to_string());
  }
  if (const auto answer = read_prefill_answer(text); answer && document.is_object() && answer->eldr) {
    const auto transfer = json::parse(answer->transfer, nullptr, false);
    require(transfer.is_object() && !transfer.contains("eldr"), "our key does not go on");
  }
  static_cast<void>(read_eldr_counts(text));
}

void check_framing(std::string_view text) {
  auto whole = BodyFraming::chunked();
  std::vector<std::string_view> payload;
  const auto at_once = whole.feed(text, &payload);
  auto cut = BodyFraming::chunked();
  std::size_t consumed = 0;
  bool malformed = false;
  for (std::size_t i = 0; i < text.size() && !cut.done() && !malformed; ++i) {
    const auto step = cut.feed(text.substr(i, 1));
    consumed += step.consumed;
    malformed = step.malformed;
  }
  require(cut.done() == whole.done() && malformed == at_once.malformed && consumed == at_once.consumed,
          "framing does not depend on where bytes are cut");
}

void run(std::span<const std::byte> input) {
  const auto text = as_text(input);
  check_json(text);
  check_framing(text);
  static_cast<void>(parse_request_head(text));
  static_cast<void>(parse_response_head(text));
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (
      const std::string_view text :
      {std::string_view(
           R"({"prompt":"a \"b\" \\","max_tokens":5,"stream":true,"stream_options":{"include_usage":true}})"),
       std::string_view(
           R"({ "m\u0061x_tokens" : 1 , "min_tokens":2,"min_tokens":3,"messages":[{"content":"x"}] })"),
       std::string_view(
           R"({"kv_transfer_params":{"eldr":{"v":1,"experts":2,"layers":[0],"dtype":"u16","counts":"AQACAA==","tokens":3,"counted":3},"b":[1]}})"),
       std::string_view(
           R"({"v":1,"experts":2,"layers":[0],"dtype":"u16","counts":"AQACAA==","tokens":3,"counted":3})"),
       std::string_view("5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n"),
       std::string_view("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"),
       std::string_view("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    const auto bytes = as_bytes(text);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

ELDR_FUZZ_TARGET(router_protocol, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
