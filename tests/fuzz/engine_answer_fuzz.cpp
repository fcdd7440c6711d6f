// SPDX-License-Identifier: Apache-2.0
// What an engine may answer a completion, a list of models or an error with: counts are whole, or refused
// with a short reason.
#include <string>

#include "calibrator/collect/engine_client.h"
#include "lib/base/digest.h"
#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {
namespace {

/// Answers every call with the same.
class OneAnswer final : public calibrator::HttpTransport {
 public:
  OneAnswer(int status, std::string body) : answer_{status, std::move(body), 0} {}
  Result<calibrator::HttpAnswer> send(const calibrator::HttpCall&) override { return answer_; }

 private:
  calibrator::HttpAnswer answer_;
};

void check(const calibrator::RequestCounts& counts) {
  const std::size_t cells = std::size_t{counts.layers} * counts.width;
  require(counts.prefill.size() == cells && counts.decode.size() == cells, "every layer is there");
  require(counts.prompt_tokens > 0 && counts.top_k > 0 && counts.repeats.size() == counts.layers,
          "the shape is whole");
  require(counts.decode_experts.size() == std::size_t{counts.decode_tokens} * counts.layers * counts.top_k,
          "every decode token is there");
}

void run(std::span<const std::byte> input) {
  const std::string body(as_text(input));
  for (const int status : {200, 400}) {
    OneAnswer transport(status, body);
    const calibrator::EngineClient engine(transport, {.base_url = "http://engine",
                                                      .model = "m",
                                                      .decode_tokens = 3,
                                                      .top_k = 2,
                                                      .keep_decode_experts = true});
    const auto counts = engine.run({.body = R"({"prompt":"hi"})"}, {});
    if (counts) {
      check(*counts);
    } else {
      const std::string& message = counts.error().failure.error.message;
      require(!message.empty() && message.size() < 2000, "a refusal has a short reason");
    }
    const auto served = engine.check_model({});
    require(served || served.error().error.message.size() < 5000, "a list of models is cut");
  }
}

std::vector<Bytes> seeds() {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 2), }";
  header.resize(64, ' ');
  const std::string npy = std::string("\x93NUMPY\x01\x00\x40\x00", 10) + header +
                          std::string("\0\1\1\0\0\1\1\0\0\1\1\0\0\1\1\0", 16);
  const std::string text = base64_encode(as_bytes(npy));
  const std::vector<std::string> answers = {
      R"({"choices":[{"routed_experts":")" + text +
          R"("}],"usage":{"prompt_tokens":2,"completion_tokens":3}})",
      R"({"choices":[{"meta_info":{"routed_experts":"AAAAAAEAAAAAAAAAAQAAAA=="}}],)"
      R"("usage":{"prompt_tokens":2,"completion_tokens":1}})",
      R"({"object":"list","data":[{"id":"m"}]})",
      R"({"error":{"message":"cannot take 'this' \"text\" `here`"}})",
      R"({"choices":{},"usage":[]})",
      "[[[[{}]]]]"};
  std::vector<Bytes> all;
  for (const std::string& answer : answers) {
    const auto view = as_bytes(answer);
    all.emplace_back(view.begin(), view.end());
  }
  return all;
}

ELDR_FUZZ_TARGET(engine_answer, run, seeds);

}  // namespace
}  // namespace eldr::fuzz
