// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/leader_election.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/base/log.h"
#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

using std::chrono::milliseconds;

constexpr double kJitter = 0.2;  // of the retry period
constexpr milliseconds kShortestCall{200};
constexpr milliseconds kLongestCall{5'000};

}  // namespace

struct LeaderElector::Private {
  Private(const Client& client, LeaderElectionOptions options, LeaderCallbacks callbacks, const Clock& clock,
          Random& random, LeaderElectionMetrics* metrics)
      : client(client),
        options(std::move(options)),
        callbacks(std::move(callbacks)),
        clock(clock),
        random(random),
        metrics(metrics) {}

  const Client& client;
  const LeaderElectionOptions options;
  const LeaderCallbacks callbacks;
  const Clock& clock;
  Random& random;
  LeaderElectionMetrics* const metrics;

  mutable std::mutex mutex;
  std::condition_variable_any changed;
  // Guarded by `mutex`.
  bool held = false;           ///< by our last successful write
  Clock::Steady renewed_at{};  ///< when we *began* that write: the server's time runs from no earlier
  std::string holder;          ///< last seen in the lease

  // Touched by whoever tries: the elector's thread, or a test.
  std::mutex trying;
  Json lease;                   ///< as last seen
  std::string observed_spec;    ///< of that
  Clock::Steady observed_at{};  ///< when it last changed, by our own clock

  std::stop_token stop_token;  ///< of the thread; none in a test

  std::jthread thread;

  // --- what we know
  bool is_leader() const {
    const std::lock_guard lock(mutex);
    return held && clock.steady() - renewed_at < options.renew_deadline;
  }
  void note_holder(const std::string& seen) {
    {
      const std::lock_guard lock(mutex);
      if (holder == seen) {
        return;
      }
      holder = seen;
    }
    if (callbacks.new_leader && !seen.empty()) {
      callbacks.new_leader(seen);
    }
  }
  void note_held(bool yes, Clock::Steady began) {
    const std::lock_guard lock(mutex);
    held = yes;
    if (yes) {
      renewed_at = began;
    }
  }
  void observe(Json seen) {
    lease = std::move(seen);
    const Json* spec = find(lease, {"spec"});
    std::string text = spec == nullptr ? "" : spec->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text != observed_spec || observed_at == Clock::Steady{}) {
      observed_spec = std::move(text);
      observed_at = clock.steady();
    }
    note_holder(string_at(lease, {"spec", "holderIdentity"}));
  }
  /// Somebody else's lease counts until we have seen it unchanged for as long as it says it lasts.
  bool others_lease_is_good() const {
    const std::string held_by = string_at(lease, {"spec", "holderIdentity"});
    if (held_by.empty() || held_by == options.identity) {
      return false;
    }
    const auto seconds = std::clamp<std::int64_t>(
        int_at(lease, {"spec", "leaseDurationSeconds"}).value_or(options.lease_duration.count() / 1000), 1,
        3600);
    return clock.steady() < observed_at + std::chrono::seconds(seconds);
  }

  // --- what we write
  Json wanted_lease(const std::string& identity, milliseconds duration) const {
    Json wanted = lease;
    const std::string now = format_rfc3339_micro(clock.wall());
    const bool changes_hands = string_at(lease, {"spec", "holderIdentity"}) != identity;
    Json& spec = wanted["spec"];
    if (!spec.is_object()) {
      spec = Json::object();
    }
    if (changes_hands && !identity.empty()) {  // a release is no transition, taking over after it is
      spec["leaseTransitions"] = int_at(lease, {"spec", "leaseTransitions"}).value_or(-1) + 1;
      spec["acquireTime"] = now;
    }
    spec["holderIdentity"] = identity;
    spec["leaseDurationSeconds"] = std::max<std::int64_t>(1, duration.count() / 1000);
    spec["renewTime"] = now;
    return wanted;
  }
  CallOptions call_options() const {
    auto timeout = std::min(kLongestCall, options.renew_deadline / 2);
    const std::lock_guard lock(mutex);
    if (held) {  // a call must not outlive our leadership
      timeout = std::min(timeout, std::chrono::duration_cast<milliseconds>(
                                      renewed_at + options.renew_deadline - clock.steady()));
    }
    return {.timeout = std::max(timeout, kShortestCall), .stop = stop_token};
  }

  Result<bool> took(Result<Json> written, Clock::Steady began) {
    if (!written) {
      return failure(written.error());
    }
    observe(std::move(*written));
    note_held(true, began);
    return true;
  }

  Result<bool> try_once() {
    const std::lock_guard lock(trying);
    const auto began = clock.steady();
    bool renewing = false;
    {
      const std::lock_guard state(mutex);
      renewing = held;
    }
    if (renewing) {
      // Nobody may write to a lease we hold, so what we saw last is good enough to go on from; if it is not,
      // the server says Conflict and we read it again below.
      auto written = client.update(kLeases, options.lease.ns,
                                   wanted_lease(options.identity, options.lease_duration), call_options());
      if (written || written.error().code != Code::kConflict) {
        if (!written && written.error().code == Code::kNotFound) {
          lease = Json();
        } else {
          return took(std::move(written), began);
        }
      }
    }
    auto present = client.get(kLeases, options.lease, call_options());
    if (!present && present.error().code == Code::kNotFound) {
      lease = Json{{"metadata", {{"name", options.lease.name}}}};
      auto created = client.create(kLeases, options.lease.ns,
                                   wanted_lease(options.identity, options.lease_duration), call_options());
      if (!created && created.error().code == Code::kAlreadyExists) {
        note_held(false, began);
        return false;  // somebody was faster; the next try sees who
      }
      return took(std::move(created), began);
    }
    if (!present) {
      return failure(present.error());
    }
    observe(std::move(*present));
    if (others_lease_is_good()) {
      note_held(false, began);
      return false;
    }
    auto written = client.update(kLeases, options.lease.ns,
                                 wanted_lease(options.identity, options.lease_duration), call_options());
    if (!written && written.error().code == Code::kConflict) {
      if (string_at(lease, {"spec", "holderIdentity"}) != options.identity) {
        note_held(false, began);
      }
      return false;
    }
    return took(std::move(written), began);
  }

  void run(const std::stop_token& stop) {
    stop_token = stop;
    bool leading = false;
    while (!stop.stop_requested()) {
      const auto result = try_once();
      if (stop.stop_requested()) {
        return;
      }
      if (!result) {
        spdlog::warn("lease {}: {}", options.lease.to_string(), result.error().to_string());
      }
      if (!leading && result && *result) {
        leading = true;
        spdlog::info("lease {}: {} leads", options.lease.to_string(), options.identity);
        report(true);
        callbacks.started();
      } else if (leading && !still_leads(result)) {
        spdlog::error("lease {}: {} lost it", options.lease.to_string(), options.identity);
        note_held(false, {});
        report(false);
        callbacks.lost();
        return;
      }
      nap(stop);
    }
  }
  /// A failed call is not the end while the renew deadline is ahead; another holder is.
  bool still_leads(const Result<bool>& result) const {
    bool ours = true;
    {
      const std::lock_guard lock(mutex);
      ours = held;
    }
    return ours && ((result && *result) || is_leader());
  }
  void nap(const std::stop_token& stop) {
    auto wait =
        std::chrono::duration_cast<milliseconds>(options.retry_period * (1 + kJitter * random.uniform()));
    std::unique_lock lock(mutex);
    if (held) {  // never sleep past the moment at which we must say that it is lost
      wait = std::min(wait,
                      std::chrono::ceil<milliseconds>(renewed_at + options.renew_deadline - clock.steady()));
    }
    changed.wait_for(lock, stop, std::max(wait, milliseconds(1)), [] { return false; });
  }
  void report(bool leads) const {
    if (metrics != nullptr) {
      metrics->leading(leads);
    }
  }

  void stop() {
    thread.request_stop();
    if (thread.joinable() && thread.get_id() != std::this_thread::get_id()) {
      thread.join();
    }
  }
  void release() {
    const std::lock_guard lock(trying);
    {
      const std::lock_guard state(mutex);
      if (!std::exchange(held, false)) {
        return;
      }
    }
    report(false);
    // An empty holder and a short duration: the next candidate needs not wait.
    Json wanted = wanted_lease("", milliseconds(1000));
    const auto written =
        client.update(kLeases, options.lease.ns, std::move(wanted),
                      {.timeout = std::min(kLongestCall, options.renew_deadline), .stop = {}});
    if (!written) {
      spdlog::warn("lease {}: not released, others wait until it runs out: {}", options.lease.to_string(),
                   written.error().to_string());
    }
  }
};

