// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/cpprest_transport.h"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <boost/asio/ssl.hpp>
#include <cpprest/astreambuf.h>
#include <cpprest/http_client.h>
#include <cpprest/streams.h>
#include <pplx/threadpool.h>

#include "lib/kube/tls.h"
#include "lib/kube/token_source.h"

namespace eldr::kube {
namespace {

namespace http = web::http;
using std::chrono::milliseconds;

/// How long we wait for the library to let go of a request that we cancelled. It is then left to itself: what
/// it holds is shared and freed when it ends.
constexpr milliseconds kLetGo{500};
/// The library's own timer restarts at every step, so it is only a net under our deadline.
constexpr std::chrono::seconds kLibraryTimeout{300};

/// One request on its way: filled by the library's threads, waited for by ours.
class Exchange {
 public:
  /// With `flow_control` a full buffer slows the server down; without, it is an error.
  Exchange(std::size_t limit, bool flow_control) : limit_(limit), flow_control_(flow_control) {}

  // --- the library's side
  void headers_arrived(int status, int retry_after) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    retry_after_ = retry_after;
    if (status != 200) {
      flow_control_ = false;  // an error's body is read whole
    }
    changed_.notify_all();
  }
  void finished(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    if (!error_) {
      error_ = std::move(error);
    }
    changed_.notify_all();
  }
  pplx::task<std::size_t> write(const std::uint8_t* bytes, std::size_t count) {
    const std::lock_guard lock(mutex_);
    if (cancelled_) {
      return pplx::task_from_exception<std::size_t>(std::runtime_error("cancelled"));
    }
    if (!flow_control_ && buffer_.size() + count > limit_) {
      error_ = Error{Code::kResourceExhausted,
                     "the answer is larger than " + std::to_string(limit_) + " bytes", 0};
      return pplx::task_from_exception<std::size_t>(std::runtime_error("body too large"));
    }
    buffer_.append(reinterpret_cast<const char*>(bytes), count);
    changed_.notify_all();
    if (flow_control_ && buffer_.size() > limit_) {
      blocked_writer_.emplace();
      blocked_count_ = count;
      return pplx::create_task(*blocked_writer_);
    }
    return pplx::task_from_result(count);
  }

  // --- our side
  pplx::cancellation_token token() const { return cancel_.get_token(); }

  void cancel() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(cancelled_, true)) {
        return;
      }
      release_writer();
      changed_.notify_all();
    }
    cancel_.cancel();  // closes the socket
  }
  /// Until the headers are here, or the request failed.
  Status wait_for_headers(Clock::Steady deadline) {
    std::unique_lock lock(mutex_);
    const bool in_time =
        changed_.wait_until(lock, deadline, [&] { return status_ != 0 || finished_ || cancelled_; });
    return verdict(in_time, status_ != 0);
  }
  Status wait_for_end(Clock::Steady deadline) {
    std::unique_lock lock(mutex_);
    const bool in_time = changed_.wait_until(lock, deadline, [&] { return finished_ || cancelled_; });
    return verdict(in_time, finished_ && !error_);
  }
  void wait_until_let_go() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLetGo, [&] { return finished_; });
  }
  Result<std::string> take(milliseconds wait) {
    std::unique_lock lock(mutex_);
    const bool in_time =
        changed_.wait_for(lock, wait, [&] { return !buffer_.empty() || finished_ || cancelled_; });
    if (cancelled_) {
      return failure(Code::kCancelled, "the watch was stopped");
    }
    if (!in_time) {
      return failure(Code::kTimeout, "nothing arrived for " + std::to_string(wait.count()) + " ms");
    }
    if (buffer_.empty() && error_) {
      return failure(*error_);
    }
    release_writer();
    return std::exchange(buffer_, {});
  }
  HttpResponse take_response() {
    const std::lock_guard lock(mutex_);
    return HttpResponse{status_, std::exchange(buffer_, {}), retry_after_};
  }
  int status() const {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  Status verdict(bool in_time, bool good) const {
    if (cancelled_) {
      return failure(Code::kCancelled, "the call was stopped");
    }
    if (!in_time) {
      return failure(Code::kTimeout, "the deadline passed");
    }
    if (good) {
      return {};
    }
    return failure(error_.value_or(Error{Code::kUnavailable, "the connection was closed", 0}));
  }
  void release_writer() {
    if (blocked_writer_) {
      blocked_writer_->set(blocked_count_);
      blocked_writer_.reset();
    }
  }

  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool flow_control_;
  int status_ = 0;  // 0 until the headers are here
  int retry_after_ = 0;
  std::string buffer_;
  bool finished_ = false;
  bool cancelled_ = false;
  std::optional<Error> error_;
  std::optional<pplx::task_completion_event<std::size_t>> blocked_writer_;
  std::size_t blocked_count_ = 0;
  pplx::cancellation_token_source cancel_;
};

