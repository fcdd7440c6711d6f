// SPDX-License-Identifier: Apache-2.0
#include "router/admin/admin.h"

#include <nlohmann/json.hpp>

#include "router/protocol/legs.h"
#include "router/routing/decision.h"
#include "router/server/api_error.h"

namespace eldr::router {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string_view standing_of(const Worker& worker, Clock::Steady now) {
  switch (worker.health.standing(now)) {
    case Health::Standing::kHealthy:
      return "healthy";
    case Health::Standing::kEjected:
      return "ejected";
    case Health::Standing::kProbing:
      return "probing";
  }
  return "";
}

/// {"layers": [3, 7], "counts": [[…], […]]} as counts of a wholly counted prompt.
Result<signature::ExpertCounts> plain_counts(const Json& body) {
  const auto wrong = [](const char* what) { return failure(Code::kInvalid, what); };
  const auto layers = body.find("layers");
  const auto rows = body.find("counts");
  if (layers == body.end() || !layers->is_array() || layers->size() > signature::kMaxLayers)
    return wrong("layers: expected a list of at most 512 layer numbers");
  if (rows == body.end() || !rows->is_array() || rows->size() != layers->size())
    return wrong("counts: expected one list of numbers for each layer");
  signature::ExpertCounts counts;
  for (const auto& layer : *layers) {
    if (!layer.is_number_integer()) return wrong("layers: expected integers");
    counts.layers.push_back(layer.get<std::int32_t>());
  }
  for (const auto& row : *rows) {
    if (!row.is_array() || row.size() > signature::kMaxExperts)
      return wrong("counts: expected lists of at most 4096 numbers");
    if (counts.counts.empty()) counts.experts = static_cast<std::uint32_t>(row.size());
    if (row.size() != counts.experts) return wrong("counts: expected lists of one length");
    for (const auto& count : row) {
      if (!count.is_number_unsigned()) return wrong("counts: expected integers from 0");
      counts.counts.push_back(count.get<std::uint32_t>());
    }
  }
  counts.tokens = counts.counted = 1;
  return counts;
}

Result<signature::ExpertCounts> counts_of(const std::string& body) {
  const auto json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return failure(Code::kInvalid, "expected a JSON object");
  const auto counts = json.find("counts");
  if (counts != json.end() && counts->is_array()) return plain_counts(json);
  return read_eldr_counts(body);
}

http::Handler page(std::function<std::string()> text) {
  return [text = std::move(text)](const http::Request&, http::ResponseWriter& answer) {
    static_cast<void>(answer.respond(200, "application/json", text()));
  };
}

}  // namespace

std::string config_page(const Routing& routing) {
  Json json;
  json["revision"] = routing.revision;
  const auto& config = routing.config;
  json["routing"] = {{"policy", name_of(config.policy)},
                     {"tau", config.tau},
                     {"loadWeight", or_null(config.load_weight)},
                     {"prefillPolicy", name_of(config.prefill_policy)},
                     {"prefixBytes", config.prefix_bytes},
                     {"minimumCoverage", config.minimum_coverage},
                     {"withoutPrefill", name_of(config.without_prefill)}};
  if (!routing.centroids) {
    json["centroids"] = nullptr;
    return text_of(json);
  }
  const auto& set = *routing.centroids;
  Json clusters = Json::array();
  for (Eigen::Index row = 0; row < set.centroids.rows(); ++row)
    for (const auto& [id, at] : routing.row_of_cluster)
      if (at == row) clusters.push_back(id);
  json["centroids"] = {{"revision", routing.centroids_revision},
                       {"model", set.model},
                       {"clusters", set.clusters()},
                       {"clusterIds", clusters},
                       {"layers", set.spec.layers},
                       {"experts", set.spec.experts},
                       {"transform", name_of(set.spec.transform)},
                       {"spread", set.spread},
                       {"rho", set.rho},
                       {"requests", set.requests()},
                       {"fitHash", set.fit_hash}};
  return text_of(json);
}

std::string workers_page(const WorkerSet& workers, Clock::Steady now) {
  Json json;
  for (const auto role : {Role::kPrefill, Role::kDecode}) {
    Json list = Json::array();
    for (const auto& worker : workers.of(role)) {
      Json entry = {{"id", worker->id},
                    {"address", worker->authority},
                    {"state", standing_of(*worker, now)},
                    {"inFlight", worker->load.own()},
                    {"load", worker->load.total(now)},
                    {"requests", worker->requests.load()},
                    {"failures", worker->failures.load()}};
      if (role == Role::kDecode) entry["cluster"] = or_null(worker->cluster());
      list.push_back(std::move(entry));
    }
    json[std::string(name_of(role))] = std::move(list);
  }
  return text_of(json);
}

Result<std::string> explain_page(const Routing& routing, const WorkerSet& workers, Clock::Steady now,
                                 const std::string& body) {
  const auto counts = counts_of(body);
  if (!counts) return failure(counts.error());
  const auto signal = signal_of(routing, *counts);
  std::vector<CandidateView> candidates;
  const auto decision = choose_decode(routing, workers, signal, {}, now, 0, &candidates);
  Json json;
  json["revision"] = routing.revision;
  json["policy"] = name_of(routing.config.policy);
  json["reason"] = name_of(signal.reason);
  if (!signal.problem.empty()) json["problem"] = signal.problem;
  json["similarities"] = Json::array();
  for (Eigen::Index row = 0; row < signal.similarities.size(); ++row) {
    Json entry = {{"row", row}, {"similarity", signal.similarities[row]}};
    for (const auto& [id, at] : routing.row_of_cluster)
      if (at == row) entry["cluster"] = id;
    json["similarities"].push_back(std::move(entry));
  }
  json["candidates"] = Json::array();
  for (const auto& candidate : candidates) {
    const bool in_band = candidate.similarity && decision.best &&
                         *candidate.similarity >= *decision.best - static_cast<float>(routing.config.tau);
    json["candidates"].push_back({{"worker", candidate.worker},
                                  {"cluster", or_null(candidate.cluster)},
                                  {"similarity", or_null(candidate.similarity)},
                                  {"load", candidate.in_flight},
                                  {"withinTau", in_band}});
  }
  json["band"] = decision.band;
  json["choice"] = decision.worker ? Json(decision.worker->id) : Json(nullptr);
  return text_of(json);
}

http::AdminOptions admin_options(AdminSources sources) {
  http::AdminOptions options;
  options.ready = sources.ready;
  options.metrics = sources.metrics;
  options.routes["GET /eldr/v1/config"] = page([sources] { return config_page(*sources.routing()); });
  options.routes["GET /eldr/v1/workers"] =
      page([sources] { return workers_page(*sources.workers->snapshot(), sources.clock->steady()); });
  options.routes["POST /eldr/v1/explain"] = [sources](const http::Request& request,
                                                      http::ResponseWriter& answer) {
    const auto text =
        explain_page(*sources.routing(), *sources.workers->snapshot(), sources.clock->steady(), request.body);
    if (text)
      static_cast<void>(answer.respond(200, "application/json", *text));
    else
      static_cast<void>(answer.respond(400, "application/json", error_body(400, text.error().message)));
  };
  return options;
}

}  // namespace eldr::router
