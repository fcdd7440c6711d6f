// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/leader_election.h"

#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "lib/kube/object.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;

const ObjectKey kLease{"eldr-system", "eldr-operator"};

class LeaderElectionTest : public ::testing::Test {
 protected:
  std::unique_ptr<LeaderElector> elector(const std::string& identity, const Clock& clock) {
    LeaderElectionOptions options;
    options.lease = kLease;
    options.identity = identity;
    return std::make_unique<LeaderElector>(client, options, LeaderCallbacks{}, clock, *random);
  }
  std::string holder() { return string_at(server->object(kLeases, kLease), {"spec", "holderIdentity"}); }
  void refuse_everything() {
    server->intercept([](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
      return Result<HttpResponse>(failure(Code::kUnavailable, "connection refused"));
    });
  }

  testing::FakeClock clock;
  std::shared_ptr<testing::FakeApiServer> server = std::make_shared<testing::FakeApiServer>();
  Client client{server, {}, clock};
  std::unique_ptr<Random> random = make_random(1);
};

TEST_F(LeaderElectionTest, FirstCreatesTheLeaseAndTheSecondWaitsForItToRunOut) {
  auto first = elector("first", clock);
  auto second = elector("second", clock);
  EXPECT_EQ(first->try_once(), true);
  EXPECT_EQ(second->try_once(), false);
  EXPECT_TRUE(first->is_leader());
  EXPECT_FALSE(second->is_leader());
  EXPECT_EQ(second->leader(), "first");

  clock.advance(10s);
  EXPECT_EQ(first->try_once(), true);  // renewed: the second's observation starts anew
  EXPECT_EQ(second->try_once(), false);
  clock.advance(14s);
  EXPECT_EQ(second->try_once(), false);
  clock.advance(1s);
  EXPECT_EQ(second->try_once(), true) << "15 s after it saw the last change";
  EXPECT_EQ(holder(), "second");
  EXPECT_EQ(int_at(server->object(kLeases, kLease), {"spec", "leaseTransitions"}), 1);
  EXPECT_EQ(first->try_once(), false);
  EXPECT_FALSE(first->is_leader());
}

TEST_F(LeaderElectionTest, NeverTwoLeadersWhateverHappensToTheCalls) {
  // Random walks: calls fail or not, time passes. Whoever leads by its own clock must be alone.
  std::mt19937 dice(5);
  auto first = elector("first", clock);
  auto second = elector("second", clock);
  int led[2] = {0, 0};
  for (int i = 0; i < 20'000; ++i) {
    const bool broken = dice() % 3 == 0;
    const bool lost_answer = dice() % 6 == 0;
    server->intercept([=](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
      if (broken) {
        return Result<HttpResponse>(failure(Code::kUnavailable, "refused"));
      }
      if (lost_answer) {
        return Result<HttpResponse>(testing::status_response(500, "InternalError", "x"));
      }
      return std::nullopt;
    });
    (void)(dice() % 2 == 0 ? first : second)->try_once();
    EXPECT_FALSE(first->is_leader() && second->is_leader()) << i;
    led[0] += first->is_leader() ? 1 : 0;
    led[1] += second->is_leader() ? 1 : 0;
    clock.advance(std::chrono::milliseconds(dice() % 9000));
  }
  EXPECT_GT(led[0], 100);
  EXPECT_GT(led[1], 100);
}

TEST_F(LeaderElectionTest, TheLeasesOwnTimestampsAreNotBelieved) {
  server->put(kLeases, kLease.ns,
              {{"metadata", {{"name", kLease.name}}},
               {"spec",
                {{"holderIdentity", "ghost"},
                 {"leaseDurationSeconds", 15},
                 {"renewTime", "1999-01-01T00:00:00.0Z"}}}});
  auto candidate = elector("candidate", clock);
  EXPECT_EQ(candidate->try_once(), false) << "its clock may be wrong: we wait as long as it says";
  clock.advance(15s);
  EXPECT_EQ(candidate->try_once(), true);
}

TEST_F(LeaderElectionTest, LeadershipEndsByItselfWhenItCannotBeRenewed) {
  auto leader = elector("leader", clock);
  ASSERT_EQ(leader->try_once(), true);
  refuse_everything();
  clock.advance(9s);
  EXPECT_FALSE(leader->try_once().has_value());
  EXPECT_TRUE(leader->is_leader());
  clock.advance(1s);
  EXPECT_FALSE(leader->is_leader()) << "before anybody else could take over (15 s)";
}

