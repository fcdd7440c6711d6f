// SPDX-License-Identifier: Apache-2.0
#include "router/server/head.h"

#include <gtest/gtest.h>

namespace eldr::router {
namespace {

TEST(RequestHead, IsParsed) {
  const auto head = parse_request_head(
      "POST /v1/completions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n");
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->path(), "/v1/completions");
  EXPECT_EQ(head->content_length, 12U);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_TRUE(head->expects_continue);
  EXPECT_EQ(head->header("hOST"), "a");
}

TEST(RequestHead, LargeBodiesAreTheCallersBusiness) {
  EXPECT_TRUE(parse_request_head("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"));
}

TEST(RequestHead, WhatCouldBeReadInTwoWaysIsRefused) {
  for (const std::string headers :
       {"Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length: x\r\n",
        "Content-Length: -1\r\n", "A: b\r\n folded\r\n", "A : b\r\n", "bad header\r\n"})
    EXPECT_FALSE(parse_request_head("POST / HTTP/1.1\r\n" + headers + "\r\n")) << headers;
  EXPECT_FALSE(parse_request_head("GET / HTTP/2.0\r\n\r\n"));
  EXPECT_FALSE(parse_request_head("GET /\r\n\r\n"));
  EXPECT_FALSE(parse_request_head("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

TEST(RequestHead, KeepAliveFollowsTheVersion) {
  EXPECT_FALSE(parse_request_head("GET / HTTP/1.0\r\n\r\n")->keep_alive);
  EXPECT_TRUE(parse_request_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")->keep_alive);
  EXPECT_FALSE(parse_request_head("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")->keep_alive);
}

TEST(ResponseHead, FramesItsBody) {
  EXPECT_TRUE(parse_response_head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                  ->framing(false)
                  .is_chunked());
  EXPECT_EQ(parse_response_head("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")->framing(false).remaining(),
            7U);
  EXPECT_TRUE(parse_response_head("HTTP/1.1 200 OK\r\n\r\n")->framing(false).is_until_close());
  EXPECT_TRUE(parse_response_head("HTTP/1.1 204 No Content\r\n\r\n")->framing(false).done());
  EXPECT_TRUE(parse_response_head("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")->framing(true).done());
}

TEST(EndOfHead, IsFoundFromWhereTheLastSearchStopped) {
  const std::string text = "GET / HTTP/1.1\r\n\r\nrest";
  for (std::size_t from = 0; from <= 17; ++from) EXPECT_EQ(end_of_head(text, from), 18U) << from;
  EXPECT_EQ(end_of_head("GET / HTTP/1.1\r\n\r", 0), std::string_view::npos);
}

TEST(HopByHop, IncludesWhatConnectionNames) {
  EXPECT_TRUE(is_hop_by_hop("keep-alive", ""));
  EXPECT_TRUE(is_hop_by_hop("Transfer-Encoding", ""));
  EXPECT_TRUE(is_hop_by_hop("X-Mine", "close, x-mine"));
  EXPECT_FALSE(is_hop_by_hop("X-Mine", "close, x-mine-too"));
  EXPECT_FALSE(is_hop_by_hop("Authorization", "close"));
}

}  // namespace
}  // namespace eldr::router
