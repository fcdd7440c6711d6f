// SPDX-License-Identifier: Apache-2.0
// The two legs of vLLM's NIXL pull connector: what the prefill worker is sent, what its answer carries, what
// the decode worker is sent. Parameters of the transfer are relayed as the bytes they came in, so that keys
// of versions to come pass; only the `eldr` key is taken out on the way.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/status.h"
#include "lib/signature/counts.h"
#include "router/protocol/request_shape.h"
#include "router/protocol/splice.h"

namespace eldr::router {

/// The client's body, capped to one token, not streamed, asking for a transfer. `wanted_layers` is a JSON
/// list of model layer numbers whose counts the prefill worker should send, or empty: nothing is asked for.
SplicedBody prefill_body(const JsonObject& body, Api api, std::string_view wanted_layers);

/// The client's body with the transfer's parameters in place of whatever the client sent under that name.
/// `transfer` empty: without any, the worker prefills by itself.
SplicedBody decode_body(const JsonObject& body, std::string_view transfer);

/// What a prefill answer holds for the next leg.
struct PrefillAnswer {
  std::string transfer;  ///< the kv_transfer_params object without `eldr`; empty: the answer had none
  std::optional<std::string> eldr;  ///< raw bytes of `kv_transfer_params.eldr`, when there
};

/// kInvalid when the answer is not a JSON object or kv_transfer_params is neither object nor null.
Result<PrefillAnswer> read_prefill_answer(std::string_view answer);

/// `raw`, the bytes of an `eldr` object, decoded and checked. kInvalid names the field.
Result<signature::ExpertCounts> read_eldr_counts(std::string_view raw);

}  // namespace eldr::router
