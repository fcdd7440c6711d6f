// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/resource.h"

namespace eldr::kube {

std::string Resource::api_version() const { return group.empty() ? version : group + "/" + version; }

std::string Resource::collection_path(std::string_view ns) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !ns.empty()) {
    path.append("/namespaces/").append(percent_encode(ns));
  }
  return path + "/" + plural;
}

std::string Resource::object_path(std::string_view ns, std::string_view name,
                                  std::string_view subresource) const {
  std::string path = collection_path(ns) + "/" + percent_encode(name);
  if (!subresource.empty()) {
    path.append("/").append(percent_encode(subresource));
  }
  return path;
}

std::string ObjectKey::to_string() const { return ns.empty() ? name : ns + "/" + name; }

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const unsigned char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                            c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved) {
      out += static_cast<char>(c);
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

}  // namespace eldr::kube