/// Where the library puts a body. Its own buffers grow without limit; this one asks the Exchange.
class BodySink final : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  explicit BodySink(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager(std::ios_base::out), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return pos_type(off_type(-1)); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return pos_type(off_type(-1)); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(off_type(-1));
  }
  bool acquire(std::uint8_t*&, size_t&) override { return false; }
  void release(std::uint8_t*, size_t) override {}

 protected:
  pplx::task<size_t> _putn(const std::uint8_t* bytes, size_t count) override {
    return exchange_->write(bytes, count);
  }
  pplx::task<int_type> _putc(std::uint8_t byte) override {
    return exchange_->write(&byte, 1).then([byte](size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}
  // Nobody reads from here.
  pplx::task<int_type> _bumpc() override { return nothing(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return nothing(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return nothing(); }
  pplx::task<int_type> _ungetc() override { return nothing(); }
  pplx::task<size_t> _getn(std::uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(std::uint8_t*, size_t) override { return 0; }

 private:
  static pplx::task<int_type> nothing() { return pplx::task_from_result<int_type>(traits::eof()); }
  std::shared_ptr<Exchange> exchange_;
};

int seconds_of(const http::http_headers& headers, const char* name) {
  int seconds = 0;
  // The form with a date is not used by API servers; it reads as "not said".
  return headers.match(name, seconds) && seconds > 0 ? seconds : 0;
}

Error error_of(const http::http_exception& exception, TlsProblem& problem) {
  const int value = exception.error_code().value();
  const std::string text = exception.what();
  if (value == ETIMEDOUT) {
    return Error{Code::kTimeout, "no answer in time (" + text + ")", 0};
  }
  if (value == ECANCELED) {
    return Error{Code::kCancelled, text, 0};
  }
  const std::string detail = problem.take();
  return Error{Code::kUnavailable, detail.empty() ? text : text + ": " + detail, 0};
}

class CpprestStream final : public WatchStream {
 public:
  CpprestStream(std::shared_ptr<Exchange> exchange, std::stop_token stop)
      : exchange_(std::move(exchange)),
        on_stop_(std::move(stop), [exchange = exchange_] { exchange->cancel(); }) {}
  ~CpprestStream() override { exchange_->cancel(); }

  Result<std::string> read(milliseconds wait) override { return exchange_->take(wait); }
  void abort() override { exchange_->cancel(); }

 private:
  std::shared_ptr<Exchange> exchange_;
  std::stop_callback<std::function<void()>> on_stop_;
};

class CpprestTransport final : public Transport {
 public:
  CpprestTransport(Config config, web::uri server, CpprestOptions options, const Clock& clock)
      : config_(std::make_shared<const Config>(std::move(config))),
        clock_(clock),
        server_(std::move(server)),
        options_(std::move(options)),
        tokens_(*config_, options_.token_refresh, clock),
        requests_(make_client(kLibraryTimeout)) {}

  Result<HttpResponse> send(const HttpRequest& request) override {
    const auto deadline = clock_.steady() + request.timeout;
    const auto exchange = std::make_shared<Exchange>(request.max_body, false);
    const auto client = current_client();
    const std::stop_callback on_stop(request.stop, [exchange] { exchange->cancel(); });
    if (auto begun = begin(*client, request, exchange); !begun) {
      return failure(begun.error());
    }
    if (auto ended = exchange->wait_for_end(deadline); !ended) {
      exchange->cancel();
      exchange->wait_until_let_go();
      replace(client, ended.error());
      return failure(ended.error());
    }
    return judged(exchange->take_response());
  }

  Result<StreamResponse> open_stream(const HttpRequest& request, milliseconds longest) override {
    const auto deadline = clock_.steady() + request.timeout;
    const auto exchange = std::make_shared<Exchange>(options_.stream_buffer, true);
    // A client of its own: its timer must outlast silence, and its connection is new, with the files as they
    // are now.
    const auto client = make_client(std::max<milliseconds>(longest, request.timeout));
    const std::stop_callback on_stop(request.stop, [exchange] { exchange->cancel(); });
    if (auto begun = begin(*client, request, exchange); !begun) {
      return failure(begun.error());
    }
    auto opened = exchange->wait_for_headers(deadline);
    if (opened && exchange->status() != 200) {
      opened = exchange->wait_for_end(deadline);
    }
    if (!opened) {
      exchange->cancel();
      exchange->wait_until_let_go();
      return failure(opened.error());
    }
    StreamResponse answer;
    if (exchange->status() == 200) {
      answer.head.status = 200;
      answer.stream = std::make_unique<CpprestStream>(exchange, request.stop);
    } else {
      answer.head = judged(exchange->take_response());
    }
    return answer;
  }

 private:
  using HttpClient = http::client::http_client;

  std::shared_ptr<HttpClient> make_client(milliseconds timeout) {
    http::client::http_client_config config;
    config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(timeout));
    config.set_max_redirects(0);  // a redirect would carry our token elsewhere
    config.set_validate_certificates(!config_->insecure_skip_tls_verify);
    config.set_ssl_context_callback(
        [config = config_, problem = problem_](boost::asio::ssl::context& context) {
          if (const auto good = configure_tls(context.native_handle(), *config, problem.get()); !good) {
            throw std::runtime_error(good.error().message);  // the library hands it to the request
          }
        });
    return std::make_shared<HttpClient>(server_, config);
  }

  std::shared_ptr<HttpClient> current_client() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// After a failure the pooled connections are suspect: the next request starts with new ones.
  void replace(const std::shared_ptr<HttpClient>& failed, const Error& why) {
    if (why.code == Code::kResourceExhausted || why.code == Code::kCancelled) {
      return;
    }
    auto fresh = make_client(kLibraryTimeout);
    const std::lock_guard lock(mutex_);
    if (requests_ == failed) {
      requests_ = std::move(fresh);
    }
  }

  HttpResponse judged(HttpResponse response) {
    if (response.status == 401) {
      tokens_.distrust();
    }
    return response;
  }

  /// Hands the request to the library. What it makes of it arrives in the exchange.
  Status begin(HttpClient& client, const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    const auto token = tokens_.token();
    if (!token) {
      return failure(token.error());
    }
    try {
      http::http_request message(request.method);
      message.set_request_uri(web::uri(request.target));
      auto& headers = message.headers();
      headers.add(http::header_names::user_agent, options_.user_agent);
      headers.add(http::header_names::accept, "application/json");
      if (!config_->tls_server_name.empty()) {
        headers.add(http::header_names::host,
                    config_->tls_server_name);  // also the name that the library verifies
      }
      if (!token->empty()) {
        headers.add(http::header_names::authorization, "Bearer " + *token);
      }
      if (!request.body.empty() || !request.content_type.empty()) {
        message.set_body(request.body, request.content_type);
      }
      message.set_response_stream(
          concurrency::streams::streambuf<std::uint8_t>(std::make_shared<BodySink>(exchange))
              .create_ostream());
      client.request(message, exchange->token())
          .then([exchange](const http::http_response& response) {
            exchange->headers_arrived(response.status_code(), seconds_of(response.headers(), "Retry-After"));
            return response.content_ready();
          })
          .then([exchange, problem = problem_](const pplx::task<http::http_response>& done) {
            try {
              done.get();
              exchange->finished(std::nullopt);
            } catch (const http::http_exception& exception) {
              exchange->finished(error_of(exception, *problem));
            } catch (const pplx::task_canceled&) {
              exchange->finished(Error{Code::kCancelled, "cancelled", 0});
            } catch (const std::exception& exception) {
              exchange->finished(Error{Code::kUnavailable, exception.what(), 0});
            }
          });
    } catch (const std::exception& exception) {
      return failure(Code::kInvalid, request.method + " " + request.target + ": " + exception.what());
    }
    return {};
  }

  const std::shared_ptr<const Config> config_;
  const std::shared_ptr<TlsProblem> problem_ = std::make_shared<TlsProblem>();
  const Clock& clock_;
  const web::uri server_;
  const CpprestOptions options_;
  TokenSource tokens_;
  std::mutex mutex_;
  std::shared_ptr<HttpClient> requests_;
};

}  // namespace

void init_http_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      crossplat::threadpool::initialize_with_threads(4);
    } catch (const std::exception&) {
      // Somebody used the library before: it then has its own number of threads, and works.
    }
    pplx::get_ambient_scheduler();  // made now, so that it is destroyed after everything that uses it
  });
}

Result<std::unique_ptr<Transport>> make_cpprest_transport(Config config, CpprestOptions options,
                                                          const Clock& clock) {
  web::uri server;
  try {
    server = web::uri(config.server);
  } catch (const std::exception&) {
    return failure(Code::kInvalid, "server: \"" + config.server + "\" is not a URL");
  }
  if ((server.scheme() != "https" && server.scheme() != "http") || server.host().empty()) {
    return failure(Code::kInvalid,
                   "server: \"" + config.server + "\" must be https://host:port or http://host:port");
  }
  try {
    return std::make_unique<CpprestTransport>(std::move(config), std::move(server), std::move(options),
                                              clock);
  } catch (const std::exception& exception) {
    return failure(Code::kInternal, std::string("the HTTP client does not start: ") + exception.what());
  }
}

}  // namespace eldr::kube
