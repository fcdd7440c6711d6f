// SPDX-License-Identifier: Apache-2.0
// Every fuzz target on its seeds and on deterministic mutations of them. A crash or a broken property ends
// the program; run again with ELDR_FUZZ_KEEP=FILE, the same inputs come in the same order and FILE holds the
// one that did it.
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutate.h"

namespace eldr::fuzz {
namespace {

constexpr int kMutations = 6000;

class Smoke : public ::testing::TestWithParam<Target> {
 protected:
  void run(const Bytes& input) const {
    if (keep_ != nullptr) {
      std::ofstream file(keep_, std::ios::binary | std::ios::trunc);
      file.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    }
    // A copy of exactly that size, on the heap: a sanitizer sees every read beyond it.
    const Bytes exact(input.begin(), input.end());
    GetParam().run(exact);
  }
  const char* keep_ = std::getenv("ELDR_FUZZ_KEEP");
};

TEST_P(Smoke, SurvivesItsSeedsAndTheirMutations) {
  const auto seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  run({});
  for (const Bytes& seed : seeds) run(seed);
  std::mt19937_64 random(20261130);
  for (int i = 0; i < kMutations; ++i) {
    const Bytes& seed = seeds[random() % seeds.size()];
    run(mutate(seed, seeds[random() % seeds.size()], random));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Smoke, ::testing::ValuesIn(targets()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Mutate, IsDeterministicAndBounded) {
  const Bytes input(100, std::byte{7}), other(50, std::byte{9});
  std::mt19937_64 first(1), second(1);
  std::size_t changed = 0;
  for (int i = 0; i < 1000; ++i) {
    const Bytes a = mutate(input, other, first);
    EXPECT_EQ(a, mutate(input, other, second));
    EXPECT_LE(a.size(), 2 * input.size() + 64);
    changed += a != input ? 1 : 0;
  }
  EXPECT_GT(changed, 900U);
}

}  // namespace
}  // namespace eldr::fuzz
