// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/answers.h"

#include <nlohmann/json.hpp>

#include "lib/base/digest.h"

namespace eldr::sim {
namespace {

using nlohmann::json;

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// A JSON string. Token texts are plain, so the common case costs nothing.
std::string json_string(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E || c == '"' ||
        c == '\\') {
      return dump(json(std::string(text)));
    }
  }
  std::string out = "\"";
  out.append(text).append("\"");
  return out;
}

json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"prompt_tokens_details", nullptr}};
}

}  // namespace

std::string whole_answer(const AnswerHead& head, const std::vector<Choice>& choices, const Usage& usage,
                         const json& kv_transfer_params) {
  const bool chat = head.endpoint == Endpoint::kChat;
  json list = json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    json choice = {{"index", i},
                   {"logprobs", nullptr},
                   {"finish_reason", choices[i].finish_reason},
                   {"stop_reason", nullptr},
                   {"token_ids", nullptr}};
    if (chat) {
      choice["message"] = {{"role", "assistant"},
                           {"content", choices[i].text},
                           {"refusal", nullptr},
                           {"tool_calls", json::array()}};
    } else {
      choice["text"] = choices[i].text;
      choice["prompt_logprobs"] = nullptr;
    }
    if (!choices[i].routed_experts.empty()) {
      choice["routed_experts"] = choices[i].routed_experts;
    }
    list.push_back(std::move(choice));
  }
  // In vLLM's order: readers that splice bytes meet the parameters last, as they would there.
  return "{\"id\":" + json_string(head.id) +
         ",\"object\":" + json_string(chat ? "chat.completion" : "text_completion") +
         ",\"created\":" + std::to_string(head.created) + ",\"model\":" + json_string(head.model) +
         ",\"choices\":" + dump(list) +
         ",\"service_tier\":null,\"system_fingerprint\":null,\"usage\":" + dump(usage_json(usage)) +
         ",\"kv_transfer_params\":" + dump(kv_transfer_params) + "}";
}

EventWriter::EventWriter(const AnswerHead& head) : chat_(head.endpoint == Endpoint::kChat) {
  prefix_ = "data: {\"id\":" + json_string(head.id) + ",\"object\":\"" +
            (chat_ ? "chat.completion.chunk" : "text_completion") +
            "\",\"created\":" + std::to_string(head.created) + ",\"model\":" + json_string(head.model) +
            ",\"choices\":[";
}

std::string EventWriter::opening(std::size_t choice) const {
  if (!chat_) {
    return {};
  }
  return prefix_ + "{\"index\":" + std::to_string(choice) +
         ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}"
         "\n\n";
}

std::string EventWriter::token(std::size_t choice, std::string_view text,
                               std::string_view finish_reason) const {
  std::string event = prefix_;
  event.append("{\"index\":").append(std::to_string(choice));
  event.append(chat_ ? ",\"delta\":{\"content\":" : ",\"text\":")
      .append(json_string(text))
      .append(chat_ ? "}" : "");
  event.append(",\"logprobs\":null,\"finish_reason\":");
  if (finish_reason.empty()) {
    event += "null";
  } else {
    event += json_string(finish_reason);
  }
  event.append(",\"stop_reason\":null}]").append(chat_ ? "}\n\n" : ",\"usage\":null}\n\n");
  return event;
}

std::string EventWriter::usage(const Usage& usage) const {
  return prefix_ + "],\"usage\":" + dump(usage_json(usage)) + "}\n\n";
}

std::string EventWriter::error(const ApiError& error) { return "data: " + error.to_json() + "\n\n"; }

std::string routed_experts_npy(const std::vector<std::uint16_t>& picks, std::size_t layers, std::size_t top_k,
                               std::uint32_t experts) {
  // Format version 1.0: magic, version, length of the header, the header padded so that data begin at a
  // multiple of 64.
  const bool narrow = experts <= 256;
  const std::size_t rows = picks.size() / (layers * top_k);
  std::string header = std::string("{'descr': '") + (narrow ? "|u1" : "<u2") +
                       "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(layers) + ", " + std::to_string(top_k) + "), }";
  constexpr std::size_t kBefore = 10;
  header.append(63 - (kBefore + header.size()) % 64, ' ').append("\n");
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  file += header;
  for (const std::uint16_t id : picks) {
    file += static_cast<char>(id & 0xFFU);
    if (!narrow) {
      file += static_cast<char>(id >> 8U);
    }
  }
  return base64_encode(as_bytes(file));
}

}  // namespace eldr::sim
