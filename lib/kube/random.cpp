// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/random.h"

#include <mutex>
#include <random>

namespace eldr::kube {
namespace {

class Mersenne final : public Random {
 public:
  explicit Mersenne(std::uint64_t seed) : engine_(seed) {}
  double uniform() override {
    const std::lock_guard lock(mutex_);
    return static_cast<double>(engine_() >> 11) * 0x1.0p-53;  // 53 bits: never rounds up to 1
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 engine_;
};

}  // namespace

std::unique_ptr<Random> make_random() {
  std::random_device entropy;
  return make_random((std::uint64_t{entropy()} << 32) | entropy());
}
std::unique_ptr<Random> make_random(std::uint64_t seed) { return std::make_unique<Mersenne>(seed); }

}  // namespace eldr::kube
