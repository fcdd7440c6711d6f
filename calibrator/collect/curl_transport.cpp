// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/curl_transport.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <curl/curl.h>
#include <spdlog/fmt/fmt.h>

namespace eldr::calibrator {
namespace {

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;

/// libcurl has no handle to give only where it has no memory, and does not say so.
Easy new_handle() {
  Easy handle(curl_easy_init());
  if (!handle) {
    throw std::bad_alloc();
  }
  return handle;
}

struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// One transfer's state, as libcurl's callbacks see it.
struct Transfer {
  ByteSink sink;
  std::stop_token stop;
  bool sink_refused = false;
  bool out_of_memory = false;
};

std::size_t on_bytes(char* data, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {  // an exception must not pass through libcurl
    transfer.sink_refused = !transfer.sink(data, size);
  } catch (const std::bad_alloc&) {
    transfer.out_of_memory = true;
  }
  return transfer.sink_refused || transfer.out_of_memory ? 0 : size;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->stop.stop_requested() ? 1 : 0;
}

void set_common(CURL* handle, const std::string& url, Transfer& transfer) {
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "eldr-calibrate");
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
}

Error to_error(CURLcode code, const std::string& url) {
  const std::string message = fmt::format("{}: {}", url, curl_easy_strerror(code));
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return {Code::kTimeout, message, 0};
    case CURLE_ABORTED_BY_CALLBACK:
      return {Code::kCancelled, message, 0};
    case CURLE_OUT_OF_MEMORY:
      return {Code::kResourceExhausted, message, 0};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {Code::kInvalid, message, 0};
    default:
      return {Code::kUnavailable, message, 0};
  }
}

class CurlTransport final : public HttpTransport {
 public:
  Result<HttpAnswer> send(const HttpCall& call) override {
    Easy handle = take();
    auto answer = send_with(handle.get(), call);
    if (answer) {
      give_back(std::move(handle));  // its connection is kept; after an error it is not trusted
    }
    return answer;
  }

 private:
  static Result<HttpAnswer> send_with(CURL* handle, const HttpCall& call) {
    HttpAnswer answer;
    Transfer transfer{.sink =
                          [&](const char* data, std::size_t size) {
                            if (answer.body.size() + size > call.max_answer) {
                              return false;
                            }
                            answer.body.append(data, size);
                            return true;
                          },
                      .stop = call.stop};
    curl_easy_reset(handle);  // keeps live connections
    set_common(handle, call.url, transfer);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
    std::unique_ptr<curl_slist, ListDeleter> headers;
    if (call.method == "POST") {
      headers.reset(curl_slist_append(nullptr, "Content-Type: application/json"));
      headers.reset(curl_slist_append(headers.release(), "Expect:"));
      curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
      curl_easy_setopt(handle, CURLOPT_POST, 1L);
      curl_easy_setopt(handle, CURLOPT_POSTFIELDS, call.body.data());
      curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    }
    const CURLcode code = curl_easy_perform(handle);
    if (transfer.out_of_memory) {
      throw std::bad_alloc();
    }
    if (transfer.sink_refused) {
      return failure(Code::kResourceExhausted,
                     fmt::format("{}: the answer is larger than {} bytes", call.url, call.max_answer));
    }
    if (code != CURLE_OK) {
      return failure(to_error(code, call.url));
    }
    long status = 0;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &retry_after);
    answer.status = static_cast<int>(status);
    answer.retry_after_seconds = static_cast<int>(std::min<curl_off_t>(retry_after, 3600));
    return answer;
  }

  Easy take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Easy handle = std::move(idle_.back());
        idle_.pop_back();
        return handle;
      }
    }
    return new_handle();
  }
  void give_back(Easy handle) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(handle));
  }

  std::mutex mutex_;
  std::vector<Easy> idle_;
};

}  // namespace

void init_curl() { curl_global_init(CURL_GLOBAL_DEFAULT); }

std::unique_ptr<HttpTransport> make_curl_transport() { return std::make_unique<CurlTransport>(); }

Download make_curl_download() {
  return [](const std::string& url, const ByteSink& sink, const std::stop_token& stop) -> Status {
    const Easy handle = new_handle();
    Transfer transfer{.sink = sink, .stop = stop};
    set_common(handle.get(), url, transfer);
    curl_easy_setopt(handle.get(), CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(handle.get(), CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(handle.get(), CURLOPT_MAXREDIRS, 5L);
    curl_easy_setopt(handle.get(), CURLOPT_REDIR_PROTOCOLS_STR,
                     url.starts_with("https") ? "https" : "http,https");
    curl_easy_setopt(handle.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle.get(), CURLOPT_LOW_SPEED_TIME, 60L);
    const CURLcode code = curl_easy_perform(handle.get());
    if (code == CURLE_HTTP_RETURNED_ERROR) {
      long status = 0;
      curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
      return failure(status >= 500 || status == 429 ? Code::kUnavailable : Code::kNotFound,
                     fmt::format("data set {}: HTTP status {}", url, status));
    }
    if (transfer.out_of_memory) {
      throw std::bad_alloc();
    }
    if (transfer.sink_refused) {
      return failure(Code::kResourceExhausted, fmt::format("data set {}: not accepted", url));
    }
    if (code != CURLE_OK) {
      return failure(to_error(code, url).with_context("data set"));
    }
    return {};
  };
}

}  // namespace eldr::calibrator
