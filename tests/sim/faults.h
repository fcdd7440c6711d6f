// SPDX-License-Identifier: Apache-2.0
// Faults on demand: which are on, and for how many more requests.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/status.h"

namespace eldr::sim {

/// kind            what happens                                              options
/// slow            everything takes `factor` times as long                   factor (5)
/// hang            a generation request is accepted and never answered       count, every
/// drop            the connection is reset after `after` streamed tokens     after (3), count, every
///                 (before the answer where it is not streamed)
/// error-500       a generation request gets vLLM's 500 body                 count, every
/// error-503       the same with 503                                         count, every
/// no-eldr         a prefill answer lacks the eldr key                       count, every
/// bad-eldr        it has one that is wrong: `form` is one of                form (base64), count, every
///                 base64, short, long, dtype, version, layers, experts, coverage, type, null, zero
/// no-kv-params    a prefill answer lacks kv_transfer_params                 count, every
/// unhealthy       /health answers 503                                       -
/// refuse          connections are refused for `seconds`                     seconds (5)
/// die             the process ends at once; with `after`, once a request    after
///                 has that many tokens
/// `count`: for so many requests (0: all); `every`: each so-manieth request only.
struct Fault {
  std::string kind;
  double factor = 5;
  std::uint32_t after = 3;
  bool has_after = false;
  double seconds = 5;
  std::string form = "base64";
  std::uint32_t count = 0;
  std::uint32_t every = 1;
};

/// "drop:after=5,count=1". kInvalid names what is wrong and what is allowed.
Result<Fault> parse_fault(std::string_view text);
/// {"kind": "drop", "after": 5}, or {"kind": "none"}: a fault of kind "none".
Result<Fault> parse_fault_json(std::string_view body);

/// One fault of each kind at a time. Thread-safe.
class FaultBoard {
 public:
  void set(const Fault& fault);  ///< "none" clears all
  /// The fault if it is on, without using it up.
  std::optional<Fault> look(const std::string& kind) const;
  /// The fault if it strikes this request.
  std::optional<Fault> strike(const std::string& kind);
  std::map<std::string, Fault> all() const;

 private:
  struct Armed {
    Fault fault;
    std::uint64_t seen = 0;
    std::uint64_t struck = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Armed> armed_;
};

}  // namespace eldr::sim
