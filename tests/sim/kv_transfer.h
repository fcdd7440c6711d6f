// SPDX-License-Identifier: Apache-2.0
// The two sides of a KV transfer: what a prefill answer offers, and what a decode worker does with the offer.
// Where vLLM talks NIXL, simulated workers talk HTTP: POST /sim/kv/pull on the prefill worker.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "lib/base/status.h"
#include "lib/http/server.h"
#include "tests/sim/api.h"
#include "tests/sim/worker_state.h"

namespace eldr::sim {

/// Turns a finished prefill into a lease; the kv_transfer_params of the answer, without the eldr key.
nlohmann::json offer_kv(WorkerState& state, const Prompt& prompt, const std::string& request_id,
                        const http::Request& request);

/// Fetches what `kv` names. An error is what makes the request fail, as a failed KV load does in vLLM.
Status pull_kv(WorkerState& state, const KvParams& kv, const Prompt& prompt, const http::Request& request);

/// POST /sim/kv/pull.
void serve_pull(WorkerState& state, const http::Request& request, http::ResponseWriter& writer);

}  // namespace eldr::sim
