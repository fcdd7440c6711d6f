// SPDX-License-Identifier: Apache-2.0
#include "lib/http/server.h"

#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/http/client.h"
#include "tests/http/raw_connection.h"

namespace eldr::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::RawConnection;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /hello?a=b HTTP/1.1\r\nHost: x\r\n\r\n";

void echo(const Request& request, ResponseWriter& writer) {
  (void)writer.respond(200, "text/plain",
                       request.method + " " + request.path + " " + request.query + " " + request.body);
}

std::unique_ptr<Server> serve(Handler handler, ServerOptions options = {}) {
  auto server = Server::listen(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  return std::move(*server);
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within = 5s) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

TEST(Server, AnswersAndKeepsTheConnection) {
  auto server = serve(echo);
  RawConnection connection(server->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(connection.send(kGet));
    const std::string answer = connection.read_until("a=b ");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\nGET /hello a=b "));
  }
  EXPECT_EQ(server->connections(), 1U);
}

TEST(Server, ServesPipelinedRequestsInOrder) {
  auto server = serve(echo);
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const std::string answers = connection.read_to_end();
  EXPECT_TRUE(connection.ended());
  EXPECT_LT(answers.find("GET /1"), answers.find("GET /2"));
  EXPECT_THAT(answers, HasSubstr("GET /2"));
}

TEST(Server, HonoursConnectionCloseAndHttp10) {
  auto server = serve(echo);
  for (const char* text :
       {"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawConnection connection(server->port());
    ASSERT_TRUE(connection.send(text));
    EXPECT_THAT(connection.read_to_end(), HasSubstr("Connection: close"));
    EXPECT_TRUE(connection.ended());
  }
}

TEST(Server, AnswersHeadWithoutABody) {
  auto server = serve(echo);
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const std::string answer = connection.read_to_end();
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(Server, ReadsChunkedBodiesAndExpectContinue) {
  auto server = serve(echo);
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"));
  EXPECT_THAT(connection.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue\r\n\r\n"));
  ASSERT_TRUE(connection.send("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"));
  EXPECT_THAT(connection.read_until("abcde"), HasSubstr("POST /  abcde"));
}

TEST(Server, WritesChunksOneByOne) {
  auto server = serve([](const Request&, ResponseWriter& writer) {
    EXPECT_TRUE(writer.start(200, "text/event-stream", {{"X-Request-Id", "7"}}));
    EXPECT_TRUE(writer.write("data: 1\n\n"));
    EXPECT_TRUE(writer.write("data: 22\n\n"));
    EXPECT_TRUE(writer.finish());
    EXPECT_EQ(writer.write("late").error().code, Code::kInvalid);
    EXPECT_EQ(writer.respond(200, "", "").error().code, Code::kInvalid);
  });
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(kGet));
  EXPECT_THAT(connection.read_until("0\r\n\r\n"),
              HasSubstr("X-Request-Id: 7\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\na\r\ndata: "
                        "22\n\n\r\n0\r\n\r\n"));
}

TEST(Server, StreamsToHttp10UntilClose) {
  auto server = serve([](const Request&, ResponseWriter& writer) {
    (void)writer.start(200, "text/plain");
    (void)writer.write("ab");
    (void)writer.write("cd");
    (void)writer.finish();
  });
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_THAT(connection.read_to_end(), ::testing::EndsWith("\r\n\r\nabcd"));
  EXPECT_TRUE(connection.ended());
}

TEST(Server, RefusesHeadersThatWouldSplitTheAnswer) {
  auto server = serve([](const Request&, ResponseWriter& writer) {
    EXPECT_EQ(writer.respond(200, "text/plain", "x", {{"X", "a\r\nSet-Cookie: b"}}).error().code,
              Code::kInvalid);
    EXPECT_EQ(writer.respond(200, "text/plain", "x", {{"X Y", "a"}}).error().code, Code::kInvalid);
  });
  const auto answer = fetch({"127.0.0.1", server->port()});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);  // nothing was sent, so the server says that the handler failed
}

TEST(Server, TurnsAFailedHandlerInto500AndABrokenStreamIntoAnEndedConnection) {
  auto server = serve([](const Request& request, ResponseWriter& writer) {
    if (request.path == "/stream") {
      (void)writer.start(200, "text/plain");
      (void)writer.write("part");
    }
    throw std::runtime_error("boom");
  });
  EXPECT_EQ(fetch({"127.0.0.1", server->port(), "GET", "/"})->status, 500);
  EXPECT_EQ(fetch({"127.0.0.1", server->port(), "GET", "/stream"}).error().code, Code::kUnavailable);
  EXPECT_EQ(fetch({"127.0.0.1", server->port(), "GET", "/"})->status, 500);
}

// What each bad request gets.
struct BadRequest {
  const char* name;
  std::string bytes;
  const char* status_line;
};

class BadRequests : public ::testing::TestWithParam<BadRequest> {};

TEST_P(BadRequests, GetTheirStatusAndAnEnd) {
  std::atomic<int> handled{0};
  ServerOptions options;
  options.max_header = 1024;
  options.max_body = 2048;
  options.read_timeout = 5s;
  auto server = serve([&](const Request&, ResponseWriter&) { ++handled; }, options);
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(GetParam().bytes));
  EXPECT_THAT(connection.read_to_end(), StartsWith(GetParam().status_line));
  EXPECT_TRUE(connection.ended());
  EXPECT_EQ(handled, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadRequests,
    ::testing::Values(
        BadRequest{"NotHttp", "hello there\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"TlsHello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
                   "HTTP/1.1 400"},
        BadRequest{"BadVersion", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"NoHost", "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"TwoHosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"AbsoluteTarget", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"HeaderWithoutColon", "GET / HTTP/1.1\r\nHost: x\r\noops\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"SpaceBeforeColon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"ControlCharacter", "GET / HTTP/1.1\r\nHost: x\x01\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"BadLength", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n", "HTTP/1.1 400"},
        BadRequest{"NegativeLength", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                   "HTTP/1.1 400"},
        BadRequest{"TwoLengths",
                   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                   "HTTP/1.1 400"},
        BadRequest{
            "LengthAndChunked",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 400"},
        BadRequest{"BadChunkSize", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                   "HTTP/1.1 400"},
        BadRequest{"HugeChunkSize",
                   "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                   "HTTP/1.1 4"},
        BadRequest{"LongTarget", "GET /" + std::string(4000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n",
                   "HTTP/1.1 431"},
        BadRequest{"EndlessTarget", "GET /" + std::string(200'000, 'a'), "HTTP/1.1 431"},
        BadRequest{"LongHeader", "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(4000, 'a') + "\r\n\r\n",
                   "HTTP/1.1 431"},
        BadRequest{"ManyHeaders",
                   [] {
                     std::string text = "GET / HTTP/1.1\r\nHost: x\r\n";
                     for (int i = 0; i < 500; ++i) {
                       text += "X-" + std::to_string(i) + ": 1\r\n";
                     }
                     return text + "\r\n";
                   }(),
                   "HTTP/1.1 431"},
        BadRequest{"LargeBody",
                   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2049\r\n\r\n" + std::string(2049, 'b'),
                   "HTTP/1.1 413"},
        BadRequest{"LargeBodyAnnounced", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
                   "HTTP/1.1 413"},
        BadRequest{"LargeChunkedBody",
                   "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n600\r\n" +
                       std::string(0x600, 'b') + "\r\n600\r\n" + std::string(0x600, 'b') + "\r\n0\r\n\r\n",
                   "HTTP/1.1 413"}),
    [](const auto& info) { return info.param.name; });

TEST(Server, AcceptsABodyOfExactlyTheLimit) {
  ServerOptions options;
  options.max_body = 2048;
  auto server = serve(echo, options);
  const auto answer = fetch({"127.0.0.1", server->port(), "POST", "/", {}, std::string(2048, 'b')});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST(Server, EndsARequestThatTricklesIn) {
  ServerOptions options;
  options.read_timeout = 200ms;
  auto server = serve(echo, options);
  RawConnection connection(server->port());
  const auto begin = std::chrono::steady_clock::now();
  for (const char c : std::string("GET / HTTP/1.1\r\nHost: slow")) {
    if (!connection.send(std::string_view(&c, 1))) {
      break;
    }
    std::this_thread::sleep_for(15ms);
  }
  EXPECT_THAT(connection.read_to_end(), StartsWith("HTTP/1.1 408"));
  EXPECT_TRUE(connection.ended());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
}

TEST(Server, EndsABodyThatStops) {
  ServerOptions options;
  options.read_timeout = 100ms;
  auto server = serve(echo, options);
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"));
  EXPECT_THAT(connection.read_to_end(), StartsWith("HTTP/1.1 408"));
}

TEST(Server, ClosesIdleConnectionsSilently) {
  ServerOptions options;
  options.idle_timeout = 100ms;
  auto server = serve(echo, options);
  RawConnection fresh(server->port());
  RawConnection used(server->port());
  ASSERT_TRUE(used.send(kGet));
  EXPECT_THAT(used.read_until("a=b "), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(fresh.read_to_end(), "");
  EXPECT_EQ(used.read_to_end(), "");
  EXPECT_TRUE(fresh.ended());
  EXPECT_TRUE(used.ended());
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

TEST(Server, ForgetsAClientThatClosesInTheMiddleOfARequest) {
  auto server = serve(echo);
  {
    RawConnection connection(server->port());
    ASSERT_TRUE(connection.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"));
    connection.half_close();
    EXPECT_EQ(connection.read_to_end(), "");
  }
  {
    RawConnection connection(server->port());
    ASSERT_TRUE(connection.send("GET / HT"));
    connection.close_with_reset();
  }
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

TEST(Server, TellsTheHandlerThatTheClientIsGone) {
  std::promise<void> began;
  std::promise<bool> noticed;
  auto server = serve([&](const Request&, ResponseWriter& writer) {
    EXPECT_FALSE(writer.client_gone());
    began.set_value();
    noticed.set_value(eventually([&] { return writer.client_gone(); }));
  });
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(kGet));
  began.get_future().wait();
  connection.close();
  EXPECT_TRUE(noticed.get_future().get());
}

TEST(Server, WritesFailOnceTheClientIsGone) {
  std::promise<Code> code;
  auto server = serve([&](const Request&, ResponseWriter& writer) {
    (void)writer.start(200, "text/plain");
    Status status;
    eventually([&] {
      status = writer.write("tick\n");
      return !status;
    });
    code.set_value(status ? Code::kInternal : status.error().code);
  });
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(kGet));
  connection.read_until("tick");
  connection.close_with_reset();
  EXPECT_EQ(code.get_future().get(), Code::kUnavailable);
}

TEST(Server, DropsAClientThatDoesNotRead) {
  std::promise<Code> code;
  ServerOptions options;
  options.write_timeout = 100ms;
  auto server = serve(
      [&](const Request&, ResponseWriter& writer) {
        (void)writer.start(200, "text/plain");
        const std::string much(1U << 20U, 'x');
        Status status;
        for (int i = 0; i < 100 && status; ++i) {
          status = writer.write(much);
        }
        code.set_value(status ? Code::kInternal : status.error().code);
      },
      options);
  RawConnection connection(server->port());
  connection.shrink_receive_buffer();
  ASSERT_TRUE(connection.send(kGet));
  EXPECT_EQ(code.get_future().get(), Code::kTimeout);
}

TEST(Server, AbortResetsTheConnection) {
  auto server = serve([](const Request&, ResponseWriter& writer) {
    (void)writer.start(200, "text/plain");
    (void)writer.write("half");
    writer.abort();
    EXPECT_FALSE(writer.write("more"));
    EXPECT_TRUE(writer.client_gone());
  });
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(kGet));
  EXPECT_THAT(connection.read_to_end(), HasSubstr("half"));
  EXPECT_TRUE(connection.was_reset());
}

TEST(Server, RefusesOneConnectionMoreThanAllowed) {
  ServerOptions options;
  options.max_connections = 2;
  auto server = serve(echo, options);
  RawConnection first(server->port());
  RawConnection second(server->port());
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  {
    RawConnection third(server->port());
    EXPECT_THAT(third.read_to_end(), StartsWith("HTTP/1.1 503"));
    EXPECT_TRUE(third.ended());
  }
  first.close();
  ASSERT_TRUE(eventually([&] { return server->connections() == 1; }));
  RawConnection fourth(server->port());
  ASSERT_TRUE(fourth.send(kGet));
  EXPECT_THAT(fourth.read_until("a=b "), StartsWith("HTTP/1.1 200"));
}

TEST(Server, StopEndsIdleConnectionsAtOnceAndLetsRequestsFinish) {
  std::promise<void> began;
  std::atomic<bool> go_on{false};
  auto server = serve([&](const Request& request, ResponseWriter& writer) {
    began.set_value();
    eventually([&] { return go_on.load(); });
    echo(request, writer);
  });
  const std::uint16_t port = server->port();
  RawConnection idle(port);
  RawConnection busy(port);
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  ASSERT_TRUE(busy.send(kGet));
  began.get_future().wait();
  EXPECT_EQ(server->in_flight(), 1U);
  auto stopped = std::async(std::launch::async, [&] { server->stop(20s); });
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.ended());
  EXPECT_EQ(stopped.wait_for(50ms), std::future_status::timeout);
  EXPECT_TRUE(eventually([&] { return !RawConnection(port).connected(); }));
  go_on = true;
  const std::string answer = busy.read_to_end();
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_EQ(stopped.wait_for(5s), std::future_status::ready);
  EXPECT_EQ(server->connections(), 0U);
}

TEST(Server, StopCutsStreamsAfterTheGrace) {
  std::promise<void> began;
  std::promise<Code> code;
  auto server = serve([&](const Request&, ResponseWriter& writer) {
    (void)writer.start(200, "text/event-stream");
    (void)writer.write("data: 0\n\n");
    began.set_value();
    Status status;
    eventually(
        [&] {
          status = writer.write("data: 1\n\n");
          return !status;
        },
        30s);
    EXPECT_TRUE(writer.client_gone());
    code.set_value(status ? Code::kInternal : status.error().code);
  });
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send(kGet));
  began.get_future().wait();
  const auto begin = std::chrono::steady_clock::now();
  server->stop(100ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 90ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(code.get_future().get(), Code::kUnavailable);
  connection.read_to_end();
  EXPECT_TRUE(connection.ended());
  server->stop(100ms);  // a second stop changes nothing
}

TEST(Server, StopDoesNotWaitForARequestThatTricklesIn) {
  auto server = serve(echo);
  RawConnection connection(server->port());
  ASSERT_TRUE(connection.send("GET / HT"));
  ASSERT_TRUE(eventually([&] { return server->connections() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  server->stop(50ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
}

TEST(Server, ServesManyConnectionsAtOnce) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  auto server = serve([&](const Request& request, ResponseWriter& writer) {
    const int now = ++inside;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    eventually([&] { return most >= 40; });
    echo(request, writer);
    --inside;
  });
  std::vector<std::future<int>> answers;
  for (int i = 0; i < 40; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      const auto answer = fetch({"127.0.0.1", server->port()});
      return answer ? answer->status : 0;
    }));
  }
  for (auto& answer : answers) {
    EXPECT_EQ(answer.get(), 200);
  }
}

TEST(Server, TellsTheAddressThatWasReached) {
  ServerOptions options;
  options.address = "0.0.0.0";
  auto server =
      serve([](const Request& request,
               ResponseWriter& writer) { (void)writer.respond(200, "text/plain", request.local_address); },
            options);
  EXPECT_EQ(fetch({"127.0.0.2", server->port()})->body, "127.0.0.2");
}

TEST(Server, ListensOnIpv6) {
  ServerOptions options;
  options.address = "::1";
  auto server = Server::listen(options, echo);
  if (!server) {
    GTEST_SKIP() << "no IPv6 here: " << server.error().message;
  }
  EXPECT_EQ(fetch({"::1", (*server)->port()})->status, 200);
}

TEST(Server, SaysWhyItCannotListen) {
  ServerOptions options;
  options.address = "example.org";
  EXPECT_EQ(Server::listen(options, echo).error().code, Code::kInvalid);
  auto first = serve(echo);
  options.address = "127.0.0.1";
  options.port = first->port();
  const auto second = Server::listen(options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(first->port())));
}

}  // namespace
}  // namespace eldr::http
