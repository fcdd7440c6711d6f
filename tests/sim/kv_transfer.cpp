// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/kv_transfer.h"

#include <nlohmann/json.hpp>

#include "lib/http/client.h"

namespace eldr::sim {
namespace {

using nlohmann::json;

constexpr auto kPullDeadline = std::chrono::seconds(5);

// Travels as text: JSON numbers of other parsers may not hold 64 bits.
std::string hash_of(const Prompt& prompt) { return WorkerState::hex(hash_text(prompt.text)); }

}  // namespace

json offer_kv(WorkerState& state, const Prompt& prompt, const std::string& request_id,
              const http::Request& request) {
  Lease lease;
  lease.tokens = static_cast<std::uint32_t>(prompt.tokens.size());
  lease.blocks = blocks_for(lease.tokens);
  lease.prompt_hash = hash_text(prompt.text);
  lease.request_id = std::string(request.header("x-request-id"));
  json block_ids = json::array();
  const std::uint64_t first = hash_text(request_id) % state.options.kv_blocks;
  for (std::uint32_t i = 0; i < lease.blocks; ++i) {
    block_ids.push_back((first + i) % state.options.kv_blocks);
  }
  json params = {{"do_remote_prefill", true},
                 {"do_remote_decode", false},
                 {"remote_block_ids", json::array({std::move(block_ids)})},
                 {"remote_engine_id", state.engine_id},
                 {"remote_request_id", request_id},
                 {"remote_host", state.options.advertise_host.empty() ? request.local_address
                                                                      : state.options.advertise_host},
                 {"remote_port", state.port.load()},
                 {"tp_size", 1},
                 {"dcp_size", 1},
                 {"pp_size", 1},
                 {"remote_num_tokens", lease.tokens},
                 {"remote_blocks_expiry_time", nullptr},
                 {"transfer_mode", "pull"},
                 {"remote_prefill_cached_tokens", 0}};
  state.leases.hold(request_id, std::move(lease));
  return params;
}

Status pull_kv(WorkerState& state, const KvParams& kv, const Prompt& prompt, const http::Request& request) {
  http::ClientRequest pull{
      kv.remote_host, kv.remote_port, "POST", "/sim/kv/pull", {{"Content-Type", "application/json"}}, {}};
  pull.body =
      json{{"remote_engine_id", kv.remote_engine_id}, {"remote_request_id", kv.remote_request_id}}.dump(
          -1, ' ', false, json::error_handler_t::replace);
  const auto answer = http::fetch(pull, {kPullDeadline, 1U << 20U});
  if (!answer) {
    state.stats.count("kv_pull_unreachable");
    return failure(answer.error());
  }
  if (answer->status != 200) {
    state.stats.count("kv_pull_refused");
    return failure(Code::kNotFound, "the prefill worker has no such blocks: " + answer->body);
  }
  const json held = json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (!held.is_object() || held.value("prompt_hash", "") != hash_of(prompt)) {
    state.stats.count("kv_of_another_prompt");
    return failure(Code::kInvalid, "the blocks are those of another prompt");
  }
  if (held.value("request_id", "") != std::string(request.header("x-request-id"))) {
    state.stats.count("request_id_differs");  // allowed by vLLM, but it breaks tracing through both legs
  }
  state.stats.count("kv_pulled");
  return {};
}

void serve_pull(WorkerState& state, const http::Request& request, http::ResponseWriter& writer) {
  const json body = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  const auto text = [&](const char* name) {
    return body.is_object() && body.contains(name) && body[name].is_string() ? body[name].get<std::string>()
                                                                             : std::string();
  };
  Result<Lease> lease = failure(Code::kNotFound, "remote_engine_id \"" + text("remote_engine_id") +
                                                     "\": this is \"" + state.engine_id + "\"");
  if (text("remote_engine_id") == state.engine_id) {
    lease = state.leases.pull(text("remote_request_id"));
  }
  if (!lease) {
    (void)writer.respond(404, "text/plain", lease.error().message + "\n");
    return;
  }
  const json held = {{"tokens", lease->tokens},
                     {"prompt_hash", WorkerState::hex(lease->prompt_hash)},
                     {"request_id", lease->request_id}};
  (void)writer.respond(200, "application/json", held.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace eldr::sim
