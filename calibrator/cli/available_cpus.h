// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace eldr::calibrator {

/// CPUs that this process may use: the scheduler's mask, and a container's limit (cgroup v2) rounded up. At
/// least
/// 1. For main() only: it reads the machine.
unsigned available_cpus();

}  // namespace eldr::calibrator
