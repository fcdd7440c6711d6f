// SPDX-License-Identifier: Apache-2.0
// One request from its head to the last byte of its answer: body, prefill leg, decision, decode leg, relay.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/protocol/legs.h"
#include "router/routing/decision.h"
#include "router/server/client_link.h"
#include "router/server/request_body.h"
#include "router/server/shared.h"

namespace eldr::router {

/// Lives for one request, on one thread.
///
/// Its coroutines take references to named objects of their caller, never temporaries: GCC 12 may destroy a
/// temporary of a co_await expression twice.
class Exchange {
 public:
  Exchange(ThreadContext& thread, ClientLink& client, RequestHead head);

  /// Answers the request, whatever happens. True: the connection is fit for another request.
  Async<bool> run();

 private:
  Route route() const;
  Async<void> serve();
  Async<bool> take_body();
  Async<void> complete(Api api);
  Async<void> pass_through();

  // Prefill leg.
  Async<bool> prefill(const JsonObject& body, const RequestShape& shape, Api api, PrefillAnswer& answer);

  // Decode leg.
  Async<void> decode(const std::vector<std::string_view>& body, std::size_t body_size, const Signal& signal);
  Async<void> relay(UpstreamCall& call, WorkerLease& lease);
  std::string answer_head(const ResponseHead& answer, const BodyFraming& framing, bool dechunk);

  // The client's side.
  Async<void> refuse(int status, const std::string& message, std::optional<Refusal> refusal);
  Async<void> give_up(Role role, const std::string& worker, CallEnd end);
  Async<void> answer_whole(const ResponseHead& answer, const std::string& body);
  Async<Io> write_to_client(const std::vector<std::string_view>& pieces);
  void break_stream(const BodyFraming& framing, bool dechunk, Breaker breaker);
  void note_gone(Gone stage);

  std::string request_head(std::string_view authority, std::size_t body_size, Role role) const;
  void worker_failed(WorkerLease& lease);
  void note_timeout(CallEnd end, Stage stage);
  Clock::Steady due(Milliseconds wait) const;

  ThreadContext& thread_;
  ServerShared& shared_;
  ClientLink& client_;
  const RequestHead head_;
  const std::shared_ptr<const Routing> routing_;
  const std::shared_ptr<const WorkerSet> workers_;
  const Clock::Steady began_;
  const Clock::Steady total_due_;
  const bool wants_debug_;
  std::string request_id_;
  RequestBody body_;
  bool keep_alive_;
  bool body_read_ = false;
  int status_ = 0;  ///< answered; 0: nothing was
  http::Headers debug_;
};

}  // namespace eldr::router
