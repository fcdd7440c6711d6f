// SPDX-License-Identifier: Apache-2.0
#include "calibrator/dataset/prompt.h"

#include <algorithm>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace eldr::calibrator {
namespace {

using nlohmann::json;

/// What the collector decides, or what would change the shape of the answer.
constexpr std::string_view kDropped[] = {"label",
                                         "model",
                                         "stream",
                                         "stream_options",
                                         "n",
                                         "best_of",
                                         "max_tokens",
                                         "echo",
                                         "max_completion_tokens",
                                         "min_tokens",
                                         "logprobs",
                                         "top_logprobs",
                                         "prompt_logprobs",
                                         "kv_transfer_params",
                                         "stop",
                                         "stop_token_ids",
                                         "ignore_eos",
                                         "suffix",
                                         "store",
                                         "metadata",
                                         "id",
                                         "custom_id"};

/// Whether brackets outside of strings nest deeper than the limit: checked before a parser sees them.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) {
        return true;
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

Status check_prompt(const json& prompt) {
  if (prompt.is_string()) {
    return prompt.get_ref<const std::string&>().empty() ? failure(Code::kInvalid, "prompt: is empty")
                                                        : Status();
  }
  const bool token_ids =
      prompt.is_array() && !prompt.empty() && std::all_of(prompt.begin(), prompt.end(), [](const json& id) {
        return id.is_number_unsigned() && id.get<std::uint64_t>() <= 0x7FFFFFFF;
      });
  if (!token_ids) {
    return failure(Code::kInvalid,
                   fmt::format("prompt: is {}; must be text or a list of token ids (one prompt a line)",
                               prompt.is_array() ? "another list" : prompt.type_name()));
  }
  return {};
}

Status check_messages(const json& messages) {
  if (!messages.is_array() || messages.empty()) {
    return failure(Code::kInvalid, "messages: must be a list with at least one message");
  }
  for (const json& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return failure(Code::kInvalid, "messages: each must be an object with a \"role\"");
    }
  }
  return {};
}

Result<std::string> label_of(const json& object) {
  const auto label = object.find("label");
  if (label == object.end() || label->is_null()) {
    return std::string();
  }
  if (label->is_number_integer()) {
    return label->dump();
  }
  if (!label->is_string() || label->get_ref<const std::string&>().size() > 256) {
    return failure(Code::kInvalid, "label: must be text of at most 256 characters, or a whole number");
  }
  return label->get<std::string>();
}

}  // namespace

Result<Prompt> parse_prompt(std::string_view line, std::uint64_t number) {
  if (line.size() > kMaxLine) {
    return failure(Code::kInvalid, fmt::format("is longer than {} bytes", kMaxLine));
  }
  if (too_deep(line)) {
    return failure(Code::kInvalid, fmt::format("nests deeper than {} levels", kMaxDepth));
  }
  json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  // The parser takes a zero byte for the end of its input, and what follows would go unseen.
  if (object.is_discarded() || line.find('\0') != std::string_view::npos) {
    return failure(Code::kInvalid, "is not JSON (or not UTF-8)");
  }
  if (!object.is_object()) {
    return failure(Code::kInvalid, fmt::format("is {}; must be an object", object.type_name()));
  }
  auto label = label_of(object);
  if (!label) {
    return failure(label.error());
  }
  if (object.contains("body") && object["body"].is_object()) {  // a line of the OpenAI batch format
    json body = std::move(object["body"]);
    if (label->empty()) {
      auto inner = label_of(body);
      if (!inner) {
        return failure(inner.error());
      }
      label = std::move(inner);
    }
    object = std::move(body);
  }
  Prompt prompt{.label = std::move(*label), .line = number};
  const bool has_prompt = object.contains("prompt");
  if (has_prompt == object.contains("messages")) {
    return failure(Code::kInvalid, has_prompt ? "has both \"prompt\" and \"messages\"; one is allowed"
                                              : "has neither \"prompt\" nor \"messages\"");
  }
  prompt.kind = has_prompt ? PromptKind::kCompletion : PromptKind::kChat;
  const Status checked = has_prompt ? check_prompt(object["prompt"]) : check_messages(object["messages"]);
  if (!checked) {
    return failure(checked.error());
  }
  for (const std::string_view name : kDropped) {
    object.erase(std::string(name));
  }
  prompt.body = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return prompt;
}

}  // namespace eldr::calibrator
