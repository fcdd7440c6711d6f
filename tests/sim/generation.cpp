// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/generation.h"

#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "tests/sim/answers.h"
#include "tests/sim/eldr_key.h"
#include "tests/sim/kv_transfer.h"
#include "tests/sim/text_profile.h"
#include "tests/sim/tokens.h"

namespace eldr::sim {
namespace {

using nlohmann::json;

// How often a waiting connection looks whether its client is still there.
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr std::string_view kJson = "application/json";

void respond(http::ResponseWriter& writer, const ApiError& error) {
  (void)writer.respond(error.status, kJson, error.to_json());
}

// The length at which the simulated model ends an answer of its own accord.
std::uint32_t natural_length(std::uint64_t seed) {
  return 40 + static_cast<std::uint32_t>(hash_text("length", seed) % 360);
}

class Generation {
 public:
  Generation(WorkerState& state, GenerationRequest request, const http::Request& http,
             http::ResponseWriter& writer)
      : state_(state), request_(std::move(request)), http_(http), writer_(writer) {
    const bool chat = request_.endpoint == Endpoint::kChat;
    const std::string_view given = http.header("x-request-id");
    head_ = {request_.endpoint,
             (chat ? "chatcmpl-" : "cmpl-") + (given.empty() ? state.next_id() : std::string(given)),
             state.options.model,
             std::chrono::duration_cast<std::chrono::seconds>(state.clock.wall().time_since_epoch()).count()};
    for (const Prompt& prompt : request_.prompts) {
      profiles_.push_back(profile_of(prompt.text));
      usage_.prompt_tokens += prompt.tokens.size();
    }
  }
  ~Generation() { cancel(); }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  void run() {
    if (const auto error = check()) {
      respond(writer_, *error);
      return;
    }
    const bool pulls = request_.kv.do_remote_prefill && transfers();
    if (pulls && !pull()) {
      return;
    }
    if (!submit(pulls)) {
      respond(writer_, {503, "ServiceUnavailableError", "The waiting queue is full", ""});
      return;
    }
    if (request_.stream) {
      stream();
    } else {
      answer_whole();
    }
  }

 private:
  bool transfers() const { return state_.options.role != Role::kEngine; }
  bool returns_experts() const { return state_.options.role == Role::kEngine; }

  std::optional<ApiError> check() const {
    if (!request_.model.empty() && request_.model != state_.options.model) {
      return ApiError{404, "NotFoundError", "The model `" + request_.model + "` does not exist.", "model"};
    }
    for (const Prompt& prompt : request_.prompts) {
      const std::uint64_t wanted = prompt.tokens.size() + request_.max_tokens.value_or(1);
      if (wanted > state_.options.max_model_len) {
        return ApiError{
            400, "BadRequestError",
            "This model's maximum context length is " + std::to_string(state_.options.max_model_len) +
                " tokens. However, you requested " + std::to_string(request_.max_tokens.value_or(1)) +
                " output tokens and your prompt contains " + std::to_string(prompt.tokens.size()) +
                " input tokens, for a total of " + std::to_string(wanted) + " tokens.",
            ""};
      }
    }
    return std::nullopt;
  }

  // The decode leg's first act. False: answered with the failure.
  bool pull() {
    if (request_.kv.has_eldr) {
      state_.stats.count("eldr_key_reached_decode");
    }
    if (!request_.kv.complete) {
      // As the connector does: a warning, and the prompt is computed here.
      spdlog::warn("kv_transfer_params lack what a pull needs: prefilling here");
      state_.stats.count("kv_params_incomplete");
      remote_ = false;
      return true;
    }
    const Status pulled = pull_kv(state_, request_.kv, request_.prompts.front(), http_);
    remote_ = pulled.has_value();
    if (pulled) {
      return true;
    }
    spdlog::warn("KV load failed: {}", pulled.error().message);
    state_.stats.count("kv_load_failed");
    if (!request_.stream) {
      respond(writer_, internal_server_error());
    } else if (writer_.start(200, "text/event-stream; charset=utf-8") &&
               writer_.write(EventWriter::error(internal_server_error()) +
                             std::string(EventWriter::done()))) {
      (void)writer_.finish();
    }
    return false;
  }

