// SPDX-License-Identifier: Apache-2.0
#include "operator/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/exit_code.h"

namespace eldr::op {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::optional<int> parse(std::vector<const char*> words, Options& options) {
  words.insert(words.begin(), "eldr-operator");
  return parse_options(static_cast<int>(words.size()), words.data(), options);
}

TEST(OperatorOptions, HaveDefaults) {
  Options options;
  ASSERT_EQ(parse({}, options), std::nullopt);
  EXPECT_EQ(options.metrics_address, "127.0.0.1:8080");
  EXPECT_THAT(options.namespaces, IsEmpty());
  EXPECT_FALSE(options.leader_elect);
}

TEST(OperatorOptions, AnEmptyValueIsOneHoweverItIsWritten) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"--metrics-address=", "--namespaces=", "--leader-elect"},
        {"--leader-elect", "--metrics-address", "", "--namespaces", ""},
        {"--leader-elect", "--namespaces=", "--metrics-address="}}) {
    Options options;
    ASSERT_EQ(parse(words, options), std::nullopt);
    EXPECT_EQ(options.metrics_address, "");
    EXPECT_THAT(options.namespaces, IsEmpty());
    EXPECT_TRUE(options.leader_elect);
  }
}

TEST(OperatorOptions, AValueMayEndInAnEqualsSign) {
  Options options;
  ASSERT_EQ(parse({"--router-image=a=", "--leader-elect"}, options), std::nullopt);
  EXPECT_EQ(options.router_image, "a=");
}

TEST(OperatorOptions, TakeNamespacesByCommas) {
  Options options;
  ASSERT_EQ(parse({"--namespaces=a,b", "--workers", "2"}, options), std::nullopt);
  EXPECT_THAT(options.namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(options.workers, 2);
}

TEST(OperatorOptions, AWrongOneIsNamed) {
  for (const auto& [word, named] : {std::pair{"--workers=0", "--workers"},
                                    {"--log-format=xml", "--log-format"},
                                    {"--no-such-option", "--no-such-option"}}) {
    Options options;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(parse({word}, options), kExitUsage);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(named));
  }
}

}  // namespace
}  // namespace eldr::op
