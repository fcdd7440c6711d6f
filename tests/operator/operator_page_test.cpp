// SPDX-License-Identifier: Apache-2.0
// docs/reference/operator.md against the code: every metric that the operator registers is described there.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include "lib/kube/metrics.h"

namespace eldr::op {
namespace {

using ::testing::HasSubstr;

std::string operator_page() {
  std::ifstream in(std::string(ELDR_SOURCE_DIR) + "/docs/reference/operator.md");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(OperatorPage, DescribesEveryMetric) {
  prometheus::Registry registry;
  const auto client = kube::make_client_metrics(registry);
  const auto queue = kube::make_work_queue_metrics(registry, "eldrpolicy");
  const auto reconcile = kube::make_reconcile_metrics(registry, "eldrpolicy");
  const auto election = kube::make_leader_election_metrics(registry, "eldr-operator");
  client->request_done("GET", "200", 0.01);
  reconcile->started();
  reconcile->finished(kube::ReconcileResult::kError, 0.1);
  const auto families = registry.Collect();
  ASSERT_GE(families.size(), 12U);
  const std::string page = operator_page();
  for (const auto& family : families) EXPECT_THAT(page, HasSubstr("| `" + family.name + "` |"));
}

}  // namespace
}  // namespace eldr::op
