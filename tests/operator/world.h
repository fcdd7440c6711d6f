// SPDX-License-Identifier: Apache-2.0
// A fixture with a policy, its workers, and the other actors of a cluster: the Deployment controller, the
// calibrator, the kubelet. Tests say what happens and look at what the operator made of it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/kube/client.h"
#include "lib/kube/object.h"
#include "operator/api/conditions.h"
#include "operator/api/labels.h"
#include "operator/reconciler.h"
#include "tests/operator/fake_cluster.h"

namespace eldr::op::testing {

class TestClock final : public Clock {
 public:
  Steady steady() const override { return Steady(now_ + std::chrono::hours(1)); }
  Wall wall() const override {
    return Wall(std::chrono::duration_cast<Wall::duration>(now_ + std::chrono::seconds(1'796'000'000)));
  }
  void advance(std::chrono::seconds by) { now_ += by; }

 private:
  std::chrono::nanoseconds now_{0};
};

class EventList final : public EventSink {
 public:
  void record(const Json&, kube::EventType type, const std::string& reason, const std::string&,
              const std::string& note) override {
    events.push_back((type == kube::EventType::kWarning ? "Warning " : "Normal ") + reason + ": " + note);
  }
  std::size_t count(const std::string& reason) const;
  std::vector<std::string> events;
};

inline const ObjectKey kPolicyKey{"serving", "qwen3"};

/// A policy with a ConfigMap of prompts, an engine that runs, and a Deployment of decode workers.
Json sample_policy();
/// The same as text, for tests that change it.
extern const char kSamplePolicy[];
/// The API server's defaults for spec, as the schema has them.
void apply_defaults(Json& policy);
Json from_yaml(const std::string& text);

/// A result file for those inputs, base64.
std::string centroids_base64(std::int64_t clusters, const std::string& fit_hash, double rho = 0.6,
                             std::uint64_t seed = 1);

class World : public ::testing::Test {
 protected:
  World();

  // --- the operator
  Result<Reconciled> reconcile();
  /// Reconciles until nothing is written any more. Fails the test when that takes too long.
  void settle();
  /// Everything: the operator, a successful calibrator and the Deployment controller, until all is quiet.
  void run_to_ready();
  /// The operator's process ends and another begins: nothing is remembered.
  void restart_operator();

  // --- the other actors
  void change_policy(const std::function<void(Json&)>& change);
  void add_workers(int decode, int prefill);
  /// The decode Deployment is scaled and its pods follow.
  void scale_decode(int replicas);
  /// Pods of the decode Deployment come and go until there are as many as it wants; the youngest go first.
  void follow_decode_scale();
  void restart_pod_names() { pods_made_ = 0; }
  /// The router Deployment's controller: keeps ReplicaSets, and finishes the roll-out when `succeed`.
  void run_deployment_controller(bool succeed = true);
  void exceed_progress_deadline();
  /// The calibrator of the newest Job writes its result and the Job completes.
  void finish_calibration(double rho = 0.6, std::uint64_t seed = 1);
  void fail_job(const std::string& job, int exit_code, const std::string& message);
  void complete_job(const std::string& job);

  // --- what there is
  Json policy() const { return cluster.get(kube::kEldrPolicies, kPolicyKey); }
  std::string condition(const char* type) const;  ///< "True/Published"
  std::string message(const char* type) const;
  std::vector<std::string> job_names() const;
  std::string only_job() const;
  Json job(const std::string& name) const { return cluster.get(kube::kJobs, {kPolicyKey.ns, name}); }
  Json router() const { return cluster.get(kube::kDeployments, {kPolicyKey.ns, "qwen3-router"}); }
  Json router_config() const;
  std::string router_yaml() const;
  std::string routed_centroids() const;  ///< ConfigMap named by the router Deployment
  std::vector<std::string> results() const;
  std::map<std::string, std::string> cluster_labels() const;  ///< pod -> id
  std::string status_text(std::initializer_list<std::string_view> path) const;

  TestClock clock;
  std::shared_ptr<FakeCluster> server = std::make_shared<FakeCluster>(clock);
  FakeCluster& cluster = *server;
  EventList events;
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<Reconciler> reconciler;

 private:
  int pods_made_ = 0;
};

}  // namespace eldr::op::testing
