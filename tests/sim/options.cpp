// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/options.h"

#include <numeric>
#include <sstream>

#include <CLI/CLI.hpp>

#include "lib/base/command_line.h"
#include "lib/base/exit_code.h"
#include "lib/base/version.h"
#include "lib/http/listen_address.h"
#include "lib/signature/counts.h"

namespace eldr::sim {
namespace {

struct Raw {
  std::string role = "decode";
  std::string listen = "0.0.0.0:8000";
  std::uint32_t layers = 8;
  std::uint32_t first_layer = 0;
  double lease_seconds = 30;
  double lame_duck_seconds = 0;
  double drain_seconds = 30;
  std::vector<std::string> faults;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

void declare(CLI::App& app, Raw& raw, ProgramOptions& o) {
  const auto day = CLI::Range(0.0, 86'400.0);
  app.set_version_flag("--version", std::string("eldr-sim-worker ") + std::string(kVersion));
  app.add_option("--role", raw.role, "prefill, decode or engine")
      ->check(CLI::IsMember({"prefill", "decode", "engine"}))
      ->capture_default_str();
  app.add_option("--listen", raw.listen, "address and port")->capture_default_str();
  app.add_option("--model", o.worker.model, "name under which the model is served")->capture_default_str();
  app.add_option("--max-model-len", o.worker.max_model_len, "tokens of prompt and answer")
      ->check(CLI::Range(2, 1'000'000))
      ->capture_default_str();

  app.add_option("--layers", raw.layers, "simulated MoE layers")
      ->check(CLI::Range(std::size_t{1}, signature::kMaxLayers))
      ->group("Model")
      ->capture_default_str();
  app.add_option("--first-layer", raw.first_layer, "model layer number of the first of them")
      ->check(CLI::Range(0, 1000))
      ->group("Model")
      ->capture_default_str();
  app.add_option("--experts", o.shape.experts, "experts a layer")
      ->check(CLI::Range(std::size_t{1}, signature::kMaxExperts))
      ->group("Model")
      ->capture_default_str();
  app.add_option("--top-k", o.shape.top_k, "experts a token")
      ->check(CLI::Range(1, 64))
      ->group("Model")
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the model: the same in all its workers")
      ->group("Model")
      ->capture_default_str();
  app.add_option("--trace", o.trace, "take experts from a recorded trace (eldr-trace/1) instead of profiles")
      ->group("Model");

  app.add_option("--step-a-us", o.worker.cost.step_a_us,
                 "a layer's time in a step, microseconds, without experts")
      ->check(CLI::NonNegativeNumber)
      ->group("Time")
      ->capture_default_str();
  app.add_option("--step-b-us", o.worker.cost.step_b_us, "more for each distinct active expert")
      ->check(CLI::NonNegativeNumber)
      ->group("Time")
      ->capture_default_str();
  app.add_option("--layer-scale", o.worker.cost.layer_scale, "layers that one simulated layer stands for")
      ->check(CLI::NonNegativeNumber)
      ->group("Time")
      ->capture_default_str();
  app.add_option("--prefill-us", o.worker.cost.prefill_us, "time of a prompt token, microseconds")
      ->check(CLI::NonNegativeNumber)
      ->group("Time")
      ->capture_default_str();
  app.add_option("--time-scale", o.worker.cost.time_scale, "all times are multiplied by this")
      ->check(CLI::PositiveNumber)
      ->group("Time")
      ->capture_default_str();

  app.add_option("--max-batch", o.worker.batch.max_running, "sequences in a step")
      ->check(CLI::Range(1, 4096))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--max-waiting", o.worker.batch.max_waiting, "sequences that wait; more get 503")
      ->check(CLI::Range(1, 1'000'000))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--kv-blocks", o.worker.kv_blocks, "KV cache blocks of 16 tokens")
      ->check(CLI::Range(1, 10'000'000))
      ->group("Limits")
      ->capture_default_str();
  app.add_option("--max-connections", o.server.max_connections, "open connections; more get 503")
      ->check(CLI::Range(1, 8192))
      ->group("Limits")
      ->capture_default_str();

  app.add_option("--lease-seconds", raw.lease_seconds,
                 "how long a prefill worker keeps blocks for a decode worker")
      ->check(day)
      ->group("KV transfer")
      ->capture_default_str();
  app.add_option("--advertise-host", o.worker.advertise_host,
                 "where decode workers reach this one; default: the address that the request came to")
      ->group("KV transfer");

  app.add_option("--fault", raw.faults,
                 "KIND[:NAME=VALUE,…], may be repeated; tests/sim/README.md lists the kinds")
      ->group("Faults");
  app.add_option("--lame-duck-seconds", raw.lame_duck_seconds, "go on accepting for so long after SIGTERM")
      ->check(day)
      ->group("End")
      ->capture_default_str();
  app.add_option("--drain-seconds", raw.drain_seconds, "let running requests end for so long after that")
      ->check(day)
      ->group("End")
      ->capture_default_str();
  app.add_option("--log-format", o.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--log-level", o.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

Status complete(const Raw& raw, ProgramOptions& o) {
  const auto address = http::parse_listen_address(raw.listen);
  if (!address) {
    return failure(address.error().with_context("--listen"));
  }
  o.server.address = address->address;
  o.server.port = address->port;
  o.worker.role = raw.role == "prefill"  ? Role::kPrefill
                  : raw.role == "engine" ? Role::kEngine
                                         : Role::kDecode;
  if (o.shape.top_k > o.shape.experts) {
    return failure(Code::kInvalid, "--top-k " + std::to_string(o.shape.top_k) +
                                       ": allowed are 1 to the number of experts, " +
                                       std::to_string(o.shape.experts));
  }
  o.shape.layers.resize(raw.layers);
  std::iota(o.shape.layers.begin(), o.shape.layers.end(), static_cast<std::int32_t>(raw.first_layer));
  o.worker.lease = milliseconds(raw.lease_seconds);
  o.lame_duck = milliseconds(raw.lame_duck_seconds);
  o.drain = milliseconds(raw.drain_seconds);
  for (const std::string& text : raw.faults) {
    auto fault = parse_fault(text);
    if (!fault) {
      return failure(fault.error().with_context("--fault"));
    }
    o.worker.faults.push_back(std::move(*fault));
  }
  return {};
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"A simulated vLLM worker of a mixture-of-experts model.", "eldr-sim-worker"};
  Raw raw;
  ProgramOptions options;
  options.server.max_connections = 1024;
  declare(app, raw, options);
  try {
    app.parse(words_last_first(argc, argv));
  } catch (const CLI::ParseError& e) {
    std::ostringstream out;
    const int code = app.exit(e, out, out);
    return {std::nullopt, code == 0 ? kExitOk : kExitUsage, out.str()};
  }
  if (const Status status = complete(raw, options); !status) {
    return {std::nullopt, kExitUsage, status.error().message + "\n"};
  }
  return {std::move(options), kExitOk, ""};
}

}  // namespace eldr::sim