  bool submit(bool pulls) {
    const std::string_view given_label = http_.header("x-sim-label");
    progress_ = std::make_shared<Progress>(request_.prompts.size() * request_.n);
    for (std::size_t p = 0; p < request_.prompts.size(); ++p) {
      const Prompt& prompt = request_.prompts[p];
      const auto tokens = static_cast<std::uint32_t>(prompt.tokens.size());
      for (std::uint32_t i = 0; i < request_.n; ++i) {
        auto s = std::make_shared<Sequence>();
        s->progress = progress_;
        s->index = sequences_.size();
        s->experts = state_.model.open(prompt.text, profiles_[p], i);
        s->label = given_label.empty() ? std::string(name_of(profiles_[p].domain))
                                       : std::string(given_label.substr(0, 64));
        s->prompt_tokens = tokens;
        s->remote_prefill = pulls && remote_ && p == 0;  // the parameters are the first prompt's
        s->cached_tokens = s->remote_prefill ? 0 : state_.prefix_cache.look_up_and_add(prompt.tokens);
        s->output_tokens = output_length(prompt, i);
        s->keeps_blocks = leaves_kv() && s->index == 0;
        s->records = returns_experts();
        s->arrived = state_.clock.steady();
        state_.metrics.on_prompt(tokens, s->cached_tokens);
        if (i == 0) {
          observe_prompt(p, *s->experts);
        }
        sequences_.push_back(std::move(s));
      }
    }
    return std::all_of(sequences_.begin(), sequences_.end(),
                       [&](const auto& s) { return state_.engine.submit(s); });
  }

  bool leaves_kv() const { return request_.kv.do_remote_decode && state_.options.role == Role::kPrefill; }

  std::uint32_t output_length(const Prompt& prompt, std::uint32_t variant) const {
    const auto room = state_.options.max_model_len - static_cast<std::uint32_t>(prompt.tokens.size());
    const std::uint32_t most = std::min(request_.max_tokens.value_or(room), room);
    if (request_.ignore_eos) {
      return most;
    }
    const std::uint32_t natural = natural_length(hash_text(prompt.text) + variant);
    return std::max(std::min(most, natural), std::min(request_.min_tokens, most));
  }

  // What the gates chose for the prompt's tokens: counted for the router, kept for the calibrator.
  void observe_prompt(std::size_t p, ExpertStream& experts) {
    const bool counts = leaves_kv() && p == 0;
    if (!counts && !returns_experts()) {
      return;
    }
    const ModelShape& shape = state_.model.shape();
    const std::size_t tokens = request_.prompts[p].tokens.size();
    std::vector<std::uint16_t> picks(shape.picks());
    if (counts) {
      counts_.layers = shape.layers;
      counts_.experts = shape.experts;
      counts_.tokens = counts_.counted = static_cast<std::uint32_t>(tokens);
      counts_.counts.assign(shape.layer_count() * shape.experts, 0);
    }
    std::vector<std::uint16_t> rows;
    for (std::size_t t = 0; t < tokens; ++t) {
      experts.next_prompt_token(picks);
      if (counts) {
        for (std::size_t i = 0; i < picks.size(); ++i) {
          ++counts_.counts[i / shape.top_k * shape.experts + picks[i]];
        }
      }
      if (returns_experts()) {
        rows.insert(rows.end(), picks.begin(), picks.end());
      }
    }
    prompt_rows_.push_back(std::move(rows));
  }

  std::string text_of(std::size_t choice, std::uint32_t token) const {
    const std::size_t p = choice / request_.n;
    const std::uint64_t seed = hash_text(request_.prompts[p].text) + choice % request_.n * 1'000'003;
    return token_text(profiles_[p], seed, token);
  }

  std::string_view finish_reason(const Sequence& s) const {
    const bool cut = request_.max_tokens && s.output_tokens == *request_.max_tokens;
    return cut || request_.ignore_eos ? "length" : "stop";
  }

  bool finished(const Progress::Snapshot& now) const {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      if (now.tokens[i] < sequences_[i]->output_tokens) {
        return false;
      }
    }
    return true;
  }

  void cancel() {
    for (const auto& s : sequences_) {
      s->cancelled = true;
    }
  }

  // True: the connection was dropped or the process is about to end.
  bool breaks_off(std::uint32_t tokens) {
    if (const auto fault = state_.faults.look("die"); fault && fault->has_after && tokens >= fault->after) {
      state_.hooks.die();
      return true;
    }
    if (drop_ && tokens >= drop_->after) {
      state_.stats.count("fault_drop");
      writer_.abort();
      return true;
    }
    return false;
  }

  void answer_whole() {
    drop_ = state_.faults.strike("drop");
    std::uint64_t version = 0;
    Progress::Snapshot now;
    do {
      now = progress_->wait(version, kLook);
      if (now.failed || writer_.client_gone()) {
        if (now.failed) {
          respond(writer_, internal_server_error());
        }
        state_.stats.count(now.failed ? "engine_stopped" : "client_gone");
        return;
      }
      if (breaks_off(now.tokens.front())) {
        return;
      }
    } while (!finished(now));

    std::vector<Choice> choices(sequences_.size());
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      const Sequence& s = *sequences_[i];
      if (request_.echo && request_.endpoint == Endpoint::kCompletions) {
        choices[i].text = request_.prompts[i / request_.n].text;
      }
      for (std::uint32_t t = 0; t < s.output_tokens; ++t) {
        choices[i].text += text_of(i, t);
      }
      choices[i].finish_reason = finish_reason(s);
      usage_.completion_tokens += s.output_tokens;
      if (returns_experts()) {
        std::vector<std::uint16_t> rows = prompt_rows_[i / request_.n];
        rows.insert(rows.end(), s.recorded.begin(), s.recorded.end());
        const ModelShape& shape = state_.model.shape();
        choices[i].routed_experts = routed_experts_npy(rows, shape.layer_count(), shape.top_k, shape.experts);
      }
    }
    (void)writer_.respond(200, kJson, whole_answer(head_, choices, usage_, offered_params()));
  }

