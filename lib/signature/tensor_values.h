// SPDX-License-Identifier: Apache-2.0
// Typed values in and out of a tensor's bytes. Bytes of a file are not aligned, so they are always copied.
// Internal to lib/signature.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "lib/signature/safetensors.h"

namespace eldr::signature {

static_assert(std::endian::native == std::endian::little, "safetensors and the wire are little endian");

/// `view.bytes` as values; sizeof(T) must be size_of(view.dtype).
template <class T>
std::vector<T> values_of(const TensorView& view) {
  std::vector<T> values(view.elements());
  if (!values.empty()) std::memcpy(values.data(), view.bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace eldr::signature
