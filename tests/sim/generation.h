// SPDX-License-Identifier: Apache-2.0
// One generation request from its body to its last byte.
#pragma once

#include "lib/http/server.h"
#include "tests/sim/api.h"
#include "tests/sim/worker_state.h"

namespace eldr::sim {

/// POST /v1/completions and /v1/chat/completions.
void generate(WorkerState& state, Endpoint endpoint, const http::Request& request,
              http::ResponseWriter& writer);

}  // namespace eldr::sim
