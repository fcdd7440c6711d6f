// SPDX-License-Identifier: Apache-2.0
// What tests against a real API server share: a connection, a namespace of their own, waiting. Skips, saying
// why, without ELDR_TEST_KUBECONFIG.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/kube/connect.h"
#include "lib/kube/object.h"
#include "tests/operator/world.h"

namespace eldr::op::testing {

class IntegrationTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Json get(const kube::Resource& resource, const std::string& name) const;
  std::vector<Json> list(const kube::Resource& resource, const std::string& selector = "") const;
  Json apply(const kube::Resource& resource, Json object) const;
  void merge(const kube::Resource& resource, const std::string& name, const Json& patch,
             const std::string& subresource = "") const;
  /// Fails the test with `what` when it does not become true within a minute.
  void wait_for(const std::string& what, const std::function<bool()>& condition) const;

  RealClock clock;
  kube::Connection connection;
  kube::Client* client = nullptr;
  std::string ns;
};

}  // namespace eldr::op::testing
