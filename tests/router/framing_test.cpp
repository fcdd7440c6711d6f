// SPDX-License-Identifier: Apache-2.0
#include "router/server/framing.h"

#include <string>

#include <gtest/gtest.h>

namespace eldr::router {
namespace {

struct Fed {
  std::string payload;
  std::size_t consumed = 0;
  bool malformed = false;
  bool done = false;
};

/// Feeds `bytes` in pieces of `step`.
Fed feed(BodyFraming framing, std::string_view bytes, std::size_t step) {
  Fed fed;
  std::vector<std::string_view> pieces;
  while (!bytes.empty() && !framing.done()) {
    const auto now = bytes.substr(0, step);
    pieces.clear();
    const auto result = framing.feed(now, &pieces);
    for (const auto piece : pieces) fed.payload += piece;
    fed.consumed += result.consumed;
    if (result.malformed) {
      fed.malformed = true;
      return fed;
    }
    bytes.remove_prefix(now.size());
  }
  fed.done = framing.done();
  return fed;
}

TEST(Framing, ChunksEndWhereTheyEndHoweverTheyArrive) {
  const std::string body =
      "5\r\nhello\r\nA;name=\"v\"\r\n0123456789\r\n1\r\n\n\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n";
  for (std::size_t step = 1; step <= body.size() + 4; ++step) {
    const auto fed = feed(BodyFraming::chunked(), body + "NEXT", step);
    EXPECT_TRUE(fed.done) << step;
    EXPECT_EQ(fed.consumed, body.size()) << step;
    EXPECT_EQ(fed.payload, "hello0123456789\n") << step;
  }
}

TEST(Framing, WhatIsNotChunkedCodingIsRefused) {
  for (const std::string body : {"\r\n", "x\r\n", "-1\r\n", "5\nhello", "5\r\nhelloX", "5\r\nhello\rX",
                                 "1\r\na\r\n0\r\n\rX", "5 ; \n", "FFFFFFFFFFFFF\r\n", "0\r\nA: b\n\r\n"})
    EXPECT_TRUE(feed(BodyFraming::chunked(), body, body.size()).malformed) << body;
  EXPECT_TRUE(feed(BodyFraming::chunked(), "1;" + std::string(5000, 'x'), 100).malformed);
  EXPECT_TRUE(feed(BodyFraming::chunked(), "0\r\nA: " + std::string(20000, 'x'), 100).malformed);
}

TEST(Framing, AnUnfinishedBodyIsNotDone) {
  for (const std::string body : {"", "5", "5\r\n", "5\r\nhel", "5\r\nhello\r\n", "0\r\n", "0\r\n\r"}) {
    const auto fed = feed(BodyFraming::chunked(), body, 1);
    EXPECT_FALSE(fed.done) << body;
    EXPECT_FALSE(fed.malformed) << body;
  }
}

TEST(Framing, ALengthTakesThatManyBytes) {
  const auto fed = feed(BodyFraming::length(5), "helloNEXT", 3);
  EXPECT_TRUE(fed.done);
  EXPECT_EQ(fed.payload, "hello");
  EXPECT_EQ(fed.consumed, 5U);
  EXPECT_TRUE(BodyFraming::none().done());
}

TEST(Framing, UntilCloseTakesAll) {
  const auto fed = feed(BodyFraming::until_close(), "anything", 3);
  EXPECT_FALSE(fed.done);
  EXPECT_EQ(fed.payload, "anything");
}

}  // namespace
}  // namespace eldr::router
