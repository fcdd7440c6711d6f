// SPDX-License-Identifier: Apache-2.0
#include "router/config/config.h"

#include <charconv>
#include <set>

#include "lib/http/listen_address.h"
#include "router/config/yaml_fields.h"

namespace eldr::router {
namespace {

constexpr std::size_t kMaxWorkers = 4096;
constexpr std::size_t kMaxClusters = 4096;

void read_routing(YamlFields& fields, RoutingConfig& routing) {
  using D = DecodePolicyName;
  using P = PrefillPolicyName;
  fields.choice("policy",
                {D::kLocalityBand, D::kLoadAwareBand, D::kJoinShortestQueue, D::kPowerOfTwoChoices,
                 D::kRoundRobin, D::kRandom},
                routing.policy);
  fields.number("tau", 0, 2, [&](double value) { routing.tau = value; });
  fields.number("loadWeight", 0, 1000, [&](double value) { routing.load_weight = value; });
  fields.choice("prefillPolicy",
                {P::kPrefixHash, P::kJoinShortestQueue, P::kPowerOfTwoChoices, P::kRoundRobin, P::kRandom},
                routing.prefill_policy);
  fields.integer("prefixBytes", 1, 1 << 20,
                 [&](std::int64_t value) { routing.prefix_bytes = static_cast<std::size_t>(value); });
  fields.number("minimumCoverage", 0, 1, [&](double value) { routing.minimum_coverage = value; });
  fields.choice("withoutPrefill", {WithoutPrefill::kRefuse, WithoutPrefill::kDecodeOnly},
                routing.without_prefill);
}

void read_workers(YamlFields& fields, const std::string& name, bool with_cluster,
                  std::vector<WorkerAddress>& workers) {
  fields.list(name, kMaxWorkers, [&](const YAML::Node& node, const std::string& path) {
    YamlFields worker(node, path);
    std::string url;
    worker.text("url", url);
    WorkerAddress address;
    if (auto parsed = parse_worker_url(url))
      address = *parsed;
    else
      worker.fail(parsed.error().with_context(path + ".url"));
    if (with_cluster)
      worker.integer("cluster", 0, INT32_MAX,
                     [&](std::int64_t value) { address.cluster = static_cast<std::int32_t>(value); });
    if (auto status = worker.finish(); !status) return fields.fail(status.error());
    for (const auto& other : workers)
      if (other.host == address.host && other.port == address.port)
        return fields.fail(Error{Code::kInvalid, path + ".url: \"" + url + "\" is listed twice", 0});
    workers.push_back(std::move(address));
  });
}

void read_pool(YamlFields& fields, const std::string& name, PodPool& pool) {
  if (!fields.has(name)) fields.fail(name, "", "a mapping with selector and port");
  fields.section(name, [&](YamlFields& section) {
    section.text("selector", pool.selector);
    if (pool.selector.empty()) section.fail("selector", "", "a label selector such as app=decode");
    section.integer("port", 1, 65535,
                    [&](std::int64_t value) { pool.port = static_cast<std::uint16_t>(value); });
  });
}

void read_kubernetes(YamlFields& fields, KubernetesConfig& kubernetes) {
  fields.text("namespace", kubernetes.namespace_name);
  if (kubernetes.namespace_name.empty()) fields.fail("namespace", "", "a namespace");
  read_pool(fields, "prefill", kubernetes.prefill);
  read_pool(fields, "decode", kubernetes.decode);
}

/// A duration written in seconds, decimals allowed.
void seconds(YamlFields& fields, const std::string& name, double low, Milliseconds& into) {
  fields.number(name, low, 86'400,
                [&](double value) { into = Milliseconds(static_cast<std::int64_t>(value * 1000)); });
}

void size(YamlFields& fields, const std::string& name, std::int64_t low, std::int64_t high,
          std::size_t& into) {
  fields.integer(name, low, high, [&](std::int64_t value) { into = static_cast<std::size_t>(value); });
}

void read_limits(YamlFields& fields, Limits& limits) {
  size(fields, "bodyBytes", 1, 1LL << 30, limits.body);
  size(fields, "headerBytes", 1024, 1 << 20, limits.header);
  size(fields, "prefillAnswerBytes", 1024, 1LL << 30, limits.prefill_answer);
  size(fields, "connections", 1, 1 << 20, limits.connections);
  size(fields, "inFlight", 1, 1 << 20, limits.in_flight);
  size(fields, "idleConnectionsPerWorker", 0, 65536, limits.idle_per_worker);
  size(fields, "attempts", 1, 16, limits.attempts);
}

void read_timeouts(YamlFields& fields, Timeouts& timeouts) {
  constexpr double kLeast = 0.01;
  seconds(fields, "headerSeconds", kLeast, timeouts.header);
  seconds(fields, "bodySeconds", kLeast, timeouts.body);
  seconds(fields, "keepAliveSeconds", kLeast, timeouts.keep_alive);
  seconds(fields, "writeSeconds", kLeast, timeouts.write);
  seconds(fields, "connectSeconds", kLeast, timeouts.connect);
  seconds(fields, "prefillSeconds", kLeast, timeouts.prefill);
  seconds(fields, "firstByteSeconds", kLeast, timeouts.first_byte);
  seconds(fields, "idleSeconds", kLeast, timeouts.idle);
  seconds(fields, "totalSeconds", kLeast, timeouts.total);
}

void read_health(YamlFields& fields, HealthConfig& health) {
  fields.integer("failures", 1, 1000,
                 [&](std::int64_t value) { health.failures = static_cast<std::uint32_t>(value); });
  seconds(fields, "ejectSeconds", 0.01, health.eject);
  seconds(fields, "maxEjectSeconds", 0.01, health.max_eject);
}

void read_listen(YamlFields& fields, const std::string& name, std::string& into) {
  fields.text(name, into);
  if (auto parsed = http::parse_listen_address(into); !parsed)
    fields.fail(parsed.error().with_context(fields.path_of(name)));
}

void read_cluster_ids(YamlFields& fields, std::vector<std::int32_t>& ids) {
  std::set<std::int64_t> seen;
  fields.list("clusterIds", kMaxClusters, [&](const YAML::Node& node, const std::string& path) {
    std::int64_t id = -1;
    const std::string value = node.IsScalar() ? node.Scalar() : "";
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), id);
    if (error != std::errc{} || end != value.data() + value.size() || id < 0 || id > INT32_MAX)
      return fields.fail(
          Error{Code::kInvalid, path + ": \"" + value + "\" is not allowed, expected an integer from 0", 0});
    if (!seen.insert(id).second)
      return fields.fail(Error{Code::kInvalid, path + ": " + value + " is listed twice", 0});
    ids.push_back(static_cast<std::int32_t>(id));
  });
}

