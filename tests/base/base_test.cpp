// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/base/clock.h"
#include "lib/base/command_line.h"
#include "lib/base/digest.h"
#include "lib/base/exit_code.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/base/version.h"

namespace eldr {
namespace {

TEST(Status, ContextKeepsTheCodeAndComesFirst) {
  const Error error{Code::kThrottled, "slow down", 3};
  const Error more = error.with_context("list pods");
  EXPECT_EQ(more.to_string(), "Throttled: list pods: slow down");
  EXPECT_EQ(more.retry_after_seconds, 3);
  EXPECT_TRUE(more.retryable());
  EXPECT_FALSE((Error{Code::kInvalid, "no", 0}).retryable());
}

TEST(CommandLine, AnEmptyValueIsAWordOfItsOwn) {
  const std::vector<const char*> words = {"program", "--a=", "--b", "", "--c=d=", "e=", "--"};
  EXPECT_EQ(words_last_first(static_cast<int>(words.size()), words.data()),
            (std::vector<std::string>{"--", "e=", "--c=d=", "", "--b", "", "--a"}));
  EXPECT_EQ(words_last_first(1, words.data()), std::vector<std::string>{});
}

TEST(ExitCode, DeterministicFailuresAreTheOnesThatAJobMustNotRetry) {
  EXPECT_EQ(exit_code_for({Code::kInvalid, "", 0}), kExitBadData);
  EXPECT_EQ(exit_code_for({Code::kNotFound, "", 0}), kExitNoInput);
  EXPECT_EQ(exit_code_for({Code::kUnavailable, "", 0}), kExitUnavailable);
  EXPECT_EQ(exit_code_for({Code::kThrottled, "", 0}), kExitTryAgain);
}

TEST(Digest, Sha256OfKnownText) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, Base64RoundTripsEveryLength) {
  for (std::size_t length = 0; length < 70; ++length) {
    std::string text(length, '\0');
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>(i * 37 + length);
    const auto back = base64_decode(base64_encode(as_bytes(text)), length);
    ASSERT_TRUE(back.has_value()) << length << ": " << back.error().to_string();
    EXPECT_EQ(as_text(*back), text);
  }
}

TEST(Digest, Base64RefusesWhatIsNotExactlyBase64) {
  for (const char* bad : {"A", "AAA", "AA=A", "AAAA\n", " AAAA", "AA-_", "AAAA====", "A==="}) {
    EXPECT_FALSE(base64_decode(bad, 100).has_value()) << bad;
  }
}

TEST(Digest, Base64HoldsItsLimit) {
  const std::string text = base64_encode(as_bytes(std::string(1000, 'x')));
  EXPECT_EQ(base64_decode(text, 999).error().code, Code::kResourceExhausted);
  EXPECT_EQ(base64_decode(text, 10).error().code, Code::kResourceExhausted);
  EXPECT_TRUE(base64_decode(text, 1000).has_value());
}

TEST(ClockTest, FormatsAsKubernetesDoes) {
  const auto time = Clock::Wall(std::chrono::microseconds(1764466314123456));
  EXPECT_EQ(format_rfc3339(time), "2025-11-30T01:31:54Z");
  EXPECT_EQ(format_rfc3339_micro(time), "2025-11-30T01:31:54.123456Z");
}

TEST(Log, RefusesUnknownFormatAndLevel) {
  EXPECT_NE(init_logging("t", "xml", "info").error().message.find("text or json"), std::string::npos);
  EXPECT_NE(init_logging("t", "text", "loud").error().message.find("\"loud\""), std::string::npos);
}

TEST(Log, JsonEscapesTheMessage) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(init_logging("t", "json", "info").has_value());
  spdlog::info("a \"quoted\"\nline");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find(R"("msg":"a \"quoted\"\nline"})"), std::string::npos) << line;
}

TEST(Version, IsSet) { EXPECT_STRNE(kVersion, ""); }

}  // namespace
}  // namespace eldr
