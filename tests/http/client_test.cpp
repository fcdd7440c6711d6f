// SPDX-License-Identifier: Apache-2.0
#include "lib/http/client.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "lib/http/server.h"

namespace eldr::http {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Server> serve(Handler handler) {
  auto server = Server::listen({}, std::move(handler));
  EXPECT_TRUE(server);
  return std::move(*server);
}

TEST(Client, SendsHeadersAndBody) {
  auto server = serve([](const Request& request, ResponseWriter& writer) {
    (void)writer.respond(201, "text/plain", std::string(request.header("x-one")) + "|" + request.body,
                         {{"X-Two", "2"}});
  });
  const auto answer = fetch({"127.0.0.1", server->port(), "POST", "/", {{"X-One", "1"}}, "body"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->header("x-two"), "2");
  EXPECT_EQ(answer->body, "1|body");
}

TEST(Client, HandsOverChunksAsTheyArrive) {
  std::atomic<bool> seen_first{false};
  auto server = serve([&](const Request&, ResponseWriter& writer) {
    (void)writer.start(200, "text/event-stream");
    (void)writer.write("one");
    for (int i = 0; i < 500 && !seen_first; ++i) {
      std::this_thread::sleep_for(10ms);
    }
    (void)writer.write(seen_first ? "two" : "too late");
    (void)writer.finish();
  });
  std::string got;
  const auto answer = fetch({"127.0.0.1", server->port()}, {}, [&](std::string_view piece) {
    got += piece;
    seen_first = true;
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(got, "onetwo");
}

TEST(Client, TellsApartRefusedCutOffLateAndTooLarge) {
  std::uint16_t closed_port = 0;
  {
    closed_port = serve([](const Request&, ResponseWriter&) {})->port();
  }
  EXPECT_EQ(fetch({"127.0.0.1", closed_port}).error().code, Code::kUnavailable);

  auto server = serve([](const Request& request, ResponseWriter& writer) {
    if (request.path == "/cut") {
      (void)writer.start(200, "text/plain");
      (void)writer.write("half");
      writer.abort();
    } else if (request.path == "/large") {
      (void)writer.respond(200, "text/plain", std::string(1000, 'x'));
    } else {
      while (!writer.client_gone()) {
        std::this_thread::sleep_for(5ms);
      }
    }
  });
  const auto code_of = [&](const char* path) {
    return fetch({"127.0.0.1", server->port(), "GET", path}, {200ms, 999}).error().code;
  };
  EXPECT_EQ(code_of("/cut"), Code::kUnavailable);
  EXPECT_EQ(code_of("/large"), Code::kResourceExhausted);
  EXPECT_EQ(code_of("/late"), Code::kTimeout);
}

TEST(Client, StopsWhenTheSinkHangsUp) {
  auto server = serve([](const Request&, ResponseWriter& writer) {
    (void)writer.start(200, "text/plain");
    while (writer.write("tick\n")) {
      std::this_thread::sleep_for(5ms);
    }
  });
  const auto answer = fetch({"127.0.0.1", server->port()}, {}, [](std::string_view) { return false; });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kCancelled);
}

TEST(Client, RefusesHeadersThatWouldSplitTheRequest) {
  const auto answer = fetch({"127.0.0.1", 1, "GET", "/", {{"X", "a\r\nY: b"}}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace eldr::http
