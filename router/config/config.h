// SPDX-License-Identifier: Apache-2.0
// router.yaml: everything a router is told. Values only; docs/reference/router.md describes every field.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::router {

using Milliseconds = std::chrono::milliseconds;

enum class DecodePolicyName {
  kLocalityBand,
  kLoadAwareBand,
  kJoinShortestQueue,
  kPowerOfTwoChoices,
  kRoundRobin,
  kRandom
};
enum class PrefillPolicyName { kPrefixHash, kJoinShortestQueue, kPowerOfTwoChoices, kRoundRobin, kRandom };
enum class WithoutPrefill { kRefuse, kDecodeOnly };

std::string_view name_of(DecodePolicyName policy);
std::string_view name_of(PrefillPolicyName policy);
std::string_view name_of(WithoutPrefill choice);

struct RoutingConfig {
  DecodePolicyName policy = DecodePolicyName::kLocalityBand;
  double tau = 0.1;                   ///< width of the band, [0, 2]
  std::optional<double> load_weight;  ///< beta of LoadAwareBand; absent: lib/signature's default
  PrefillPolicyName prefill_policy = PrefillPolicyName::kPrefixHash;
  std::size_t prefix_bytes = 1024;  ///< of the prompt, hashed by PrefixHash
  double minimum_coverage = 0.5;    ///< least share of the prompt that counts must cover, [0, 1]
  WithoutPrefill without_prefill = WithoutPrefill::kRefuse;
};

/// A worker listed in the file.
struct WorkerAddress {
  std::string host;  ///< name or numeric address, IPv6 without brackets
  std::uint16_t port = 0;
  std::optional<std::int32_t> cluster;  ///< decode workers
  bool operator==(const WorkerAddress&) const = default;
};

/// Workers found by watching pods.
struct PodPool {
  std::string selector;  ///< label selector
  std::uint16_t port = 8000;
};
struct KubernetesConfig {
  std::string namespace_name;
  PodPool prefill;
  PodPool decode;
};

/// Sizes in bytes. Every one is a hard limit.
struct Limits {
  std::size_t body = 32U << 20U;            ///< a client's request body
  std::size_t header = 32U << 10U;          ///< request line and headers, either direction
  std::size_t prefill_answer = 64U << 20U;  ///< a prefill worker's answer
  std::size_t connections = 4096;           ///< clients connected at once
  std::size_t in_flight = 2048;             ///< requests at once
  std::size_t idle_per_worker = 64;         ///< kept-alive connections to a worker, per thread
  std::size_t attempts = 3;                 ///< workers tried for each leg
};

struct Timeouts {
  Milliseconds header{10'000};       ///< a request's headers, from its first byte
  Milliseconds body{60'000};         ///< a request's body
  Milliseconds keep_alive{75'000};   ///< a client's connection between requests
  Milliseconds write{60'000};        ///< a client that does not read
  Milliseconds connect{2'000};       ///< to a worker
  Milliseconds prefill{120'000};     ///< the prefill leg, from sending to the whole answer
  Milliseconds first_byte{120'000};  ///< the decode leg, from sending to the answer's headers
  Milliseconds idle{60'000};         ///< between two pieces of a decode answer
  Milliseconds total{3'600'000};     ///< one request
};

struct HealthConfig {
  std::uint32_t failures = 3;  ///< consecutive, then the worker is ejected
  Milliseconds eject{5'000};   ///< the first time; doubled each time after
  Milliseconds max_eject{60'000};
};

struct Config {
  std::string listen = "0.0.0.0:8000";
  std::string admin = "127.0.0.1:9090";
  std::size_t threads = 0;  ///< 0: one a core
  std::string centroids;    ///< path, absolute or from the file's folder; empty: none
  RoutingConfig routing;
  std::vector<std::int32_t> cluster_ids;  ///< row of the centroid file -> cluster id; empty: 0, 1, 2 ...
  std::vector<WorkerAddress> prefill;
  std::vector<WorkerAddress> decode;
  std::optional<KubernetesConfig> kubernetes;  ///< instead of the two lists
  Milliseconds drain{300'000};
  Milliseconds load_poll{500};  ///< between reads of a decode worker's load; 0: never
  Limits limits;
  Timeouts timeouts;
  HealthConfig health;
};

/// kInvalid names the field, the value found and what is allowed. Unknown fields are refused. `folder` is
/// what a relative path of `centroids` begins at.
Result<Config> parse_config(std::string_view yaml, const std::string& folder);

/// "http://10.0.0.1:8000", "http://[::1]:8000", "http://name:8000/": scheme http only, no path, port 80 when
/// absent.
Result<WorkerAddress> parse_worker_url(std::string_view url);

}  // namespace eldr::router
