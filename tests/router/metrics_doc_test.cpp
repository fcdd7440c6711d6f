// SPDX-License-Identifier: Apache-2.0
// docs/reference/router.md lists what the program has.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/registry.h>

#include "router/metrics/metrics.h"

namespace eldr::router {
namespace {

std::string page() {
  const std::ifstream file(std::string(ELDR_SOURCE_DIR) + "/docs/reference/router.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(RouterReference, ListsEveryMetric) {
  auto workers = std::make_shared<WorkerRegistry>(HealthConfig{});
  workers->replace(Role::kDecode, {{"w", "h", 1, 2}});
  Config config;
  const auto routing = *make_routing(config, "", std::nullopt);
  Metrics metrics(workers, [&] { return routing; });
  metrics.request(Route::kChat, 200, 0.1);  // series that exist from their first use
  Decision decision;
  decision.cluster = 2;
  metrics.decided(Reason::kSignature, decision, "LocalityBand");
  const auto text = page();
  const auto families = metrics.collectable()->Collect();
  EXPECT_EQ(families.size(), 28U);
  for (const auto& family : families) {
    EXPECT_TRUE(family.name.starts_with("eldr_router_")) << family.name;
    EXPECT_NE(text.find("`" + family.name), std::string::npos)
        << family.name << " is not in docs/reference/router.md";
    for (const auto& metric : family.metric)
      for (const auto& label : metric.label)
        EXPECT_NE(text.find("`" + label.name + "`"), std::string::npos)
            << "label " << label.name << " of " << family.name << " is not in docs/reference/router.md";
  }
}

TEST(RouterReference, ListsEveryReason) {
  const auto text = page();
  for (std::size_t i = 0; i < kReasons; ++i) {
    const auto name = name_of(static_cast<Reason>(i));
    EXPECT_NE(text.find("`" + std::string(name) + "`"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace eldr::router
