// SPDX-License-Identifier: Apache-2.0
// The client's side of one exchange: its connection, and the news that it has gone.
#pragma once

#include "router/server/upstream.h"

namespace eldr::router {

/// Implemented by the session that owns the connection. Used on its thread only.
class ClientLink {
 public:
  virtual ~ClientLink() = default;
  virtual Stream& stream() = 0;
  /// The client closed its connection while its request was in the router.
  virtual bool gone() const = 0;
  /// The call to cancel at once when the client goes; null: none.
  virtual void set_call(UpstreamCall* call) = 0;
  /// Begins to watch for the client's going; the request's body must have been read.
  virtual void watch() = 0;
};

/// Registers a call with a link for as long as the guard lives.
class ActiveCall {
 public:
  ActiveCall(ClientLink& link, UpstreamCall& call) : link_(link) { link_.set_call(&call); }
  ~ActiveCall() { link_.set_call(nullptr); }
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

 private:
  ClientLink& link_;
};

}  // namespace eldr::router
