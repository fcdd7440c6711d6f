// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace eldr::sim {
namespace {

using prometheus::Histogram;

const Histogram::BucketBoundaries kFirstToken{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                              0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const Histogram::BucketBoundaries kPerToken{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4,
                                            0.5,  0.75,  1,    2.5,   5,   7.5,  10,  20,  40};
const Histogram::BucketBoundaries kWhole{0.3, 0.5, 0.8, 1,  1.5, 2,  2.5, 5,  10,
                                         15,  20,  30,  40, 50,  60, 120, 240};

double seconds(Clock::Steady from, Clock::Steady to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

struct Metrics::Families {
  explicit Families(const std::string& model) : labels{{"engine", "0"}, {"model_name", model}} {}

  prometheus::Counter& counter(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name("vllm:" + name).Help(help).Register(registry).Add(labels);
  }
  prometheus::Gauge& gauge(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name("vllm:" + name).Help(help).Register(registry).Add(labels);
  }
  Histogram& histogram(const std::string& name, const std::string& help,
                       const Histogram::BucketBoundaries& buckets) {
    return prometheus::BuildHistogram()
        .Name("vllm:" + name)
        .Help(help)
        .Register(registry)
        .Add(labels, buckets);
  }

  prometheus::Registry registry;
  const std::map<std::string, std::string> labels;
  prometheus::Gauge& running =
      gauge("num_requests_running", "Number of requests in model execution batches.");
  prometheus::Gauge& waiting = gauge("num_requests_waiting", "Number of requests waiting to be processed.");
  prometheus::Gauge& kv_usage = gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.");
  prometheus::Counter& queries =
      counter("prefix_cache_queries_total", "Prefix cache queries, in queried tokens.");
  prometheus::Counter& hits = counter("prefix_cache_hits_total", "Prefix cache hits, in cached tokens.");
  prometheus::Counter& prompt_tokens = counter("prompt_tokens_total", "Number of prefill tokens processed.");
  prometheus::Counter& generated =
      counter("generation_tokens_total", "Number of generation tokens processed.");
  prometheus::Counter& preemptions = counter("num_preemptions_total", "Cumulative number of preemptions.");
  Histogram& first_token =
      histogram("time_to_first_token_seconds", "Time to first token in seconds.", kFirstToken);
  Histogram& between = histogram("inter_token_latency_seconds", "Inter-token latency in seconds.", kPerToken);
  Histogram& per_token = histogram("request_time_per_output_token_seconds",
                                   "Time per output token of a request in seconds.", kPerToken);
  Histogram& whole =
      histogram("e2e_request_latency_seconds", "End to end request latency in seconds.", kWhole);
};

Metrics::Metrics(const std::string& model) : families_(std::make_unique<Families>(model)) {}
Metrics::~Metrics() = default;

void Metrics::on_step(std::size_t /*running*/, std::size_t /*decoding*/, double /*distinct*/) {}

void Metrics::on_token(const Sequence& sequence, Clock::Steady now, bool /*decoded*/, double /*distinct*/) {
  families_->generated.Increment();
  if (sequence.made == 1) {
    families_->first_token.Observe(seconds(sequence.arrived, now));
  } else {
    families_->between.Observe(seconds(sequence.last_token, now));
  }
}

void Metrics::on_finished(const Sequence& sequence, Clock::Steady now) {
  families_->whole.Observe(seconds(sequence.arrived, now));
  if (sequence.made > 1) {
    families_->per_token.Observe(seconds(sequence.first_token, now) / (sequence.made - 1));
  }
}

void Metrics::on_prompt(std::uint32_t tokens, std::uint32_t cached) {
  families_->queries.Increment(tokens);
  families_->hits.Increment(cached);
  families_->prompt_tokens.Increment(tokens);
}

std::string Metrics::text(const Gauges& gauges) {
  families_->running.Set(static_cast<double>(gauges.running));
  families_->waiting.Set(static_cast<double>(gauges.waiting));
  families_->kv_usage.Set(gauges.kv_usage);
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace eldr::sim
