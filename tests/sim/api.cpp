// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/api.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/sim/tokens.h"

namespace eldr::sim {
namespace {

using nlohmann::json;

tl::unexpected<ApiError> bad(std::string message, std::string param = {}) {
  return tl::unexpected<ApiError>({400, "BadRequestError", std::move(message), std::move(param)});
}

tl::expected<json, ApiError> parse_object(std::string_view body) {
  json parsed = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    return bad("[{'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error', 'input': {}}]");
  }
  if (!parsed.is_object()) {
    return bad(
        "[{'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'Input should be a valid dictionary'}]");
  }
  return parsed;
}

// The field, or null where it is absent: the API treats both alike.
const json& field(const json& object, const char* name) {
  static const json kNull;
  const auto it = object.find(name);
  return it == object.end() ? kNull : *it;
}

tl::expected<std::optional<std::int64_t>, ApiError> integer(const json& object, const char* name) {
  const json& value = field(object, name);
  if (value.is_null()) {
    return std::nullopt;
  }
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
    return bad(std::string("[{'type': 'int_type', 'loc': ('body', '") + name +
                   "'), 'msg': 'Input should be a valid integer'}]",
               name);
  }
  return value.get<std::int64_t>();
}

tl::expected<bool, ApiError> boolean(const json& object, const char* name) {
  const json& value = field(object, name);
  if (value.is_null()) {
    return false;
  }
  if (!value.is_boolean()) {
    return bad(std::string("[{'type': 'bool_type', 'loc': ('body', '") + name +
                   "'), 'msg': 'Input should be a valid boolean'}]",
               name);
  }
  return value.get<bool>();
}

bool is_id_list(const json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const json& id) { return id.is_number_unsigned(); });
}

Prompt prompt_of(std::string text) {
  Prompt prompt{std::move(text), {}};
  prompt.tokens = tokenize(prompt.text);
  return prompt;
}

Prompt prompt_of_ids(const json& ids) {
  Prompt prompt;
  for (const json& id : ids) {
    prompt.tokens.push_back(static_cast<std::uint32_t>(id.get<std::uint64_t>()));
    prompt.text += std::to_string(prompt.tokens.back()) + " ";
  }
  return prompt;
}

tl::expected<std::vector<Prompt>, ApiError> completion_prompts(const json& body) {
  const json& value = field(body, "prompt");
  std::vector<Prompt> prompts;
  if (value.is_string()) {
    prompts.push_back(prompt_of(value.get<std::string>()));
  } else if (is_id_list(value)) {
    prompts.push_back(prompt_of_ids(value));
  } else if (value.is_array() && !value.empty() && value.size() <= kMostChoices) {
    for (const json& one : value) {
      if (one.is_string()) {
        prompts.push_back(prompt_of(one.get<std::string>()));
      } else if (is_id_list(one)) {
        prompts.push_back(prompt_of_ids(one));
      } else {
        return bad("prompt: every entry must be a string or a list of token ids", "prompt");
      }
    }
  } else {
    return bad("Either prompt or prompt_embeds must be provided and non-empty.", "prompt");
  }
  for (const Prompt& prompt : prompts) {
    if (prompt.text.empty()) {
      return bad("The decoder prompt cannot be empty", "prompt");
    }
  }
  return prompts;
}

// The text of a message's content: a string, or the text parts of a list.
std::string content_text(const json& content) {
  if (content.is_string()) {
    return content.get<std::string>();
  }
  std::string text;
  if (content.is_array()) {
    for (const json& part : content) {
      if (part.is_object() && field(part, "text").is_string()) {
        text += field(part, "text").get<std::string>();
      }
    }
  }
  return text;
}

tl::expected<Prompt, ApiError> chat_prompt(const json& body) {
  const json& messages = field(body, "messages");
  if (!messages.is_array() || messages.empty()) {
    return bad("[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]", "messages");
  }
  std::string text;
  for (const json& message : messages) {
    if (!message.is_object() || !field(message, "role").is_string()) {
      return bad("[{'type': 'missing', 'loc': ('body', 'messages', 'role'), 'msg': 'Field required'}]",
                 "messages");
    }
    text += "<|" + field(message, "role").get<std::string>() + "|>\n" +
            content_text(field(message, "content")) + "\n";
  }
  return prompt_of(text + "<|assistant|>\n");
}

KvParams kv_params(const json& params) {
  KvParams kv;
  if (!params.is_object()) {
    return kv;
  }
  const auto flag = [&](const char* name) {
    return field(params, name).is_boolean() && field(params, name).get<bool>();
  };
  const auto text = [&](const char* name) {
    return field(params, name).is_string() ? field(params, name).get<std::string>() : std::string();
  };
  kv.do_remote_decode = flag("do_remote_decode");
  kv.do_remote_prefill = flag("do_remote_prefill");
  kv.remote_engine_id = text("remote_engine_id");
  kv.remote_request_id = text("remote_request_id");
  kv.remote_host = text("remote_host");
  const json& port = field(params, "remote_port");
  kv.remote_port =
      port.is_number_unsigned() && port.get<std::uint64_t>() <= UINT16_MAX ? port.get<std::uint16_t>() : 0;
  kv.complete = !kv.remote_engine_id.empty() && !kv.remote_request_id.empty() && !kv.remote_host.empty() &&
                kv.remote_port != 0 && field(params, "remote_block_ids").is_array();
  const json& eldr = field(params, "eldr");
  kv.has_eldr = params.contains("eldr");
  if (eldr.is_object() && field(eldr, "layers").is_array()) {
    for (const json& layer : field(eldr, "layers")) {
      if (layer.is_number_integer()) {
        kv.eldr_layers.push_back(layer.get<std::int64_t>());
      }
    }
  }
  return kv;
}

