// SPDX-License-Identifier: Apache-2.0
// The known faults of the HTTP library, each provoked by a server that misbehaves on purpose.
#include "lib/kube/cpprest_transport.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kube/raw_server.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::RawConnection;
using testing::RawServer;

class CpprestTransportTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { init_http_threads(); }

  std::unique_ptr<Transport> transport_to(const std::string& url, CpprestOptions options = {}) {
    Config config;
    config.server = url;
    config.token = "sesame";
    auto transport = make_cpprest_transport(config, options, clock);
    EXPECT_TRUE(transport);
    return std::move(*transport);
  }
  static HttpRequest get(std::chrono::milliseconds timeout = 5s) {
    HttpRequest request;
    request.method = "GET";
    request.target = "/api/v1/pods?limit=1&labelSelector=a%3Db%2Cc";
    request.timeout = timeout;
    return request;
  }
  static std::string answer(const std::string& body, const std::string& status = "200 OK",
                            const std::string& headers = "") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers +
           "\r\n" + body;
  }
  static std::string chunk(const std::string& bytes) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return size + bytes + "\r\n";
  }
  static constexpr const char* kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  static std::string read_all(WatchStream& stream, Status& end) {
    std::string all;
    for (;;) {
      auto bytes = stream.read(5s);
      if (!bytes) {
        end = failure(bytes.error());
        return all;
      }
      if (bytes->empty()) {
        end = Status();
        return all;
      }
      all += *bytes;
    }
  }
  double seconds_since(Clock::Steady begun) const {
    return std::chrono::duration<double>(clock.steady() - begun).count();
  }

  const RealClock clock;
};

TEST_F(CpprestTransportTest, SendsTokenAgentAndTheTargetAsGiven) {
  std::string seen;
  RawServer server([&](RawConnection& connection) {
    seen = connection.read_request();
    connection.write(answer("{}", "200 OK", "Retry-After: 3\r\n"));
  });
  CpprestOptions options;
  options.user_agent = "eldr-test/1";
  const auto response = transport_to(server.url(), options)->send(get());
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "{}");
  EXPECT_EQ(response->retry_after_seconds, 3);
  EXPECT_THAT(seen, HasSubstr("GET /api/v1/pods?limit=1&labelSelector=a%3Db%2Cc HTTP/1.1"));
  EXPECT_THAT(seen, HasSubstr("Authorization:Bearer sesame"));
  EXPECT_THAT(seen, HasSubstr("User-Agent:eldr-test/1"));
}

TEST_F(CpprestTransportTest, AnyStatusIsAnAnswer) {
  for (const char* status : {"301 Moved", "404 Not Found", "429 Too Many", "500 Oops"}) {
    RawServer server([&](RawConnection& connection) {
      connection.read_request();
      connection.write(answer("body", status, "Location: http://127.0.0.1:1/\r\n"));
    });
    const auto response = transport_to(server.url())->send(get());
    ASSERT_TRUE(response) << status;
    EXPECT_EQ(std::to_string(response->status), std::string(status).substr(0, 3))
        << "redirects are not followed";
    EXPECT_EQ(response->body, "body");
  }
}

TEST_F(CpprestTransportTest, DeadlineIsTotalEvenWhenBytesKeepTrickling) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    while (connection.write("x")) {
      std::this_thread::sleep_for(20ms);
    }
  });
  const auto transport = transport_to(server.url());
  const auto begun = clock.steady();
  const auto response = transport->send(get(300ms));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_GE(seconds_since(begun), 0.3);
  EXPECT_LT(seconds_since(begun), 1.5);
}

TEST_F(CpprestTransportTest, SilentServerIsATimeoutAndItsConnectionIsClosed) {
  std::atomic<bool> closed{false};
  {
    RawServer server([&](RawConnection& connection) {
      connection.read_request();
      closed = connection.peer_closes();
    });
    EXPECT_EQ(transport_to(server.url())->send(get(200ms)).error().code, Code::kTimeout);
  }
  EXPECT_TRUE(closed);
}

TEST_F(CpprestTransportTest, RefusedConnectionIsUnavailableAtOnce) {
  std::uint16_t port = 0;
  {
    RawServer server([](RawConnection&) {});
    port = server.port();
  }
  const auto begun = clock.steady();
  const auto response = transport_to("http://127.0.0.1:" + std::to_string(port))->send(get());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_LT(seconds_since(begun), 2);
}

