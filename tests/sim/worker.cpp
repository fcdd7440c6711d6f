// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/worker.h"

#include <map>

#include <nlohmann/json.hpp>

#include "tests/sim/generation.h"
#include "tests/sim/kv_transfer.h"
#include "tests/sim/tokens.h"
#include "tests/sim/worker_state.h"

namespace eldr::sim {
namespace {

using nlohmann::json;
constexpr std::string_view kJson = "application/json";

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string_view name_of(Role role) {
  return role == Role::kPrefill ? "prefill" : role == Role::kDecode ? "decode" : "engine";
}

class Worker::Impl {
 public:
  Impl(WorkerOptions options, const ExpertModel& model, const Clock& clock, WorkerHooks hooks)
      : state_(std::move(options), model, clock, std::move(hooks)) {
    state_.port = state_.options.advertise_port;
    for (const Fault& fault : state_.options.faults) {
      set_fault(fault);
    }
  }

  void handle(const http::Request& request, http::ResponseWriter& writer) {
    const auto path = routes_.find(request.path);
    if (path == routes_.end()) {
      (void)writer.respond(404, kJson, R"({"detail":"Not Found"})");
      return;
    }
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    if (method != path->second.method) {
      (void)writer.respond(405, kJson, R"({"detail":"Method Not Allowed"})",
                           {{"Allow", path->second.method}});
      return;
    }
    (this->*path->second.handler)(request, writer);
  }

  WorkerState& state() { return state_; }

 private:
  using Route = void (Impl::*)(const http::Request&, http::ResponseWriter&);
  struct Entry {
    std::string method;
    Route handler;
  };

  void completions(const http::Request& request, http::ResponseWriter& writer) {
    generate(state_, Endpoint::kCompletions, request, writer);
  }
  void chat(const http::Request& request, http::ResponseWriter& writer) {
    generate(state_, Endpoint::kChat, request, writer);
  }
  void pull(const http::Request& request, http::ResponseWriter& writer) {
    serve_pull(state_, request, writer);
  }

  void models(const http::Request& /*request*/, http::ResponseWriter& writer) {
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::seconds>(state_.clock.wall().time_since_epoch()).count();
    const json model = {{"id", state_.options.model},
                        {"object", "model"},
                        {"created", now},
                        {"owned_by", "vllm"},
                        {"root", state_.options.model},
                        {"parent", nullptr},
                        {"max_model_len", state_.options.max_model_len},
                        {"permission", json::array()}};
    (void)writer.respond(200, kJson, dump({{"object", "list"}, {"data", json::array({model})}}));
  }

  void health(const http::Request& /*request*/, http::ResponseWriter& writer) {
    (void)writer.respond(state_.faults.look("unhealthy") ? 503 : 200, "", "");
  }

  void version(const http::Request& /*request*/, http::ResponseWriter& writer) {
    (void)writer.respond(200, kJson, R"({"version":"0.32.0"})");
  }

  void load(const http::Request& /*request*/, http::ResponseWriter& writer) {
    (void)writer.respond(200, kJson, dump({{"server_load", state_.generating.load()}}));
  }

  void tokenize_text(const http::Request& request, http::ResponseWriter& writer) {
    const auto prompt = parse_tokenize(request.body);
    if (!prompt) {
      (void)writer.respond(prompt.error().status, kJson, prompt.error().to_json());
      return;
    }
    (void)writer.respond(200, kJson,
                         dump({{"count", prompt->tokens.size()},
                               {"max_model_len", state_.options.max_model_len},
                               {"tokens", prompt->tokens},
                               {"token_strs", nullptr}}));
  }

  void metrics(const http::Request& /*request*/, http::ResponseWriter& writer) {
    state_.leases.expire();
    const std::string text =
        state_.metrics.text({state_.engine.running(), state_.engine.waiting(), kv_usage()});
    (void)writer.respond(200, "text/plain; version=0.0.4; charset=utf-8", text);
  }

  void stats(const http::Request& /*request*/, http::ResponseWriter& writer) {
    const auto leases = state_.leases.totals();
    json out = state_.stats.to_json();
    out["role"] = name_of(state_.options.role);
    out["model"] = state_.options.model;
    out["in_flight"] = state_.generating.load();
    out["running"] = state_.engine.running();
    out["waiting"] = state_.engine.waiting();
    out["kv"] = {{"blocks", state_.pool.total()}, {"used", state_.pool.used()}};
    out["leases"] = {
        {"now", leases.now}, {"held", leases.held}, {"pulled", leases.pulled}, {"expired", leases.expired}};
    out["faults"] = json::array();
    for (const auto& [kind, fault] : state_.faults.all()) {
      out["faults"].push_back(kind);
    }
    (void)writer.respond(200, kJson, dump(out));
  }

  void reset(const http::Request& /*request*/, http::ResponseWriter& writer) {
    state_.stats.reset();
    (void)writer.respond(200, kJson, "{}");
  }

  void fault(const http::Request& request, http::ResponseWriter& writer) {
    const auto parsed = parse_fault_json(request.body);
    if (!parsed) {
      (void)writer.respond(400, kJson,
                           ApiError{400, "BadRequestError", parsed.error().message, ""}.to_json());
      return;
    }
    if (parsed->kind == "die" && !parsed->has_after) {
      state_.hooks.die();
    }
    set_fault(*parsed);
    (void)writer.respond(200, kJson, "{}");
  }

  void set_fault(const Fault& fault) {
    if (fault.kind == "refuse") {
      state_.hooks.refuse_connections(
          std::chrono::milliseconds(static_cast<std::int64_t>(fault.seconds * 1000)));
      return;
    }
    state_.faults.set(fault);
    const auto slow = state_.faults.look("slow");
    state_.engine.set_slowdown(slow ? slow->factor : 1.0);
  }

  double kv_usage() const { return static_cast<double>(state_.pool.used()) / state_.pool.total(); }

  WorkerState state_;
  const std::map<std::string, Entry> routes_{
      {"/v1/completions", {"POST", &Impl::completions}},
      {"/v1/chat/completions", {"POST", &Impl::chat}},
      {"/v1/models", {"GET", &Impl::models}},
      {"/health", {"GET", &Impl::health}},
      {"/version", {"GET", &Impl::version}},
      {"/load", {"GET", &Impl::load}},
      {"/tokenize", {"POST", &Impl::tokenize_text}},
      {"/metrics", {"GET", &Impl::metrics}},
      {"/sim/stats", {"GET", &Impl::stats}},
      {"/sim/reset", {"POST", &Impl::reset}},
      {"/sim/fault", {"POST", &Impl::fault}},
      {"/sim/kv/pull", {"POST", &Impl::pull}},
  };
};

Worker::Worker(WorkerOptions options, const ExpertModel& model, const Clock& clock, WorkerHooks hooks)
    : impl_(std::make_unique<Impl>(std::move(options), model, clock, std::move(hooks))) {}
Worker::~Worker() = default;
void Worker::handle(const http::Request& request, http::ResponseWriter& writer) {
  impl_->handle(request, writer);
}
void Worker::set_advertise_port(std::uint16_t port) { impl_->state().port = port; }

}  // namespace eldr::sim
