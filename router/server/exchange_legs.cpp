// SPDX-License-Identifier: Apache-2.0
// The two legs of an exchange.
//
// A leg is tried on another worker when the one before could not be reached, broke off, or answered 5xx or
// 429, as long as the client has seen no byte. A wait that ran out is not tried again: the client has waited
// long enough. When every attempt failed and a worker's answer is at hand, the client gets that answer.
//
// A client that leaves during a leg ends that leg's call at once. One that leaves between the legs leaves the
// prefill worker's blocks to their lease (30 s by default in vLLM): starting a decode only to abort it would
// cost the decode worker a transfer to win seconds of memory on the prefill worker.
#include <cstdio>

#include "router/server/exchange.h"

namespace eldr::router {
namespace {

constexpr std::size_t kMaxErrorBody = 1U << 20U;

bool may_try_another(int status) { return status >= 500 || status == 429; }
bool is_retryable(CallEnd end) { return end != CallEnd::kTimeout && end != CallEnd::kTooLarge; }

std::string three_digits(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(value));
  return text;
}

/// An error answer kept in case nothing better comes.
struct KeptAnswer {
  ResponseHead head;
  std::string body;
};

std::string last_of(const std::vector<WorkerPtr>& tried) { return tried.empty() ? "" : tried.back()->id; }

}  // namespace

void Exchange::worker_failed(WorkerLease& lease) {
  const Role role = lease->role;
  if (lease.failed(shared_.clock.steady())) shared_.metrics.ejected(role);
}

void Exchange::note_timeout(CallEnd end, Stage stage) {
  if (end == CallEnd::kConnectTimeout) return shared_.metrics.deadline(Stage::kConnect);
  if (end != CallEnd::kTimeout) return;
  shared_.metrics.deadline(shared_.clock.steady() >= total_due_ ? Stage::kTotal : stage);
}

Async<bool> Exchange::prefill(const JsonObject& body, const RequestShape& shape, Api api,
                              PrefillAnswer& answer) {
  const auto leg_began = shared_.clock.steady();
  const SplicedBody spliced = prefill_body(body, api, routing_->wanted_layers);
  std::vector<WorkerPtr> tried;
  std::optional<KeptAnswer> kept;
  CallEnd last = CallEnd::kNoConnection;
  while (tried.size() < shared_.limits.attempts) {
    const auto chosen =
        choose_prefill(*routing_, *workers_, shape.prompt, tried, shared_.clock.steady(), thread_.draw());
    if (!chosen.worker) break;
    if (chosen.failed_open) shared_.metrics.failed_open(Role::kPrefill);
    if (!tried.empty()) shared_.metrics.retried(Role::kPrefill);
    tried.push_back(chosen.worker);
    WorkerLease lease(chosen.worker, shared_.clock.steady());
    const auto answer_due = due(shared_.timeouts.prefill);
    UpstreamCall call(thread_.upstream(), lease->host, lease->port, lease->authority);
    const ActiveCall active(client_, call);
    const std::string head = request_head(lease->authority, spliced.size(), Role::kPrefill);
    last = co_await call.ask(head, spliced.pieces(), answer_due);
    std::string text;
    if (last == CallEnd::kOk) last = co_await call.read_body(text, shared_.limits.prefill_answer, answer_due);
    if (last == CallEnd::kCancelled || client_.gone()) {
      note_gone(last == CallEnd::kOk ? Gone::kBetween : Gone::kPrefill);
      co_return false;
    }
    note_timeout(last, Stage::kPrefill);
    if (last != CallEnd::kOk) {
      worker_failed(lease);
      if (!is_retryable(last)) break;
      continue;
    }
    const int status = call.answer().status;
    if (status == 200) {
      auto read = read_prefill_answer(text);
      if (!read) {
        last = CallEnd::kMalformed;
        worker_failed(lease);
        continue;
      }
      lease.succeeded();
      answer = std::move(*read);
      if (wants_debug_) debug_.emplace_back("X-Eldr-Prefill-Worker", lease->id);
      const std::chrono::duration<double> took = shared_.clock.steady() - leg_began;
      shared_.metrics.prefill_leg(took.count());
      co_return true;
    }
    kept = KeptAnswer{call.answer(), std::move(text)};
    if (status >= 500)
      worker_failed(lease);
    else
      lease.succeeded();
    if (!may_try_another(status)) break;
  }
  if (kept) {
    co_await answer_whole(kept->head, kept->body);
  } else {
    const std::string asked = last_of(tried);
    co_await give_up(Role::kPrefill, asked, last);
  }
  co_return false;
}

