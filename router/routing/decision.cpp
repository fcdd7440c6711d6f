// SPDX-License-Identifier: Apache-2.0
#include "router/routing/decision.h"

#include <algorithm>

#include "router/protocol/legs.h"

namespace eldr::router {
namespace {

struct Eligible {
  std::vector<WorkerPtr> workers;
  bool failed_open = false;
};

/// Workers that may take a request now; all that were not tried when every one of them is ejected (fail
/// open: a guess beats a certain refusal).
Eligible eligible(const std::vector<WorkerPtr>& workers, std::span<const WorkerPtr> tried,
                  Clock::Steady now) {
  Eligible result;
  std::vector<WorkerPtr> ejected;
  result.workers.reserve(workers.size());
  for (const auto& worker : workers) {
    if (std::find(tried.begin(), tried.end(), worker) != tried.end()) continue;
    const bool out = worker->health.standing(now) == Health::Standing::kEjected;
    (out ? ejected : result.workers).push_back(worker);
  }
  if (result.workers.empty() && !ejected.empty()) {
    result.workers = std::move(ejected);
    result.failed_open = true;
  }
  return result;
}

std::optional<float> similarity_of(const Routing& routing, const Signal& signal,
                                   std::optional<std::int32_t> cluster) {
  if (signal.reason != Reason::kSignature || !cluster) return std::nullopt;
  const auto row = routing.row_of_cluster.find(*cluster);
  if (row == routing.row_of_cluster.end()) return std::nullopt;
  return signal.similarities[row->second];
}

Signal without(Reason reason, std::string problem = {}) { return {reason, {}, std::move(problem)}; }

}  // namespace

Signal signal_of(const Routing& routing, const signature::ExpertCounts& counts) {
  if (!routing.centroids) return without(Reason::kNoCentroids);
  if (counts.coverage() < routing.config.minimum_coverage)
    return without(Reason::kLowCoverage, "counted " + std::to_string(counts.counted) + " of " +
                                             std::to_string(counts.tokens) + " tokens");
  const auto signature = signature::signature_of(routing.centroids->spec, counts);
  if (!signature) return without(Reason::kOtherShape, signature.error().message);
  if (!*signature) return without(Reason::kNoDirection);
  return {Reason::kSignature, signature::similarities(routing.centroids->centroids, **signature), {}};
}

Signal read_signal(const Routing& routing, const std::optional<std::string>& eldr) {
  if (!routing.decode->uses_signature()) return without(Reason::kPolicy);
  if (!routing.centroids) return without(Reason::kNoCentroids);
  if (!eldr) return without(Reason::kNoCounts);
  const auto counts = read_eldr_counts(*eldr);
  if (!counts) return without(Reason::kMalformed, counts.error().message);
  return signal_of(routing, *counts);
}

Decision choose_decode(const Routing& routing, const WorkerSet& workers, const Signal& signal,
                       std::span<const WorkerPtr> tried, Clock::Steady now, std::uint64_t draw,
                       std::vector<CandidateView>* seen) {
  Decision decision;
  const auto from = eligible(workers.decode, tried, now);
  if (from.workers.empty()) return decision;
  std::vector<signature::Candidate> candidates;
  candidates.reserve(from.workers.size());
  for (const auto& worker : from.workers) {
    const auto cluster = worker->cluster();
    candidates.push_back({similarity_of(routing, signal, cluster), worker->load.total(now)});
    if (seen != nullptr)
      seen->push_back({worker->id, cluster, candidates.back().similarity, candidates.back().in_flight});
  }
  const auto choice = routing.decode->choose(candidates, draw);
  decision.worker = from.workers[choice.index];
  decision.cluster = decision.worker->cluster();
  decision.similarity = candidates[choice.index].similarity;
  for (const auto& candidate : candidates)
    if (candidate.similarity && (!decision.best || *candidate.similarity > *decision.best))
      decision.best = candidate.similarity;
  decision.band = choice.band;
  decision.candidates = candidates.size();
  decision.failed_open = from.failed_open;
  return decision;
}

PrefillDecision choose_prefill(const Routing& routing, const WorkerSet& workers, std::string_view prompt,
                               std::span<const WorkerPtr> tried, Clock::Steady now, std::uint64_t draw) {
  const auto from = eligible(workers.prefill, tried, now);
  if (from.workers.empty()) return {};
  std::vector<PrefillCandidate> candidates;
  candidates.reserve(from.workers.size());
  for (const auto& worker : from.workers) candidates.push_back({worker->id_hash, worker->load.own()});
  return {from.workers[routing.prefill->choose(candidates, prompt, draw)], from.failed_open};
}

}  // namespace eldr::router