TEST_F(LeaderElectionTest, ReleaseLetsTheNextOneInAtOnce) {
  auto first = elector("first", clock);
  auto second = elector("second", clock);
  ASSERT_EQ(first->try_once(), true);
  ASSERT_EQ(second->try_once(), false);
  first->stop_and_release();
  EXPECT_EQ(holder(), "");
  EXPECT_FALSE(first->is_leader());
  EXPECT_EQ(second->try_once(), true);
}

TEST_F(LeaderElectionTest, ReleaseWithoutTheLeaseTouchesNothing) {
  auto first = elector("first", clock);
  auto second = elector("second", clock);
  ASSERT_EQ(first->try_once(), true);
  ASSERT_EQ(second->try_once(), false);
  second->stop_and_release();
  EXPECT_EQ(holder(), "first");
}

TEST_F(LeaderElectionTest, DeletedLeaseIsMadeAnew) {
  auto leader = elector("leader", clock);
  ASSERT_EQ(leader->try_once(), true);
  server->erase(kLeases, kLease);
  EXPECT_EQ(leader->try_once(), true);
  EXPECT_EQ(holder(), "leader");
}

TEST_F(LeaderElectionTest, OptionsThatCannotWorkAreRefused) {
  const auto status = [&](auto change) {
    LeaderElectionOptions options;
    options.lease = kLease;
    options.identity = "x";
    change(options);
    return LeaderElector(client, options, {[] {}, [] {}, {}}, clock, *random).start();
  };
  EXPECT_FALSE(status([](auto& options) { options.identity.clear(); }));
  EXPECT_FALSE(status([](auto& options) { options.lease.name.clear(); }));
  EXPECT_FALSE(status([](auto& options) { options.renew_deadline = options.lease_duration; }));
  EXPECT_FALSE(status([](auto& options) { options.retry_period = 9s; }));
}

// On threads, with the real clock.
class LeaderElectionThreads : public LeaderElectionTest {
 protected:
  struct Candidate {
    std::atomic<int> started{0}, lost{0};
    std::unique_ptr<LeaderElector> elector;
  };
  void run(Candidate& candidate, const std::string& identity) {
    LeaderElectionOptions options;
    options.lease = kLease;
    options.identity = identity;
    options.lease_duration = 1000ms;
    options.renew_deadline = 600ms;
    options.retry_period = 50ms;
    candidate.elector = std::make_unique<LeaderElector>(
        real_client, options,
        LeaderCallbacks{[&candidate] { ++candidate.started; }, [&candidate] { ++candidate.lost; }, {}},
        real_clock, *random);
    ASSERT_TRUE(candidate.elector->start());
  }
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000 && !holds(); ++i) {
      std::this_thread::sleep_for(5ms);
    }
    return holds();
  }
  const RealClock real_clock;
  Client real_client{server, {}, real_clock};
};

TEST_F(LeaderElectionThreads, StartsOnceAndHandsOverOnRelease) {
  Candidate first, second;
  run(first, "first");
  ASSERT_TRUE(eventually([&] { return first.started == 1; }));
  run(second, "second");
  std::this_thread::sleep_for(1200ms);
  EXPECT_EQ(second.started, 0) << "the first keeps renewing";
  first.elector->stop_and_release();
  EXPECT_TRUE(eventually([&] { return second.started == 1; }));
  EXPECT_EQ(first.lost, 0) << "a release is not a loss";
  EXPECT_EQ(first.started, 1);
}

TEST_F(LeaderElectionThreads, LossIsReportedOnceAndInTime) {
  Candidate leader;
  run(leader, "leader");
  ASSERT_TRUE(eventually([&] { return leader.started == 1; }));
  refuse_everything();
  const auto begun = real_clock.steady();
  ASSERT_TRUE(eventually([&] { return leader.lost == 1; }));
  EXPECT_LT(real_clock.steady() - begun, 900ms) << "before the lease of 1 s runs out";
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(leader.lost, 1);
}

TEST_F(LeaderElectionThreads, AnotherHolderEndsLeadershipAtOnce) {
  Candidate leader;
  run(leader, "leader");
  ASSERT_TRUE(eventually([&] { return leader.started == 1; }));
  Json lease = server->object(kLeases, kLease);
  lease["spec"]["holderIdentity"] = "usurper";
  lease["spec"]["leaseDurationSeconds"] = 3600;
  server->put(kLeases, kLease.ns, lease);
  EXPECT_TRUE(eventually([&] { return leader.lost == 1; }));
  EXPECT_FALSE(leader.elector->is_leader());
}

}  // namespace
}  // namespace eldr::kube