LeaderElector::LeaderElector(const Client& client, LeaderElectionOptions options, LeaderCallbacks callbacks,
                             const Clock& clock, Random& random, LeaderElectionMetrics* metrics)
    : private_(std::make_unique<Private>(client, std::move(options), std::move(callbacks), clock, random,
                                         metrics)) {
  private_->report(false);
}

LeaderElector::~LeaderElector() { private_->stop(); }

Status LeaderElector::start() {
  const LeaderElectionOptions& options = private_->options;
  if (options.lease.ns.empty() || options.lease.name.empty() || options.identity.empty()) {
    return failure(Code::kInvalid,
                   "leader election: the lease's namespace and name and the identity must be given");
  }
  if (options.lease_duration <= options.renew_deadline ||
      options.renew_deadline.count() <= static_cast<double>(options.retry_period.count()) * (1 + kJitter) ||
      options.lease_duration < std::chrono::seconds(1) || options.retry_period <= milliseconds(0)) {
    return failure(
        Code::kInvalid,
        "leader election: lease_duration (at least 1 s) > renew_deadline > 1.2 * retry_period > 0 must hold");
  }
  if (!private_->callbacks.started || !private_->callbacks.lost) {
    return failure(Code::kInvalid, "leader election: the callbacks started and lost must be given");
  }
  if (!private_->thread.joinable()) {
    private_->thread =
        std::jthread([self = private_.get()](const std::stop_token& stop) { self->run(stop); });
  }
  return {};
}

void LeaderElector::stop_and_release() {
  private_->stop();
  private_->release();
}

bool LeaderElector::is_leader() const { return private_->is_leader(); }

std::string LeaderElector::leader() const {
  const std::lock_guard lock(private_->mutex);
  return private_->holder;
}

Result<bool> LeaderElector::try_once() { return private_->try_once(); }

}  // namespace eldr::kube
