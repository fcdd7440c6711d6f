// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/request_shape.h"

#include <string>

namespace eldr::router {
namespace {

/// The member's value, empty when it is absent or null.
std::string_view value_of(const JsonObject& body, std::string_view name) {
  const auto* member = body.find(name);
  if (member == nullptr) return {};
  const auto raw = body.raw_value(*member);
  return kind_of(raw) == JsonKind::kNull ? std::string_view{} : raw;
}

tl::unexpected<Error> wrong(std::string_view name, std::string_view raw, std::string_view allowed) {
  std::string shown = raw.size() <= 40 ? std::string(raw) : std::string(raw.substr(0, 1)) + "...";
  return failure(Code::kInvalid,
                 std::string(name) + ": " + shown + " is not allowed, expected " + std::string(allowed));
}

/// An integer member, `otherwise` when absent.
Result<std::int64_t> integer(const JsonObject& body, std::string_view name, std::int64_t otherwise) {
  const auto raw = value_of(body, name);
  if (raw.empty()) return otherwise;
  const auto value = integer_of(raw);
  if (!value) return wrong(name, raw, "an integer");
  return *value;
}

Result<bool> boolean(const JsonObject& body, std::string_view name) {
  const auto raw = value_of(body, name);
  if (raw.empty()) return false;
  const auto kind = kind_of(raw);
  if (kind != JsonKind::kTrue && kind != JsonKind::kFalse) return wrong(name, raw, "true or false");
  return kind == JsonKind::kTrue;
}

/// "text", ["text"], [1, 2], [[1, 2]] are one prompt; ["a", "b"], [[1], [2]] are several.
Result<bool> has_many_prompts(std::string_view prompt) {
  if (prompt.empty() || kind_of(prompt) != JsonKind::kArray) return false;
  std::string_view first;
  const auto count = count_elements(prompt, 2, &first);
  if (!count) return failure(count.error());
  const bool token_ids = kind_of(first) == JsonKind::kNumber;
  return *count > 1 && !token_ids;
}

Result<Whole> read_whole(const JsonObject& body, Api api) {
  if (api == Api::kCompletions) {
    const auto many = has_many_prompts(value_of(body, "prompt"));
    if (!many) return failure(many.error());
    if (*many) return Whole::kManyPrompts;
  }
  for (const auto* name : {"n", "best_of"}) {
    const auto choices = integer(body, name, 1);
    if (!choices) return failure(choices.error());
    if (*choices > 1) return Whole::kSeveralChoices;
  }
  const auto beam = boolean(body, "use_beam_search");
  if (!beam) return failure(beam.error());
  if (*beam) return Whole::kSeveralChoices;
  const auto echo = boolean(body, "echo");
  if (!echo) return failure(echo.error());
  const bool echoed_logprobs = *echo && !value_of(body, "logprobs").empty();
  if (echoed_logprobs || !value_of(body, "prompt_logprobs").empty()) return Whole::kPromptLogprobs;
  return Whole::kNo;
}

}  // namespace

std::string_view name_of(Whole whole) {
  switch (whole) {
    case Whole::kNo:
      return "";
    case Whole::kManyPrompts:
      return "many_prompts";
    case Whole::kSeveralChoices:
      return "several_choices";
    case Whole::kPromptLogprobs:
      return "prompt_logprobs";
  }
  return "";
}

Result<RequestShape> read_shape(const JsonObject& body, Api api) {
  RequestShape shape;
  const auto stream = boolean(body, "stream");
  if (!stream) return failure(stream.error());
  shape.stream = *stream;
  const auto whole = read_whole(body, api);
  if (!whole) return failure(whole.error());
  shape.whole = *whole;
  shape.prompt = value_of(body, api == Api::kChat ? "messages" : "prompt");
  return shape;
}

}  // namespace eldr::router
