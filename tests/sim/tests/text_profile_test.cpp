// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/text_profile.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

#include "tests/sim/tests/prompt_files.h"
#include "tests/sim/tokens.h"

namespace eldr::sim {
namespace {

// Share of prompts of a label that are told to be of the domain.
std::map<std::string, double> share_told(const std::vector<testing::LabelledPrompt>& prompts,
                                         const std::map<std::string, std::string>& domain_of_label) {
  std::map<std::string, double> right;
  std::map<std::string, double> all;
  for (const auto& p : prompts) {
    const auto it = domain_of_label.find(p.label);
    if (it != domain_of_label.end()) {
      ++all[p.label];
      right[p.label] += name_of(profile_of(p.prompt).domain) == it->second ? 1 : 0;
    }
  }
  for (auto& [label, n] : right) {
    n /= all[label];
  }
  return right;
}

TEST(TextProfile, TellsTheDomainsOfTheProjectsPrompts) {
  const auto prompts = testing::read_prompts("generate.py", 1200, 5);
  ASSERT_EQ(prompts.size(), 1200U);
  const auto shares =
      share_told(prompts, {{"code", "code"}, {"math", "math"}, {"medical", "medical"}, {"legal", "legal"}});
  ASSERT_EQ(shares.size(), 4U);
  for (const auto& [label, share] : shares) {
    EXPECT_GE(share, 0.97) << label;
  }
  std::map<std::string_view, int> languages;
  for (const auto& p : prompts) {
    ++languages[name_of(profile_of(p.prompt).language)];
  }
  for (const char* language : {"en", "de", "fr"}) {
    EXPECT_NEAR(languages[language], 400, 12) << language;
  }
}

TEST(TextProfile, TellsTheDomainsOfRealPrompts) {
  if (std::getenv("ELDR_REAL_DATA") == nullptr) {
    GTEST_SKIP() << "ELDR_REAL_DATA is not set";
  }
  const auto prompts = testing::read_prompts("real.py", 1500, 1);
  ASSERT_GT(prompts.size(), 1000U);
  const auto shares = share_told(prompts, {{"code", "code"},
                                           {"math", "math"},
                                           {"math-de", "math"},
                                           {"math-fr", "math"},
                                           {"math-zh", "math"},
                                           {"math-ru", "math"},
                                           {"math-ja", "math"}});
  ASSERT_EQ(shares.size(), 7U);
  for (const auto& [label, share] : shares) {
    EXPECT_GE(share, 0.95) << label;
  }
  std::map<std::string, std::map<std::string_view, int>> languages;
  for (const auto& p : prompts) {
    ++languages[p.label][name_of(profile_of(p.prompt).language)];
  }
  for (const char* language : {"de", "fr", "zh", "ru", "ja"}) {
    auto& told = languages[std::string("math-") + language];
    int all = 0;
    for (const auto& [name, n] : told) {
      all += n;
    }
    EXPECT_GE(told[language], 0.95 * all) << language;
  }
}

TEST(TextProfile, KnowsScripts) {
  EXPECT_EQ(profile_of("Сколько яблок осталось у Маши, если было 5?").language, Language::kRu);
  EXPECT_EQ(profile_of("小明有5个苹果，他吃了2个，还剩多少？").language, Language::kZh);
  EXPECT_EQ(profile_of("りんごが5個あります。2個食べると残りはいくつですか？").language, Language::kJa);
  EXPECT_EQ(profile_of("").domain, Domain::kGeneral);
  EXPECT_EQ(profile_of("\xff\xfe\x80").language, Language::kOther);
}

TEST(Tokens, AreAboutFourLettersLongAndDeterministic) {
  const std::string text = "Write a function that returns the sum of a list.";
  const auto tokens = tokenize(text);
  EXPECT_EQ(tokens, tokenize(text));
  EXPECT_GT(tokens.size(), text.size() / 6);
  EXPECT_LT(tokens.size(), text.size() / 2);
  EXPECT_EQ(tokenize("").size(), 1U);
  EXPECT_EQ(tokenize("日本語").size(), 3U);
  EXPECT_FALSE(tokenize("\xe6").empty());
}

}  // namespace
}  // namespace eldr::sim
