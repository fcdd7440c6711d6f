// SPDX-License-Identifier: Apache-2.0
// Lines of a data set: what is accepted is sent as one JSON object that asks for what the collector decides
// and nothing else, whatever the line says.
#include <string>

#include <nlohmann/json.hpp>

#include "calibrator/dataset/prompt.h"
#include "lib/base/digest.h"
#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {
namespace {

using nlohmann::json;

void run(std::span<const std::byte> input) {
  const auto prompt = calibrator::parse_prompt(as_text(input), 1);
  if (!prompt) {
    require(prompt.error().code == Code::kInvalid && !prompt.error().message.empty(),
            "a refusal has a reason");
    return;
  }
  const json body = json::parse(prompt->body, nullptr, false);
  require(body.is_object(), "what is sent is an object");
  const bool chat = prompt->kind == calibrator::PromptKind::kChat;
  require(body.contains(chat ? "messages" : "prompt") && !body.contains(chat ? "prompt" : "messages"),
          "the path fits the body");
  for (const char* decided :
       {"model", "max_tokens", "max_completion_tokens", "stream", "n", "label", "stop"}) {
    require(!body.contains(decided), "the collector decides that");
  }
  require(prompt->label.size() <= 256, "labels are short");
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::string line :
       {R"({"prompt":"hi","label":"code"})", R"({"prompt":[1,2,3],"label":7})",
        R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true,"n":3,"stop":["x"]})",
        R"({"custom_id":"1","url":"/v1/completions","body":{"model":"m","prompt":"hi","label":"b"}})",
        R"({"prompt":"\ud83d\ude00","temperature":0.5})", "[[[[[[]]]]]]"}) {
    const auto view = as_bytes(line);
    all.emplace_back(view.begin(), view.end());
  }
  return all;
}

ELDR_FUZZ_TARGET(prompt, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
