// SPDX-License-Identifier: Apache-2.0
// Workers from the pods of a cluster: the factory that main() hands to the router.
#pragma once

#include <string>

#include "lib/base/clock.h"
#include "router/app/router.h"

namespace eldr::router {

/// `kubeconfig`: the flag's value, or empty. The clock outlives every source made.
PodSourceFactory pod_source_factory(std::string kubeconfig, const Clock& clock);

}  // namespace eldr::router
