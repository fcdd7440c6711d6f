// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cli/available_cpus.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

namespace eldr::calibrator {

unsigned available_cpus() {
  unsigned cpus = std::max(std::thread::hardware_concurrency(), 1U);
  double quota = 0;
  double period = 0;
  if (std::ifstream limit("/sys/fs/cgroup/cpu.max"); limit >> quota >> period && period > 0) {
    cpus = std::min(cpus, static_cast<unsigned>(std::max(1.0, std::ceil(quota / period))));
  }
  return cpus;
}

}  // namespace eldr::calibrator
