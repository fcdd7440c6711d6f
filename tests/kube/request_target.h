// SPDX-License-Identifier: Apache-2.0
// What a request to an API server is about, for the fakes.
#pragma once

#include <map>
#include <string>

#include "lib/kube/json.h"
#include "lib/kube/resource.h"

namespace eldr::kube::testing {

/// A request's target taken apart: /apis/apps/v1/namespaces/serving/deployments/decode/scale?force=true
struct RequestTarget {
  std::string api_version;  ///< "apps/v1"
  std::string plural;       ///< "deployments"
  ObjectKey key;
  std::string subresource;  ///< "scale"
  std::map<std::string, std::string> query;

  /// The same for all objects of a kind: "apps/v1/deployments".
  std::string collection() const { return api_version + "/" + plural; }
};
RequestTarget parse_target(const std::string& target);

/// Whether a label selector of "key=value" and "key" terms chooses the object.
bool selected(const std::string& selector, const Json& object);

}  // namespace eldr::kube::testing