void read_document(YamlFields& fields, Config& config) {
  read_listen(fields, "listen", config.listen);
  read_listen(fields, "admin", config.admin);
  size(fields, "threads", 0, 256, config.threads);
  fields.text("centroids", config.centroids);
  fields.section("routing", [&](YamlFields& section) { read_routing(section, config.routing); });
  read_cluster_ids(fields, config.cluster_ids);
  fields.section("kubernetes", [&](YamlFields& section) {
    KubernetesConfig kubernetes;
    read_kubernetes(section, kubernetes);
    config.kubernetes = std::move(kubernetes);
  });
  if (config.kubernetes && (fields.has("prefill") || fields.has("decode")))
    fields.fail(fields.has("prefill") ? "prefill" : "decode", "a list",
                "either kubernetes or lists of workers, not both");
  read_workers(fields, "prefill", false, config.prefill);
  read_workers(fields, "decode", true, config.decode);
  if (!config.kubernetes && !fields.has("decode"))
    fields.fail("decode", "", "a list of decode workers, or kubernetes");
  seconds(fields, "drainSeconds", 0, config.drain);
  seconds(fields, "loadPollSeconds", 0, config.load_poll);
  fields.section("limits", [&](YamlFields& section) { read_limits(section, config.limits); });
  fields.section("timeouts", [&](YamlFields& section) { read_timeouts(section, config.timeouts); });
  fields.section("health", [&](YamlFields& section) { read_health(section, config.health); });
}

}  // namespace

std::string_view name_of(DecodePolicyName policy) {
  switch (policy) {
    case DecodePolicyName::kLocalityBand:
      return "LocalityBand";
    case DecodePolicyName::kLoadAwareBand:
      return "LoadAwareBand";
    case DecodePolicyName::kJoinShortestQueue:
      return "JoinShortestQueue";
    case DecodePolicyName::kPowerOfTwoChoices:
      return "PowerOfTwoChoices";
    case DecodePolicyName::kRoundRobin:
      return "RoundRobin";
    case DecodePolicyName::kRandom:
      return "Random";
  }
  return "";
}

std::string_view name_of(PrefillPolicyName policy) {
  switch (policy) {
    case PrefillPolicyName::kPrefixHash:
      return "PrefixHash";
    case PrefillPolicyName::kJoinShortestQueue:
      return "JoinShortestQueue";
    case PrefillPolicyName::kPowerOfTwoChoices:
      return "PowerOfTwoChoices";
    case PrefillPolicyName::kRoundRobin:
      return "RoundRobin";
    case PrefillPolicyName::kRandom:
      return "Random";
  }
  return "";
}

std::string_view name_of(WithoutPrefill choice) {
  return choice == WithoutPrefill::kRefuse ? "Refuse" : "DecodeOnly";
}

Result<WorkerAddress> parse_worker_url(std::string_view url) {
  const auto wrong = [&] {
    std::string message = "\"";
    message.append(url).append("\" is not allowed, expected http://host:port without a path");
    return failure(Code::kInvalid, std::move(message));
  };
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return wrong();
  std::string_view rest = url.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  WorkerAddress address;
  std::string_view port;
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == std::string_view::npos) return wrong();
    address.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest.front() != ':') return wrong();
    port = rest.empty() ? "80" : rest.substr(1);
  } else {
    const auto colon = rest.find(':');
    address.host = rest.substr(0, colon);
    port = colon == std::string_view::npos ? "80" : rest.substr(colon + 1);
  }
  if (address.host.empty() || address.host.size() > 253 ||
      address.host.find_first_of("/@?#[] \t\r\n") != std::string::npos)
    return wrong();
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535)
    return wrong();
  address.port = static_cast<std::uint16_t>(number);
  return address;
}

Result<Config> parse_config(std::string_view yaml, const std::string& folder) {
  Config config;
  auto status = read_yaml(yaml, [&](YamlFields& fields) { read_document(fields, config); });
  if (!status) return failure(status.error());
  if (!config.centroids.empty() && config.centroids.front() != '/' && !folder.empty())
    config.centroids = folder + "/" + config.centroids;
  return config;
}

}  // namespace eldr::router