Async<void> Exchange::decode(const std::vector<std::string_view>& body, std::size_t body_size,
                             const Signal& signal) {
  std::vector<WorkerPtr> tried;
  std::optional<KeptAnswer> kept;
  CallEnd last = CallEnd::kNoConnection;
  const auto prefill_headers = debug_.size();
  while (tried.size() < shared_.limits.attempts) {
    const auto chosen =
        choose_decode(*routing_, *workers_, signal, tried, shared_.clock.steady(), thread_.draw());
    if (!chosen.worker) break;
    if (chosen.failed_open) shared_.metrics.failed_open(Role::kDecode);
    if (!tried.empty()) shared_.metrics.retried(Role::kDecode);
    tried.push_back(chosen.worker);
    WorkerLease lease(chosen.worker, shared_.clock.steady());
    if (route() != Route::kOther)
      shared_.metrics.decided(signal.reason, chosen, name_of(routing_->config.policy));
    if (wants_debug_) {
      debug_.resize(prefill_headers);
      debug_.emplace_back("X-Eldr-Worker", lease->id);
      if (chosen.cluster) debug_.emplace_back("X-Eldr-Cluster", std::to_string(*chosen.cluster));
      if (chosen.similarity) debug_.emplace_back("X-Eldr-Similarity", three_digits(*chosen.similarity));
      if (chosen.best) debug_.emplace_back("X-Eldr-Best-Similarity", three_digits(*chosen.best));
      debug_.emplace_back("X-Eldr-Band", std::to_string(chosen.band));
      debug_.emplace_back("X-Eldr-Policy", std::string(name_of(routing_->config.policy)));
      debug_.emplace_back("X-Eldr-Reason", std::string(name_of(signal.reason)));
    }
    UpstreamCall call(thread_.upstream(), lease->host, lease->port, lease->authority);
    const ActiveCall active(client_, call);
    const std::string head = request_head(lease->authority, body_size, Role::kDecode);
    last = co_await call.ask(head, body, due(shared_.timeouts.first_byte));
    const bool is_head = head_.method == "HEAD";  // whose answers have nothing to keep
    if (last == CallEnd::kOk && (is_head || !may_try_another(call.answer().status))) {
      lease.succeeded();
      co_await relay(call, lease);
      co_return;
    }
    std::string text;
    if (last == CallEnd::kOk)
      last = co_await call.read_body(text, kMaxErrorBody, due(shared_.timeouts.first_byte));
    if (last == CallEnd::kCancelled || client_.gone()) {
      note_gone(Gone::kDecode);
      co_return;
    }
    note_timeout(last, Stage::kFirstByte);
    if (last == CallEnd::kOk) kept = KeptAnswer{call.answer(), std::move(text)};
    if (last == CallEnd::kOk && kept->head.status == 429)
      lease.succeeded();
    else
      worker_failed(lease);
    if (!is_retryable(last)) break;
  }
  if (kept) {
    co_await answer_whole(kept->head, kept->body);
  } else {
    const std::string asked = last_of(tried);
    co_await give_up(Role::kDecode, asked, last);
  }
}

Async<void> Exchange::relay(UpstreamCall& call, WorkerLease& lease) {
  BodyFraming framing = call.answer().framing(head_.method == "HEAD");
  const bool dechunk = head_.version == 10 && framing.is_chunked();
  std::string head = answer_head(call.answer(), framing, dechunk);
  status_ = call.answer().status;
  Stream& worker = call.stream();
  std::vector<std::string_view> pieces = {head};
  bool first = true;
  for (;;) {
    const auto bytes = worker.pending();
    const auto step = framing.feed(bytes, dechunk ? &pieces : nullptr);
    if (step.malformed) break;
    if (!dechunk && step.consumed > 0) pieces.push_back(bytes.substr(0, step.consumed));
    if (!pieces.empty()) {
      const Io io = co_await write_to_client(pieces);
      if (io != Io::kOk) {
        if (io == Io::kTimeout) shared_.metrics.deadline(Stage::kWrite);
        note_gone(Gone::kDecode);
        shared_.metrics.stream_broken(io == Io::kTimeout ? Breaker::kDeadline : Breaker::kClient);
        co_return;
      }
    }
    if (first) {
      const std::chrono::duration<double> took = shared_.clock.steady() - began_;
      shared_.metrics.first_byte(took.count());
      first = false;
    }
    pieces.clear();
    worker.consume(step.consumed);
    if (framing.done()) {
      call.finish(framing);
      co_return;
    }
    worker.deadline().arm_until(due(shared_.timeouts.idle));
    const Io io = co_await worker.read_some();
    if (call.cancelled()) {
      note_gone(Gone::kDecode);
      shared_.metrics.stream_broken(Breaker::kClient);
      co_return;
    }
    if (io == Io::kClosed && framing.is_until_close()) {
      call.finish(framing);
      co_return;
    }
    if (io == Io::kTimeout) {
      note_timeout(CallEnd::kTimeout, Stage::kIdle);
      worker_failed(lease);
      break_stream(framing, dechunk, Breaker::kDeadline);
      co_return;
    }
    if (io != Io::kOk) break;
  }
  worker_failed(lease);
  break_stream(framing, dechunk, Breaker::kDecodeWorker);
}

}  // namespace eldr::router
