// SPDX-License-Identifier: Apache-2.0
// SHA-256 (OpenSSL) and base64 (libsodium), behind functions that cannot throw.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr {

/// SHA-256 of `data` as 64 lower-case hex digits.
std::string sha256_hex(std::string_view data);
/// Standard alphabet with padding.
std::string base64_encode(std::span<const std::byte> data);
/// Strict: standard alphabet, right padding, nothing after it; at most `max_bytes` decoded bytes.
Result<std::vector<std::byte>> base64_decode(std::string_view text, std::size_t max_bytes);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace eldr
