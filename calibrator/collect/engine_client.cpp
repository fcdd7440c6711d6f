// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/engine_client.h"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace eldr::calibrator {
namespace {

using nlohmann::json;
using Kind = RequestFailure::Kind;

constexpr std::size_t kMaxSmallAnswer = std::size_t{4} << 20U;
constexpr std::chrono::milliseconds kShortTimeout{10000};

tl::unexpected<RequestFailure> request_failure(Kind kind, Code code, std::string message, ExitCode exit) {
  return tl::unexpected<RequestFailure>({kind, {{code, std::move(message), 0}, exit}, false, 0});
}

/// A member of an object, or null.
const json& member(const json& object, const char* name) {
  static const json null;
  if (!object.is_object()) {
    return null;
  }
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

/// vLLM puts the text beside the choice's text; SGLang under meta_info or sgl_ext, of the choice or of the
/// answer.
const std::string* find_routed_experts(const json& answer, const json& choice) {
  for (const json* holder :
       {&choice, &member(choice, "meta_info"), &member(choice, "sgl_ext"), &member(choice, "sglext"),
        &member(answer, "meta_info"), &member(answer, "sgl_ext"), &member(answer, "sglext")}) {
    const json& value = member(*holder, "routed_experts");
    if (value.is_string()) {
      return &value.get_ref<const std::string&>();
    }
  }
  return nullptr;
}

std::string engine_error_text(const std::string& body) {
  const json answer = json::parse(body, nullptr, false);
  const json& error = member(answer, "error");
  for (const json* candidate :
       {&member(error, "message"), &member(answer, "message"), &member(answer, "detail")}) {
    if (candidate->is_string()) {
      return loggable(candidate->get_ref<const std::string&>());
    }
  }
  return "no reason given";
}

RequestFailure failure_of_status(const HttpAnswer& answer) {
  const int status = answer.status;
  const std::string message = fmt::format("engine answered {}: {}", status, engine_error_text(answer.body));
  if (status == 400 || status == 413 || status == 422) {
    return {Kind::kBadPrompt, {{Code::kInvalid, message, 0}, kExitBadData}, false, 0};
  }
  if (status == 429 || status == 408 || status >= 500) {
    return {Kind::kRetry,
            {{Code::kUnavailable, message, 0}, kExitUnavailable},
            status == 429 || status == 503,
            answer.retry_after_seconds};
  }
  return {Kind::kFatal, {{Code::kInvalid, message, 0}, kExitConfig}, false, 0};
}

RequestFailure failure_of_transport(const Error& error) {
  const bool stopped = error.code == Code::kCancelled;
  const bool passing = error.code == Code::kUnavailable || error.code == Code::kTimeout;
  return {stopped   ? Kind::kStopped
          : passing ? Kind::kRetry
                    : Kind::kFatal,
          {error.with_context("engine"), error.code == Code::kInvalid ? kExitConfig : exit_code_for(error)},
          error.code == Code::kTimeout,
          0};
}

}  // namespace

std::string loggable(const std::string& engine_message) {
  constexpr std::size_t kLongest = 200;
  std::string out;
  char quote = '\0';
  for (const char c : engine_message) {
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
        out += "…";
        out += c;
      }
      continue;
    }
    if (c == '\n' || out.size() >= kLongest) {
      break;
    }
    const bool opens = c == '"' || c == '`' ||
                       (c == '\'' && (out.empty() || !std::isalnum(static_cast<unsigned char>(out.back()))));
    if (opens) {
      quote = c;
    }
    out += c >= ' ' ? c : ' ';
  }
  return out;
}

EngineClient::EngineClient(HttpTransport& transport, EngineOptions options)
    : transport_(transport), options_(std::move(options)) {
  while (options_.base_url.ends_with('/')) {
    options_.base_url.pop_back();
  }
}

Status EngineClient::health(const std::stop_token& stop) const {
  const auto answer = transport_.send({.url = options_.base_url + "/health",
                                       .timeout = kShortTimeout,
                                       .max_answer = kMaxSmallAnswer,
                                       .stop = stop});
  if (!answer) {
    return failure(answer.error());
  }
  if (answer->status != 200) {
    return failure(Code::kUnavailable,
                   fmt::format("{}/health: HTTP status {}", options_.base_url, answer->status));
  }
  return {};
}