tl::expected<void, ApiError> read_lengths(const json& body, GenerationRequest& request) {
  const bool chat = request.endpoint == Endpoint::kChat;
  auto max_tokens = integer(body, "max_tokens");
  if (chat && !field(body, "max_completion_tokens").is_null()) {
    max_tokens = integer(body, "max_completion_tokens");
  }
  const auto min_tokens = integer(body, "min_tokens");
  const auto n = integer(body, "n");
  for (const auto& value : std::vector{max_tokens, min_tokens, n}) {
    if (!value) {
      return tl::unexpected<ApiError>(value.error());
    }
  }
  if (*max_tokens) {
    if (**max_tokens < 1) {
      return bad("max_tokens must be at least 1, got " + std::to_string(**max_tokens) + ".", "max_tokens");
    }
    request.max_tokens = static_cast<std::uint32_t>(std::min<std::int64_t>(**max_tokens, UINT32_MAX));
  } else if (!chat) {
    request.max_tokens = 16;  // the API's default for completions
  }
  const std::int64_t least = min_tokens->value_or(0);
  if (least < 0) {
    return bad("min_tokens must be greater than or equal to 0, got " + std::to_string(least) + ".",
               "min_tokens");
  }
  if (request.max_tokens && least > *request.max_tokens) {
    return bad("min_tokens must be less than or equal to max_tokens=" + std::to_string(*request.max_tokens) +
                   ", got " + std::to_string(least) + ".",
               "min_tokens");
  }
  request.min_tokens = static_cast<std::uint32_t>(std::min<std::int64_t>(least, UINT32_MAX));
  const std::int64_t choices = n->value_or(1);
  if (choices < 1 || static_cast<std::size_t>(choices) * request.prompts.size() > kMostChoices) {
    return bad("n must be at least 1 and, times the prompts, at most " + std::to_string(kMostChoices) +
                   ", got " + std::to_string(choices) + ".",
               "n");
  }
  request.n = static_cast<std::uint32_t>(choices);
  return {};
}

tl::expected<void, ApiError> read_flags(const json& body, GenerationRequest& request) {
  for (const auto& [name, target] : {std::pair{"stream", &request.stream}, std::pair{"echo", &request.echo},
                                     std::pair{"ignore_eos", &request.ignore_eos}}) {
    const auto value = boolean(body, name);
    if (!value) {
      return tl::unexpected<ApiError>(value.error());
    }
    *target = *value;
  }
  const json& options = field(body, "stream_options");
  if (!options.is_null()) {
    if (!request.stream) {
      return bad("Stream options can only be defined when `stream=True`.", "stream_options");
    }
    const auto usage =
        options.is_object() ? boolean(options, "include_usage") : bad("stream_options must be an object");
    if (!usage) {
      return tl::unexpected<ApiError>(usage.error());
    }
    request.include_usage = *usage;
  }
  return {};
}

}  // namespace

std::string ApiError::to_json() const {
  const json error = {{"message", message},
                      {"type", type},
                      {"param", param.empty() ? json(nullptr) : json(param)},
                      {"code", status}};
  return json{{"error", error}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

ApiError internal_server_error() { return {500, "InternalServerError", "Internal server error", ""}; }

tl::expected<GenerationRequest, ApiError> parse_generation(Endpoint endpoint, std::string_view body) {
  const auto parsed = parse_object(body);
  if (!parsed) {
    return tl::unexpected<ApiError>(parsed.error());
  }
  GenerationRequest request;
  request.endpoint = endpoint;
  const json& model = field(*parsed, "model");
  if (!model.is_null() && !model.is_string()) {
    return bad("[{'type': 'string_type', 'loc': ('body', 'model'), 'msg': 'Input should be a valid string'}]",
               "model");
  }
  request.model = model.is_string() ? model.get<std::string>() : "";
  if (endpoint == Endpoint::kChat) {
    auto prompt = chat_prompt(*parsed);
    if (!prompt) {
      return tl::unexpected<ApiError>(prompt.error());
    }
    request.prompts.push_back(std::move(*prompt));
  } else {
    auto prompts = completion_prompts(*parsed);
    if (!prompts) {
      return tl::unexpected<ApiError>(prompts.error());
    }
    request.prompts = std::move(*prompts);
  }
  if (const auto ok = read_lengths(*parsed, request); !ok) {
    return tl::unexpected<ApiError>(ok.error());
  }
  if (const auto ok = read_flags(*parsed, request); !ok) {
    return tl::unexpected<ApiError>(ok.error());
  }
  request.kv = kv_params(field(*parsed, "kv_transfer_params"));
  return request;
}

tl::expected<Prompt, ApiError> parse_tokenize(std::string_view body) {
  const auto parsed = parse_object(body);
  if (!parsed) {
    return tl::unexpected<ApiError>(parsed.error());
  }
  if (parsed->contains("messages")) {
    return chat_prompt(*parsed);
  }
  const json& prompt = field(*parsed, "prompt");
  if (!prompt.is_string()) {
    return bad("[{'type': 'missing', 'loc': ('body', 'prompt'), 'msg': 'Field required'}]", "prompt");
  }
  return prompt_of(prompt.get<std::string>());
}

}  // namespace eldr::sim
