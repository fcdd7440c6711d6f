// SPDX-License-Identifier: Apache-2.0
// The safetensors container: 8 bytes little-endian header length, a JSON header, then the tensors' bytes.
// Reading is strict, since files come from other programs: every bound is checked, nothing overlaps, nothing
// is left over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::signature {

enum class DType { kU8, kI8, kU16, kI16, kF16, kU32, kI32, kF32, kU64, kI64, kF64 };
std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);  ///< "U8", "I32", …

struct TensorView {
  DType dtype = DType::kU8;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;  ///< into the file's buffer, which must outlive the view
  std::size_t elements() const;
};

struct SafetensorsLimits {
  std::size_t max_header = 16U << 20U;  ///< bytes
  std::size_t max_tensors = 256;
};

/// A parsed file: views into `bytes`, which the caller keeps alive. Refuses (kInvalid, with the reason):
/// truncation, a header over the limit, duplicate keys, unknown dtypes, sizes that disagree with shapes,
/// overlaps, gaps, bytes after the last tensor.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes,
                                       const SafetensorsLimits& limits = {});

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// The tensor of that name, dtype and rank; an extent of 0 in `shape` accepts any size there. kInvalid
  /// names what differs.
  Result<TensorView> get(const std::string& name, DType dtype, std::vector<std::size_t> shape) const;
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  Result<std::string> meta(const std::string& key) const;  ///< kInvalid: missing

 private:
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct TensorData {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;
};

/// The file's bytes; same input, same bytes. Tensors are laid out in the order given, 8-byte aligned header.
Result<std::vector<std::byte>> serialize_safetensors(const std::vector<TensorData>& tensors,
                                                     const std::map<std::string, std::string>& metadata);

/// Whole file into memory. kNotFound, kInvalid (over max_bytes, not a regular file), kResourceExhausted (no
/// memory), kUnavailable (I/O error).
Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t max_bytes);
/// Written beside the target and renamed over it, so that readers see the old file or the new one, never a
/// part.
Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes);

}  // namespace eldr::signature
