// SPDX-License-Identifier: Apache-2.0
#include "lib/base/digest.h"

#include <array>

#include <openssl/evp.h>
#include <sodium.h>

namespace eldr {

std::string sha256_hex(std::string_view data) {
  std::array<unsigned char, 32> digest{};
  EVP_Digest(data.data(), data.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::array<char, 65> hex{};
  sodium_bin2hex(hex.data(), hex.size(), digest.data(), digest.size());
  return hex.data();
}

std::string base64_encode(std::span<const std::byte> data) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(data.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(data.data()),
                    data.size(), kVariant);
  text.pop_back();  // the terminating zero
  return text;
}

Result<std::vector<std::byte>> base64_decode(std::string_view text, std::size_t max_bytes) {
  if (text.size() / 4 > max_bytes / 3 + 1) {
    return failure(Code::kResourceExhausted, "base64 text of " + std::to_string(text.size()) +
                                                 " characters decodes to more than " +
                                                 std::to_string(max_bytes) + " bytes");
  }
  std::vector<std::byte> bytes(text.size() / 4 * 3 + 3);
  std::size_t length = 0;
  const char* end = nullptr;
  const int rc = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                                   text.size(), nullptr, &length, &end, sodium_base64_VARIANT_ORIGINAL);
  if (rc != 0 || end != text.data() + text.size()) {
    return failure(Code::kInvalid, "not base64: wrong character or padding");
  }
  if (length > max_bytes) {
    return failure(Code::kResourceExhausted, "base64 text decodes to " + std::to_string(length) +
                                                 " bytes; at most " + std::to_string(max_bytes) +
                                                 " are allowed");
  }
  bytes.resize(length);
  return bytes;
}

}  // namespace eldr