Outcome EngineClient::check_model(const std::stop_token& stop) const {
  const std::string url = options_.base_url + "/v1/models";
  const auto answer =
      transport_.send({.url = url, .timeout = kShortTimeout, .max_answer = kMaxSmallAnswer, .stop = stop});
  if (!answer) {
    return fail(answer.error().with_context("engine"));
  }
  if (answer->status != 200) {
    const bool passing = answer->status >= 500 || answer->status == 429;
    return fail({passing ? Code::kUnavailable : Code::kInvalid,
                 fmt::format("engine: {}: HTTP status {}", url, answer->status), 0},
                passing ? kExitUnavailable : kExitConfig);
  }
  const json models = json::parse(answer->body, nullptr, false);
  constexpr std::size_t kMostNamed = 10;
  std::size_t named = 0;
  std::string served;
  for (const json& model : member(models, "data")) {
    const json& id = member(model, "id");
    if (!id.is_string()) {
      continue;
    }
    if (id.get_ref<const std::string&>() == options_.model) {
      return {};
    }
    if (++named > kMostNamed) {
      continue;
    }
    served += (served.empty() ? "\"" : ", \"");
    served += id.get_ref<const std::string&>().substr(0, 200);
    served += '"';
  }
  if (named > kMostNamed) {
    served += fmt::format(" and {} more", named - kMostNamed);
  }
  return fail({Code::kInvalid,
               fmt::format("model \"{}\" is not served by the engine at {}; it serves {}", options_.model,
                           options_.base_url, served.empty() ? std::string("nothing") : served),
               0},
              kExitConfig);
}

std::string EngineClient::request_body(const Prompt& prompt) const {
  // The prompt's own fields follow as they are: they never name these (dataset/prompt.cpp).
  std::string body = fmt::format(
      R"({{"model":{},"max_tokens":{},"stream":false,"n":1,"return_routed_experts":true,)",
      json(options_.model).dump(-1, ' ', false, json::error_handler_t::replace), options_.decode_tokens);
  if (prompt.body.find("\"temperature\"") == std::string::npos) {
    body += R"("temperature":0,)";
  }
  body.append(prompt.body, 1);
  return body;
}

tl::expected<RequestCounts, RequestFailure> EngineClient::run(const Prompt& prompt,
                                                              const std::stop_token& stop) const {
  const auto http =
      transport_.send({.method = "POST",
                       .url = options_.base_url +
                              (prompt.kind == PromptKind::kChat ? "/v1/chat/completions" : "/v1/completions"),
                       .body = request_body(prompt),
                       .timeout = options_.request_timeout,
                       .max_answer = kMaxRoutedExpertsText + kMaxSmallAnswer,
                       .stop = stop});
  if (!http) {
    return tl::unexpected(failure_of_transport(http.error()));
  }
  if (http->status != 200) {
    return tl::unexpected(failure_of_status(*http));
  }
  const json answer = json::parse(http->body, nullptr, false);
  const json& choices = member(answer, "choices");
  const json& usage = member(answer, "usage");
  const json& prompt_tokens = member(usage, "prompt_tokens");
  const json& completion_tokens = member(usage, "completion_tokens");
  if (!choices.is_array() || choices.empty() || !prompt_tokens.is_number_unsigned() ||
      !completion_tokens.is_number_unsigned() || prompt_tokens.get<std::uint64_t>() > 0x7FFFFFFF ||
      completion_tokens.get<std::uint64_t>() > 0x7FFFFFFF) {
    return request_failure(Kind::kRetry, Code::kInternal,
                           "engine: the answer is not a completion with choices and usage", kExitUnavailable);
  }
  const std::string* text = find_routed_experts(answer, choices.front());
  if (text == nullptr) {
    return request_failure(
        Kind::kFatal, Code::kInvalid,
        "engine: answers carry no routed_experts; start vLLM (0.22 or later) or SGLang with "
        "--enable-return-routed-experts, and use a mixture-of-experts model",
        kExitConfig);
  }
  const auto routed = decode_routed_experts(*text, prompt_tokens.get<std::uint64_t>(),
                                            completion_tokens.get<std::uint64_t>(), options_.top_k);
  if (!routed) {
    return request_failure(Kind::kFatal, Code::kInvalid, "engine: " + routed.error().message, kExitConfig);
  }
  auto counts = count_experts(*routed, prompt_tokens.get<std::uint32_t>(), options_.keep_decode_experts);
  if (!counts) {
    return request_failure(Kind::kFatal, Code::kInvalid, "engine: " + counts.error().message, kExitConfig);
  }
  return std::move(*counts);
}

}  // namespace eldr::calibrator