TEST_F(CpprestTransportTest, ServerThatDropsTheConnectionIsUnavailableAndTheNextCallWorks) {
  std::atomic<int> calls{0};
  RawServer server([&](RawConnection& connection) {
    connection.read_request();
    switch (calls++) {
      case 0:
        return connection.reset();
      case 1:
        connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        return;
      case 2:
        connection.write("not http at all\r\n\r\n");
        return;
      default:
        connection.write(answer("good"));
    }
  });
  const auto transport = transport_to(server.url());
  for (int i = 0; i < 3; ++i) {
    const auto response = transport->send(get());
    ASSERT_FALSE(response) << i;
    EXPECT_EQ(response.error().code, Code::kUnavailable) << i;
  }
  const auto response = transport->send(get());
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->body, "good");
}

TEST_F(CpprestTransportTest, ConnectionsAreKeptAndAStaleOneIsReplaced) {
  RawServer server([](RawConnection& connection) {
    for (int i = 0; i < 3 && !connection.read_request().empty(); ++i) {
      connection.write(answer("x"));
    }
  });
  const auto transport = transport_to(server.url());
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(transport->send(get())) << i;
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST_F(CpprestTransportTest, BodyOverTheLimitIsRefusedWithoutReadingItAll) {
  std::atomic<std::size_t> sent{0};
  for (const bool chunked : {false, true}) {
    sent = 0;
    RawServer server([&](RawConnection& connection) {
      connection.read_request();
      connection.write(chunked ? std::string(kChunked)
                               : "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
      const std::string piece(64 * 1024, 'x');
      while (sent < 1'000'000'000 && connection.write(chunked ? chunk(piece) : piece)) {
        sent += piece.size();
      }
    });
    HttpRequest request = get();
    request.max_body = 1'000'000;
    const auto response = transport_to(server.url())->send(request);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kResourceExhausted);
    EXPECT_LT(sent, 50'000'000U);
  }
}

TEST_F(CpprestTransportTest, StopEndsACallSoon) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.peer_closes();
  });
  const auto transport = transport_to(server.url());
  std::stop_source source;
  HttpRequest request = get(30s);
  request.stop = source.get_token();
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    source.request_stop();
  });
  const auto begun = clock.steady();
  EXPECT_EQ(transport->send(request).error().code, Code::kCancelled);
  EXPECT_LT(seconds_since(begun), 2);
  EXPECT_EQ(transport->send(request).error().code, Code::kCancelled) << "already stopped: not even begun";
}

TEST_F(CpprestTransportTest, StreamBringsEachPieceAsItComesAndEnds) {
  std::atomic<bool> go_on{false};
  RawServer server([&](RawConnection& connection) {
    connection.read_request();
    connection.write(std::string(kChunked) + chunk("one\n"));
    while (!go_on && !server.stopping()) {
      std::this_thread::sleep_for(5ms);
    }
    connection.write(chunk("two\n") + "0\r\n\r\n");
  });
  const auto transport = transport_to(server.url());
  auto opened = transport->open_stream(get(), 60s);
  ASSERT_TRUE(opened) << opened.error().to_string();
  ASSERT_NE(opened->stream, nullptr);
  EXPECT_EQ(opened->stream->read(5s), "one\n");
  EXPECT_EQ(opened->stream->read(50ms).error().code, Code::kTimeout) << "and the stream is still good";
  go_on = true;
  Status end;
  EXPECT_EQ(read_all(*opened->stream, end), "two\n");
  EXPECT_TRUE(end);
  EXPECT_EQ(opened->stream->read(1s), "") << "the end stays the end";
}

TEST_F(CpprestTransportTest, BrokenStreamGivesWhatCameAndThenTheError) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.write(std::string(kChunked) + chunk("one\n") + "ff\r\nhalf of a ch");
  });
  auto opened = transport_to(server.url())->open_stream(get(), 60s);
  ASSERT_TRUE(opened);
  Status end;
  EXPECT_EQ(read_all(*opened->stream, end), "one\n");
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kUnavailable);
}

