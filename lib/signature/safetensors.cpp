// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "lib/signature/text.h"

namespace eldr::signature {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kPrefix = 8;   ///< bytes of the header's length
constexpr std::size_t kMaxRank = 8;  ///< extents of one tensor
constexpr const char* kMetadataKey = "__metadata__";

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  std::size_t size;
};
constexpr std::array<DTypeFacts, 11> kDTypes = {{{DType::kU8, "U8", 1},
                                                 {DType::kI8, "I8", 1},
                                                 {DType::kU16, "U16", 2},
                                                 {DType::kI16, "I16", 2},
                                                 {DType::kF16, "F16", 2},
                                                 {DType::kU32, "U32", 4},
                                                 {DType::kI32, "I32", 4},
                                                 {DType::kF32, "F32", 4},
                                                 {DType::kU64, "U64", 8},
                                                 {DType::kI64, "I64", 8},
                                                 {DType::kF64, "F64", 8}}};

const DTypeFacts& facts_of(DType dtype) {
  return *std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeFacts& f) { return f.dtype == dtype; });
}

std::optional<DType> dtype_from(std::string_view name) {
  const auto found =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeFacts& f) { return f.name == name; });
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

/// Bytes of a tensor of that shape; nullopt: more than std::size_t holds.
std::optional<std::size_t> byte_size(DType dtype, const std::vector<std::size_t>& shape) {
  std::size_t bytes = size_of(dtype);
  for (const std::size_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (const std::size_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

/// What the header says of one tensor.
struct TensorEntry {
  std::optional<std::string> dtype;
  std::optional<std::vector<std::size_t>> shape;
  std::optional<std::vector<std::size_t>> offsets;
};

/// Reads the header event by event, so that duplicate keys are seen and depth and memory stay bounded.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::size_t max_tensors) : max_tensors_(max_tensors) {}

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_integer(number_integer_t value) override {
    return unexpected("the negative number " + std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + in_quotes(text));
  }
  bool binary(binary_t&) override { return unexpected("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (where_ != Where::kNumbers) return unexpected("a number");
    if (numbers_->size() == max_numbers_)
      return refuse("more than " + std::to_string(max_numbers_) + " numbers");
    numbers_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (where_ == Where::kMetadata) {
      metadata[key_] = std::move(value);
      return true;
    }
    if (where_ != Where::kTensor || field_ != "dtype") return unexpected("a string");
    entry_->dtype = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (where_ == Where::kOutside) {
      where_ = Where::kRoot;
      return true;
    }
    if (where_ != Where::kRoot) return unexpected("an object");
    where_ = key_ == kMetadataKey ? Where::kMetadata : Where::kTensor;
    return true;
  }

  bool end_object() override {
    if (where_ == Where::kTensor && !(entry_->dtype && entry_->shape && entry_->offsets)) {
      return refuse("needs dtype, shape and data_offsets");
    }
    where_ = where_ == Where::kRoot ? Where::kOutside : Where::kRoot;
    return true;
  }

  bool key(string_t& name) override {
    switch (where_) {
      case Where::kRoot:
        return start_entry(name);
      case Where::kMetadata:
        key_ = name;
        return metadata.count(name) == 0 || refuse("duplicate metadata key " + in_quotes(name));
      default:
        return start_field(name);
    }
  }

  bool start_array(std::size_t) override {
    if (where_ != Where::kTensor || field_ == "dtype") return unexpected("a list");
    auto& list = field_ == "shape" ? entry_->shape : entry_->offsets;
    list.emplace();
    numbers_ = &*list;
    max_numbers_ = field_ == "shape" ? kMaxRank : 2;
    where_ = Where::kNumbers;
    return true;
  }

  bool end_array() override {
    if (field_ == "data_offsets" && numbers_->size() != 2) return refuse("data_offsets needs two numbers");
    where_ = Where::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse("not JSON at byte " + std::to_string(position));
  }

  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
  std::string reason;  ///< why reading stopped

 private:
  enum class Where { kOutside, kRoot, kMetadata, kTensor, kNumbers };

  bool refuse(const std::string& why) {
    if (reason.empty()) reason = (entry_ != nullptr ? "tensor " + in_quotes(tensor_) + ": " : "") + why;
    return false;
  }
  bool unexpected(const std::string& what) { return refuse(what + " where the format has none"); }

  bool start_entry(const std::string& name) {
    key_ = name;
    entry_ = nullptr;
    if (name == kMetadataKey) {
      if (has_metadata_) return refuse("duplicate key \"__metadata__\"");
      has_metadata_ = true;
      return true;
    }
    if (tensors.size() == max_tensors_)
      return refuse("more than " + std::to_string(max_tensors_) + " tensors");
    const auto [place, added] = tensors.try_emplace(name);
    if (!added) return refuse("duplicate tensor " + in_quotes(name));
    tensor_ = name;
    entry_ = &place->second;
    return true;
  }

  bool start_field(const std::string& name) {
    field_ = name;
    const bool known = name == "dtype" || name == "shape" || name == "data_offsets";
    if (!known) return refuse("unknown key " + in_quotes(name));
    const bool seen = name == "dtype"   ? entry_->dtype.has_value()
                      : name == "shape" ? entry_->shape.has_value()
                                        : entry_->offsets.has_value();
    return !seen || refuse("duplicate key " + in_quotes(name));
  }

  std::size_t max_tensors_;
  Where where_ = Where::kOutside;
  std::string key_;    ///< in the root or the metadata
  std::string field_;  ///< in a tensor
  std::string tensor_;
  TensorEntry* entry_ = nullptr;
  std::vector<std::size_t>* numbers_ = nullptr;
  std::size_t max_numbers_ = 0;
  bool has_metadata_ = false;
};

tl::unexpected<Error> invalid(const std::string& reason) {
  return failure(Code::kInvalid, "safetensors: " + reason);
}

/// The header's text, between its length and the tensors' bytes.
Result<std::string_view> header_of(std::span<const std::byte> bytes, std::size_t max_header) {
  if (bytes.size() < kPrefix)
    return invalid("truncated: " + std::to_string(bytes.size()) + " bytes; the header's length takes 8");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kPrefix);
  if (length > max_header) {
    return invalid("header of " + std::to_string(length) + " bytes; at most " + std::to_string(max_header) +
                   " are allowed");
  }
  if (length > bytes.size() - kPrefix) {
    return invalid("truncated: header of " + std::to_string(length) + " bytes in a file of " +
                   std::to_string(bytes.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kPrefix, length);
  if (text.empty() || text.front() != '{') return invalid("header must begin with {");
  // The JSON reader takes a zero byte for the end of its input, so text after it would go unseen.
  if (text.find('\0') != std::string_view::npos) return invalid("header holds a zero byte");
  return text;
}

Result<TensorView> view_of(const std::string& name, const TensorEntry& entry,
                           std::span<const std::byte> data) {
  const auto fail = [&](const std::string& why) { return invalid("tensor " + in_quotes(name) + ": " + why); };
  const auto dtype = dtype_from(*entry.dtype);
  if (!dtype) return fail("unknown dtype " + in_quotes(*entry.dtype));
  const std::size_t begin = (*entry.offsets)[0];
  const std::size_t end = (*entry.offsets)[1];
  if (begin > end || end > data.size()) {
    return fail("data_offsets " + shape_text(*entry.offsets) + " outside the " + std::to_string(data.size()) +
                " data bytes");
  }
  const auto size = byte_size(*dtype, *entry.shape);
  if (!size || *size != end - begin) {
    return fail("shape " + shape_text(*entry.shape) + " of " + std::string(name_of(*dtype)) +
                " does not take the " + std::to_string(end - begin) + " bytes of its data_offsets");
  }
  return TensorView{*dtype, *entry.shape, data.subspan(begin, end - begin)};
}

/// The tensors must cover the data exactly: no overlap, no gap, nothing after the last.
Status check_cover(const std::map<std::string, TensorView>& tensors, std::span<const std::byte> data) {
  struct Extent {
    std::size_t begin;
    std::size_t end;
    const std::string* name;
  };
  std::vector<Extent> extents;
  extents.reserve(tensors.size());
  for (const auto& [name, view] : tensors) {
    const auto begin = static_cast<std::size_t>(view.bytes.data() - data.data());
    extents.push_back({begin, begin + view.bytes.size(), &name});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::size_t covered = 0;
  for (const Extent& extent : extents) {
    if (extent.begin < covered) return invalid("tensor " + in_quotes(*extent.name) + " overlaps another");
    if (extent.begin > covered)
      return invalid("gap of " + std::to_string(extent.begin - covered) + " bytes before tensor " +
                     in_quotes(*extent.name));
    covered = extent.end;
  }
  if (covered != data.size())
    return invalid(std::to_string(data.size() - covered) + " bytes after the last tensor");
  return {};
}

/// `text` as a JSON string; nullopt: not UTF-8.
std::optional<std::string> json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

Result<std::string> metadata_json(const std::map<std::string, std::string>& metadata) {
  std::string json;
  for (const auto& [key, value] : metadata) {
    const auto key_text = json_string(key);
    const auto value_text = json_string(value);
    if (!key_text || !value_text) return invalid("metadata " + in_quotes(key) + " is not UTF-8");
    json += (json.empty() ? "" : ",") + *key_text + ":" + *value_text;
  }
  return "\"__metadata__\":{" + json + "}";
}

Result<std::string> tensor_json(const TensorData& tensor, std::size_t begin) {
  const auto name = json_string(tensor.name);
  if (!name || tensor.name == kMetadataKey) return invalid("not a tensor name: " + in_quotes(tensor.name));
  const auto size = byte_size(tensor.dtype, tensor.shape);
  if (!size || *size != tensor.bytes.size() || tensor.shape.size() > kMaxRank) {
    return invalid("tensor " + in_quotes(tensor.name) + ": shape " + shape_text(tensor.shape) +
                   " does not take " + std::to_string(tensor.bytes.size()) + " bytes");
  }
  std::string shape;
  for (const std::size_t extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  return *name + ":{\"dtype\":\"" + std::string(name_of(tensor.dtype)) + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.bytes.size()) +
         "]}";
}

}  // namespace

std::size_t size_of(DType dtype) { return facts_of(dtype).size; }
std::string_view name_of(DType dtype) { return facts_of(dtype).name; }

std::size_t TensorView::elements() const { return bytes.size() / size_of(dtype); }

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes,
                                               const SafetensorsLimits& limits) {
  const auto header = header_of(bytes, limits.max_header);
  if (!header) return failure(header.error());
  HeaderReader reader(limits.max_tensors);
  if (!nlohmann::json::sax_parse(header->begin(), header->end(), &reader))
    return invalid("header: " + reader.reason);

  const auto data = bytes.subspan(kPrefix + header->size());
  SafetensorsFile file;
  for (const auto& [name, entry] : reader.tensors) {
    auto view = view_of(name, entry, data);
    if (!view) return failure(view.error());
    file.tensors_.emplace(name, std::move(*view));
  }
  if (const Status cover = check_cover(file.tensors_, data); !cover) return failure(cover.error());
  file.metadata_ = std::move(reader.metadata);
  return file;
}

Result<TensorView> SafetensorsFile::get(const std::string& name, DType dtype,
                                        std::vector<std::size_t> shape) const {
  const auto fail = [&](const std::string& why) {
    return failure(Code::kInvalid, "tensor " + in_quotes(name) + ": " + why);
  };
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return fail("missing");
  const TensorView& view = found->second;
  if (view.dtype != dtype) {
    return fail("dtype " + std::string(name_of(view.dtype)) + "; must be " + std::string(name_of(dtype)));
  }
  const bool fits =
      view.shape.size() == shape.size() &&
      std::equal(shape.begin(), shape.end(), view.shape.begin(),
                 [](std::size_t wanted, std::size_t is) { return wanted == 0 || wanted == is; });
  if (!fits)
    return fail("shape " + shape_text(view.shape) + "; must be " + shape_text(shape) + ", 0 meaning any");
  return view;
}

Result<std::string> SafetensorsFile::meta(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return failure(Code::kInvalid, "metadata " + in_quotes(key) + ": missing");
  return found->second;
}

Result<std::vector<std::byte>> serialize_safetensors(const std::vector<TensorData>& tensors,
                                                     const std::map<std::string, std::string>& metadata) {
  auto header = metadata_json(metadata);
  if (!header) return failure(header.error());
  std::set<std::string> names;
  std::size_t data_size = 0;
  for (const TensorData& tensor : tensors) {
    if (!names.insert(tensor.name).second) return invalid("duplicate tensor " + in_quotes(tensor.name));
    const auto json = tensor_json(tensor, data_size);
    if (!json) return failure(json.error());
    *header += "," + *json;
    data_size += tensor.bytes.size();
  }
  std::string text = "{" + *header + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');

  std::vector<std::byte> bytes(kPrefix + text.size() + data_size);
  const std::uint64_t length = text.size();
  std::byte* out = bytes.data();
  std::memcpy(out, &length, kPrefix);
  std::memcpy(out + kPrefix, text.data(), text.size());
  out += kPrefix + text.size();
  for (const TensorData& tensor : tensors) {
    if (tensor.bytes.empty()) continue;
    std::memcpy(out, tensor.bytes.data(), tensor.bytes.size());
    out += tensor.bytes.size();
  }
  return bytes;
}

}  // namespace eldr::signature
