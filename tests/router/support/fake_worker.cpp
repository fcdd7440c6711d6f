// SPDX-License-Identifier: Apache-2.0
#include "tests/router/support/fake_worker.h"

#include <thread>

#include <gtest/gtest.h>

namespace eldr::router::testing {

FakeWorker::FakeWorker(Answer answer, std::chrono::milliseconds idle) : answer_(std::move(answer)) {
  http::ServerOptions options;
  options.max_body = 64U << 20U;
  options.idle_timeout = idle;
  auto server =
      http::Server::listen(options, [this](const http::Request& request, http::ResponseWriter& writer) {
        if (request.path == "/metrics") {
          static_cast<void>(writer.respond(200, "text/plain",
                                           "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"));
          return;
        }
        Answer answer;
        {
          const std::lock_guard lock(mutex_);
          requests_.push_back(request);
          answer = answer_;
        }
        answer(request, writer);
      });
  EXPECT_TRUE(server) << server.error().message;
  server_ = std::move(*server);
}

FakeWorker::~FakeWorker() { stop(); }

void FakeWorker::stop() { server_->stop(std::chrono::milliseconds(0)); }

void FakeWorker::answer_with(Answer answer) {
  const std::lock_guard lock(mutex_);
  answer_ = std::move(answer);
}

std::vector<http::Request> FakeWorker::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t FakeWorker::count() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

FakeWorker::Answer prefilled(const std::string& eldr) {
  std::string body =
      R"({"id":"cmpl-1","choices":[{"finish_reason":"length","text":"a"}],"kv_transfer_params":{"do_remote_prefill":true,)"
      R"("do_remote_decode":false,"remote_block_ids":[[1,2,3]],"remote_host":"10.0.0.1","remote_port":5600,"new_key":{"a":1.50}})";
  if (!eldr.empty()) body.insert(body.size() - 1, R"(,"eldr":)" + eldr);
  body += "}";
  return [body](const http::Request&, http::ResponseWriter& writer) {
    static_cast<void>(writer.respond(200, "application/json", body));
  };
}

FakeWorker::Answer decoded(int pieces, std::chrono::milliseconds pause) {
  return [pieces, pause](const http::Request& request, http::ResponseWriter& writer) {
    if (request.body.find("\"stream\":true") == std::string::npos) {
      static_cast<void>(writer.respond(
          200, "application/json",
          R"({"id":"cmpl-2","choices":[{"text":"out"}],"usage":{"prompt_tokens":7,"completion_tokens":1}})",
          {{"X-Worker-Header", "kept"}}));
      return;
    }
    static_cast<void>(writer.start(200, "text/event-stream"));
    for (int i = 0; i < pieces; ++i) {
      if (i > 0) std::this_thread::sleep_for(pause);
      if (!writer.write("data: {\"token\":" + std::to_string(i) + "}\n\n")) return;
    }
    static_cast<void>(
        writer.write("data: {\"choices\":[],\"usage\":{\"completion_tokens\":3}}\n\ndata: [DONE]\n\n"));
    static_cast<void>(writer.finish());
  };
}

FakeWorker::Answer status_answer(int status, const std::string& body) {
  return [status, body](const http::Request&, http::ResponseWriter& writer) {
    static_cast<void>(writer.respond(status, "application/json", body));
  };
}

FakeWorker::Answer hangs(const SharedCount& went) {
  return [went](const http::Request&, http::ResponseWriter& writer) {
    for (int i = 0; i < 2000; ++i) {
      if (writer.client_gone()) {
        went.add();
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
}

FakeWorker::Answer streams_on(const SharedCount& went) {
  return [went](const http::Request&, http::ResponseWriter& writer) {
    static_cast<void>(writer.start(200, "text/event-stream"));
    for (int i = 0; i < 2000; ++i) {
      if (!writer.write("data: {}\n\n") || writer.client_gone()) {
        went.add();
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  };
}

}  // namespace eldr::router::testing