  // null where the request asked for none.
  json offered_params() {
    if (!leaves_kv()) {
      return nullptr;
    }
    json params =
        offer_kv(state_, request_.prompts.front(), head_.id + "-0-" + state_.next_id().substr(0, 8), http_);
    if (const auto fault = state_.faults.strike("bad-eldr")) {
      params["eldr"] = bad_eldr_key(eldr_key(counts_, request_.kv.eldr_layers), fault->form);
    } else if (!state_.faults.strike("no-eldr")) {
      params["eldr"] = eldr_key(counts_, request_.kv.eldr_layers);
    }
    return state_.faults.strike("no-kv-params") ? json(nullptr) : params;
  }

  void stream() {
    drop_ = state_.faults.strike("drop");
    const EventWriter events(head_);
    if (!writer_.start(200, "text/event-stream; charset=utf-8")) {
      return;
    }
    std::vector<std::uint32_t> sent(sequences_.size(), 0);
    std::uint64_t version = 0;
    Progress::Snapshot now;
    do {
      now = progress_->wait(version, kLook);
      std::string out;
      for (std::size_t i = 0; i < sequences_.size(); ++i) {
        append_events(events, i, sent[i], now.tokens[i], out);
      }
      if (now.failed) {
        out += EventWriter::error(internal_server_error());
      }
      if (!out.empty() ? !writer_.write(out) : writer_.client_gone()) {
        state_.stats.count("client_gone");
        return;
      }
      if (now.failed) {
        break;
      }
      if (breaks_off(now.tokens.front())) {
        return;
      }
    } while (!finished(now));
    std::string end;
    if (request_.include_usage && !now.failed) {
      for (const auto& s : sequences_) {
        usage_.completion_tokens += s->output_tokens;
      }
      end = events.usage(usage_);
    }
    if (writer_.write(end.append(EventWriter::done()))) {
      (void)writer_.finish();
    }
  }

  void append_events(const EventWriter& events, std::size_t choice, std::uint32_t& sent, std::uint32_t made,
                     std::string& out) const {
    const Sequence& s = *sequences_[choice];
    for (; sent < made; ++sent) {
      if (sent == 0) {
        out += events.opening(choice);
      }
      const bool echo = sent == 0 && request_.echo && request_.endpoint == Endpoint::kCompletions;
      const std::string text =
          (echo ? request_.prompts[choice / request_.n].text : "") + text_of(choice, sent);
      out += events.token(choice, text, sent + 1 == s.output_tokens ? finish_reason(s) : std::string_view{});
    }
  }

  WorkerState& state_;
  const GenerationRequest request_;
  const http::Request& http_;
  http::ResponseWriter& writer_;
  AnswerHead head_;
  std::vector<TextProfile> profiles_;  // of each prompt
  Usage usage_;
  bool remote_ = false;  // the first prompt's KV was pulled
  std::optional<Fault> drop_;
  std::shared_ptr<Progress> progress_;
  std::vector<std::shared_ptr<Sequence>> sequences_;     // prompt by prompt, n of each
  signature::ExpertCounts counts_;                       // of the first prompt, for the eldr key
  std::vector<std::vector<std::uint16_t>> prompt_rows_;  // [prompt][token][L][K], for routed_experts
};

void hang(WorkerState& state, http::ResponseWriter& writer) {
  state.stats.count("fault_hang");
  while (state.faults.look("hang") && !writer.client_gone()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  writer.abort();
}

}  // namespace

void generate(WorkerState& state, Endpoint endpoint, const http::Request& request,
              http::ResponseWriter& writer) {
  if (state.faults.strike("error-500")) {
    respond(writer, internal_server_error());
    return;
  }
  if (state.faults.strike("error-503")) {
    respond(writer, {503, "ServiceUnavailableError", "Service temporarily unavailable", ""});
    return;
  }
  if (state.faults.strike("hang")) {
    hang(state, writer);
    return;
  }
  auto parsed = parse_generation(endpoint, request.body);
  if (!parsed) {
    respond(writer, parsed.error());
    return;
  }
  ++state.generating;
  Generation(state, std::move(*parsed), request, writer).run();
  --state.generating;
}

}  // namespace eldr::sim
