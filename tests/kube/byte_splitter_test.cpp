// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/byte_splitter.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "lib/kube/watch_event.h"

namespace eldr::kube {
namespace {

using Lines = std::vector<std::string>;

Lines split_in_pieces(const std::string& text, const std::vector<std::size_t>& cuts, std::string& rest) {
  ByteSplitter splitter;
  Lines lines;
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    EXPECT_TRUE(splitter.feed(std::string_view(text).substr(from, cut - from), lines));
    from = cut;
  }
  EXPECT_TRUE(splitter.feed(std::string_view(text).substr(from), lines));
  rest = std::string(splitter.rest());
  return lines;
}

TEST(ByteSplitter, EveryBoundaryGivesTheSameLines) {
  const std::string text = "{\"a\":1}\n{\"b\":\"ü\"}\r\n\n\r\nlast\nrest";
  const Lines expected = {"{\"a\":1}", "{\"b\":\"ü\"}", "last"};
  std::string rest;
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      EXPECT_EQ(split_in_pieces(text, {first, second}, rest), expected) << first << " " << second;
      EXPECT_EQ(rest, "rest");
    }
  }
}

TEST(ByteSplitter, RandomPiecesOfRandomText) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    Lines expected;
    std::string line;
    for (int i = 0; i < 200; ++i) {
      const char c = "ab\n\r{"[random() % 5];
      text += c;
      if (c != '\n') {
        line += c;
        continue;
      }
      if (!line.empty() && line.back() == '\r') {
        line.pop_back();
      }
      if (!line.empty()) {
        expected.push_back(line);
      }
      line.clear();
    }
    std::vector<std::size_t> cuts(random() % 40);
    for (auto& cut : cuts) {
      cut = random() % (text.size() + 1);
    }
    std::sort(cuts.begin(), cuts.end());
    std::string rest;
    EXPECT_EQ(split_in_pieces(text, cuts, rest), expected);
    EXPECT_EQ(rest, line);
  }
}

TEST(ByteSplitter, LineAtTheLimitPassesAndOneMoreByteIsRefused) {
  Lines lines;
  EXPECT_TRUE(ByteSplitter(5).feed("12345\n", lines));
  EXPECT_TRUE(ByteSplitter(5).feed("12345\r\n", lines));
  EXPECT_EQ(lines, (Lines{"12345", "12345"}));
  for (const char* text : {"123456\n", "123456\r\n", "1234567"}) {
    const auto refused = ByteSplitter(5).feed(text, lines);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  }
}

TEST(ByteSplitter, EndlessLineIsRefusedBeforeItIsHeld) {
  ByteSplitter splitter(1000);
  Lines lines;
  const std::string piece(100, 'x');
  Status status;
  int fed = 0;
  while (status && fed < 1000) {
    status = splitter.feed(piece, lines);
    ++fed;
  }
  EXPECT_FALSE(status);
  EXPECT_LE(splitter.rest().size(), 1001U);
}

TEST(WatchLine, KnownTypes) {
  const auto added =
      parse_watch_line(R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}})");
  ASSERT_TRUE(added);
  EXPECT_EQ(added->type, WatchEventType::kAdded);
  EXPECT_EQ(added->object["metadata"]["name"], "a");
  EXPECT_EQ(parse_watch_line(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})")->type,
            WatchEventType::kBookmark);
  EXPECT_EQ(parse_watch_line(R"({"type":"ERROR","object":{"code":410}})")->type, WatchEventType::kError);
}

TEST(WatchLine, WhatIsNoEventIsRefused) {
  for (const char* line :
       {"", "null", "[]", "{", "{}", R"({"type":"ADDED"})", R"({"type":"ADDED","object":[]})",
        R"({"type":"NEW","object":{"metadata":{"name":"a","resourceVersion":"5"}}})",
        R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})",
        R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"5"}}})",
        R"({"type":"BOOKMARK","object":{"metadata":{}}})", R"({"type":7,"object":{}})",
        R"({"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":5}}})"}) {
    const auto refused = parse_watch_line(line);
    ASSERT_FALSE(refused) << line;
    EXPECT_EQ(refused.error().code, Code::kInternal);
  }
}

TEST(WatchLine, EveryTruncationIsRefused) {
  const std::string line = R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}})";
  for (std::size_t length = 0; length < line.size(); ++length) {
    EXPECT_FALSE(parse_watch_line(line.substr(0, length))) << length;
  }
  EXPECT_TRUE(parse_watch_line(line));
}

}  // namespace
}  // namespace eldr::kube