TEST_F(CpprestTransportTest, RefusedStreamIsAnAnswerWithItsBody) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.write(answer("too old", "410 Gone", "Retry-After: 2\r\n"));
  });
  const auto opened = transport_to(server.url())->open_stream(get(), 60s);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->stream, nullptr);
  EXPECT_EQ(opened->head.status, 410);
  EXPECT_EQ(opened->head.body, "too old");
  EXPECT_EQ(opened->head.retry_after_seconds, 2);
}

TEST_F(CpprestTransportTest, StreamWithoutHeadersIsATimeout) {
  RawServer server([](RawConnection& connection) {
    connection.read_request();
    connection.peer_closes();
  });
  EXPECT_EQ(transport_to(server.url())->open_stream(get(200ms), 60s).error().code, Code::kTimeout);
}

TEST_F(CpprestTransportTest, UnreadStreamSlowsTheServerDownAndLosesNothing) {
  constexpr std::size_t kTotal = 64U << 20;
  std::atomic<std::size_t> sent{0};
  RawServer server([&](RawConnection& connection) {
    connection.read_request();
    connection.write(kChunked);
    const std::string piece(32 * 1024, 'y');
    while (sent < kTotal && connection.write(chunk(piece))) {
      sent += piece.size();
    }
    connection.write("0\r\n\r\n");
  });
  CpprestOptions options;
  options.stream_buffer = 256 * 1024;
  const auto transport = transport_to(server.url(), options);
  auto opened = transport->open_stream(get(), 60s);
  ASSERT_TRUE(opened);
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(sent, 20U << 20) << "sockets hold some megabytes, we hold a quarter";
  std::size_t read = 0;
  for (;;) {
    const auto bytes = opened->stream->read(5s);
    ASSERT_TRUE(bytes) << bytes.error().to_string();
    if (bytes->empty()) {
      break;
    }
    ASSERT_LE(bytes->size(), 256U * 1024 + 64 * 1024);
    read += bytes->size();
  }
  EXPECT_EQ(read, kTotal);
}

TEST_F(CpprestTransportTest, AbortAndStopAndDestructionEndAStream) {
  std::atomic<int> closed{0};
  {
    RawServer server([&](RawConnection& connection) {
      connection.read_request();
      connection.write(std::string(kChunked) + chunk("one\n"));
      closed += connection.peer_closes() ? 1 : 0;
    });
    const auto transport = transport_to(server.url());
    std::stop_source source;
    HttpRequest request = get();
    request.stop = source.get_token();
    auto aborted = transport->open_stream(get(), 60s);
    auto stopped = transport->open_stream(request, 60s);
    auto dropped = transport->open_stream(get(), 60s);
    ASSERT_TRUE(aborted && stopped && dropped);
    std::jthread other([&] {
      std::this_thread::sleep_for(20ms);
      aborted->stream->abort();
      source.request_stop();
    });
    const auto begun = clock.steady();
    Status end;
    read_all(*aborted->stream, end);
    EXPECT_EQ(end.error().code, Code::kCancelled);
    read_all(*stopped->stream, end);
    EXPECT_EQ(end.error().code, Code::kCancelled);
    dropped->stream.reset();
    EXPECT_LT(seconds_since(begun), 2);
  }
  EXPECT_EQ(closed, 3);
}

TEST_F(CpprestTransportTest, ManyCallsAtOnceOnFourThreads) {
  RawServer server([](RawConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.write(answer("x"));
    }
  });
  const auto transport = transport_to(server.url());
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 16; ++i) {
      callers.emplace_back([&] {
        for (int call = 0; call < 20; ++call) {
          good += transport->send(get()) ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(good, 320);
}

TEST_F(CpprestTransportTest, AddressesThatAreNoneAreRefused) {
  for (const char* server : {"", "127.0.0.1:6443", "ftp://x", "https://", "https://a b"}) {
    Config config;
    config.server = server;
    const auto transport = make_cpprest_transport(config, {}, clock);
    ASSERT_FALSE(transport) << server;
    EXPECT_EQ(transport.error().code, Code::kInvalid);
    EXPECT_THAT(transport.error().message, HasSubstr("server"));
  }
}

}  // namespace
}  // namespace eldr::kube
