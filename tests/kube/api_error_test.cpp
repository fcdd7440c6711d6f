// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/api_error.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/kube/fake_api_server.h"

namespace eldr::kube {
namespace {

using testing::status_response;

TEST(ApiError, ReasonDecidesBeforeTheStatus) {
  EXPECT_EQ(error_from_response(status_response(409, "AlreadyExists", "x"), "w").code, Code::kAlreadyExists);
  EXPECT_EQ(error_from_response(status_response(409, "Conflict", "x"), "w").code, Code::kConflict);
  EXPECT_EQ(error_from_response(status_response(410, "Expired", "x"), "w").code, Code::kExpired);
  EXPECT_EQ(error_from_response(status_response(410, "Gone", "x"), "w").code, Code::kExpired);
  EXPECT_EQ(error_from_response(status_response(504, "Timeout", "x"), "w").code, Code::kTimeout);
  EXPECT_EQ(error_from_response(status_response(500, "ServerTimeout", "x"), "w").code, Code::kTimeout);
}

TEST(ApiError, StatusDecidesWhereTheReasonIsUnknownOrTheBodyIsNoStatus) {
  const std::pair<int, Code> cases[] = {
      {400, Code::kInvalid},     {401, Code::kUnauthorized}, {403, Code::kForbidden},
      {404, Code::kNotFound},    {405, Code::kInvalid},      {408, Code::kTimeout},
      {409, Code::kConflict},    {410, Code::kExpired},      {413, Code::kInvalid},
      {422, Code::kInvalid},     {429, Code::kThrottled},    {500, Code::kUnavailable},
      {502, Code::kUnavailable}, {503, Code::kUnavailable},  {504, Code::kTimeout},
      {301, Code::kInternal},
  };
  for (const auto& [status, code] : cases) {
    EXPECT_EQ(error_from_response(status_response(status, "Strange", "x"), "w").code, code) << status;
    EXPECT_EQ(error_from_response({status, "<html>oops</html>", 0}, "w").code, code) << status;
    EXPECT_EQ(error_from_response({status, "", 0}, "w").code, code) << status;
    EXPECT_EQ(error_from_response({status, R"({"kind":"Status","reason":7,"message":[]})", 0}, "w").code,
              code);
  }
}

TEST(ApiError, MessageSaysWhatWasTriedAndEveryCause) {
  const HttpResponse response{422,
                              R"({"kind":"Status","code":422,"reason":"Invalid","message":"Job is invalid",
          "details":{"causes":[{"field":"spec.a","message":"must be set"},{"field":"spec.b","message":"too long"}]}})",
                              0};
  const Error error = error_from_response(response, "create jobs ns/x");
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_EQ(error.message, "create jobs ns/x: Job is invalid; spec.a: must be set; spec.b: too long");
}

TEST(ApiError, RetryAfterComesFromHeaderOrDetails) {
  HttpResponse response = status_response(429, "TooManyRequests", "slow down");
  EXPECT_EQ(error_from_response(response, "w").retry_after_seconds, 0);
  response.retry_after_seconds = 4;
  EXPECT_EQ(error_from_response(response, "w").retry_after_seconds, 4);
  response.body =
      R"({"kind":"Status","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":9}})";
  EXPECT_EQ(error_from_response(response, "w").retry_after_seconds, 9);
  response.body = R"({"kind":"Status","code":429,"details":{"retryAfterSeconds":99999999999}})";
  EXPECT_EQ(error_from_response(response, "w").retry_after_seconds, 3600);
}

TEST(ApiError, LongMessagesAreCut) {
  const Error error =
      error_from_response(status_response(500, "InternalError", std::string(100'000, 'x')), "w");
  EXPECT_LT(error.message.size(), 3000U);
}

}  // namespace
}  // namespace eldr::kube
