// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/safetensors.h"

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

using samples::bytes_of_text;
using samples::file_of;

/// The reader refuses the file and says `reason`.
void expect_refused(std::span<const std::byte> bytes, const std::string& reason) {
  const auto file = SafetensorsFile::parse(bytes);
  ASSERT_FALSE(file.has_value()) << "expected: " << reason;
  EXPECT_EQ(file.error().code, Code::kInvalid);
  EXPECT_NE(file.error().message.find(reason), std::string::npos)
      << file.error().message << "\nexpected: " << reason;
}
void expect_refused(std::string_view header, std::size_t data_bytes, const std::string& reason) {
  expect_refused(file_of(header, data_bytes), reason);
}

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

constexpr DType kEveryDType[] = {DType::kU8,  DType::kI8,  DType::kU16, DType::kI16, DType::kF16, DType::kU32,
                                 DType::kI32, DType::kF32, DType::kU64, DType::kI64, DType::kF64};

TEST(Safetensors, RandomFilesRoundTrip) {
  std::mt19937_64 random(1);
  for (int instance = 0; instance < 200; ++instance) {
    std::vector<std::vector<std::byte>> buffers(random() % 6);
    std::vector<TensorData> tensors;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const DType dtype = kEveryDType[random() % std::size(kEveryDType)];
      std::vector<std::size_t> shape(random() % 4);
      std::size_t elements = 1;
      for (auto& extent : shape) elements *= extent = random() % 4;  // 0 too
      buffers[i] = random_bytes(random, elements * size_of(dtype));
      tensors.push_back({"tensor \"" + std::to_string(i) + "\" \xC3\xA9", dtype, shape, buffers[i]});
    }
    const std::map<std::string, std::string> metadata = {{"format", "x"},
                                                         {"quote\"\n", std::string("zero\0", 5)}};
    const auto bytes = serialize_safetensors(tensors, metadata);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    EXPECT_EQ(serialize_safetensors(tensors, metadata).value(), *bytes) << "same input, same bytes";
    const auto file = SafetensorsFile::parse(*bytes);
    ASSERT_TRUE(file.has_value()) << file.error().to_string();
    EXPECT_EQ(file->metadata(), metadata);
    ASSERT_EQ(file->tensors().size(), tensors.size());
    for (const auto& tensor : tensors) {
      const auto& view = file->tensors().at(tensor.name);
      EXPECT_EQ(view.dtype, tensor.dtype);
      EXPECT_EQ(view.shape, tensor.shape);
      EXPECT_TRUE(std::ranges::equal(view.bytes, tensor.bytes));
      EXPECT_EQ(view.elements() * size_of(view.dtype), tensor.bytes.size());
    }
  }
}

TEST(Safetensors, TheHeaderIsAlignedToEightBytes) {
  const std::vector<std::byte> data(3);
  const auto bytes = serialize_safetensors({{"t", DType::kU8, {3}, data}}, {}).value();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(bytes.size(), 8 + length + 3);
}

TEST(Safetensors, AcceptsWhatOtherWritersMake) {
  // No metadata, fields in any order, blanks around and after, a scalar, an empty tensor between others.
  const auto file = file_of(R"({ "a" : {"data_offsets":[0,4],"shape":[],"dtype":"F32"},
    "e":{"dtype":"U8","shape":[0,7],"data_offsets":[4,4]}, "b":{"dtype":"U8","shape":[2,1],"data_offsets":[4,6]}}   )",
                            6);
  const auto parsed = SafetensorsFile::parse(file);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().to_string();
  EXPECT_EQ(parsed->tensors().at("a").elements(), 1U);
  EXPECT_EQ(parsed->tensors().at("e").elements(), 0U);
  EXPECT_TRUE(parsed->metadata().empty());
  EXPECT_TRUE(SafetensorsFile::parse(file_of("{}", 0)).has_value());
}

TEST(Safetensors, RefusesEveryTruncation) {
  const auto whole =
      serialize_safetensors({{"t", DType::kU16, {3}, std::vector<std::byte>(6)}}, {{"k", "v"}}).value();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(SafetensorsFile::parse(std::span(whole).first(size)).has_value()) << size;
  }
  expect_refused(std::span(whole).first(5), "truncated: 5 bytes");
  expect_refused(std::span(whole).first(20), "truncated: header of");
}

TEST(Safetensors, RefusesHeadersOverTheLimit) {
  auto bytes = file_of("{}", 0);
  const std::uint64_t huge = ~0ULL;
  std::memcpy(bytes.data(), &huge, 8);
  expect_refused(bytes, "header of 18446744073709551615 bytes; at most 16777216 are allowed");
  const auto small = SafetensorsFile::parse(file_of("{}      ", 0), {.max_header = 4});
  ASSERT_FALSE(small.has_value());
  EXPECT_NE(small.error().message.find("at most 4"), std::string::npos);
  const auto many = SafetensorsFile::parse(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},
    "b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                                                   0),
                                           {.max_tensors = 1});
  ASSERT_FALSE(many.has_value());
  EXPECT_NE(many.error().message.find("more than 1 tensors"), std::string::npos);
}

TEST(Safetensors, RefusesHeadersThatAreNotTheFormat) {
  expect_refused("", 0, "must begin with {");
  expect_refused("[]", 0, "must begin with {");
  expect_refused(" {}", 0, "must begin with {");
  expect_refused("\xEF\xBB\xBF{}", 0, "must begin with {");
  expect_refused("{", 0, "not JSON at byte");
  expect_refused("{}{}", 0, "not JSON at byte");
  expect_refused("{\"\xff\":1}", 0, "not JSON at byte");
  expect_refused(std::string_view("{}\0{}", 5), 0, "zero byte");
  expect_refused(R"({"t":1})", 0, "a number where the format has none");
  expect_refused(R"({"t":"x"})", 0, "a string where the format has none");
  expect_refused(R"({"t":null})", 0, "null where");
  expect_refused(R"({"t":true})", 0, "true or false where");
  expect_refused(R"({"t":[]})", 0, "a list where");
  expect_refused(R"({"__metadata__":"x"})", 0, "a string where");
  expect_refused(R"({"__metadata__":{"a":1}})", 0, "a number where");
  expect_refused(R"({"__metadata__":{"a":{}}})", 0, "an object where");
  expect_refused(R"({"__metadata__":{"a":[]}})", 0, "a list where");
  expect_refused(R"({"t":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1, "a list where");
  expect_refused(R"({"t":{"dtype":["U8"],"shape":[1],"data_offsets":[0,1]}})", 1, "a list where");
  expect_refused(R"({"t":{"dtype":"U8","shape":"1","data_offsets":[0,1]}})", 1, "a string where");
  expect_refused(R"({"t":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1, "a number where");
  expect_refused(R"({"t":{"dtype":"U8","shape":{"a":1},"data_offsets":[0,1]}})", 1, "an object where");
  expect_refused(R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1,
                 "the negative number -1 where");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "the number \"1.0\" where");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}})", 1, "the number");
  expect_refused(R"({"t":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1,
                 "the number");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
                 "more than 8 numbers");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "more than 2 numbers");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[1]}})", 1,
                 "data_offsets needs two numbers");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1]}})", 1,
                 "tensor \"t\": needs dtype, shape and data_offsets");
  expect_refused(R"({"t":{}})", 0, "needs dtype, shape and data_offsets");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", 1,
                 "unknown key \"more\"");
}

TEST(Safetensors, RefusesDuplicateKeysAtEveryLevel) {
  const std::string t = R"("t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_refused("{" + t + "," + t + "}", 1, "duplicate tensor \"t\"");
  expect_refused(
      R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0074":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      2, "duplicate tensor \"t\"");
  expect_refused(R"({"t":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
                 "duplicate key \"dtype\"");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", 1,
                 "duplicate key \"shape\"");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1]}})", 1,
                 "duplicate key \"data_offsets\"");
  expect_refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "duplicate metadata key \"a\"");
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, "duplicate key \"__metadata__\"");
}

TEST(Safetensors, RefusesTensorsThatDoNotFitTheirBytes) {
  expect_refused(R"({"t":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", 2, "unknown dtype \"BF16\"");
  expect_refused(R"({"t":{"dtype":"u8","shape":[1],"data_offsets":[0,1]}})", 1, "unknown dtype \"u8\"");
  expect_refused(R"({"t":{"dtype":"U16","shape":[1],"data_offsets":[0,1]}})", 1,
                 "shape [1] of U16 does not take the 1 bytes");
  expect_refused(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", 1, "shape [2] of U8");
  expect_refused(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1,
                 "data_offsets [1, 0] outside the 1 data bytes");
  expect_refused(R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1, "outside the 1 data bytes");
  expect_refused(
      R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,18446744073709551615]}})", 1,
      "outside");
  // Products of extents that overflow 64 bits to the right size.
  expect_refused(R"({"t":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                 "does not take");
  expect_refused(R"({"t":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0,
                 "does not take");
  expect_refused(R"({"t":{"dtype":"F64","shape":[2305843009213693953],"data_offsets":[0,8]}})", 8,
                 "does not take");
}

TEST(Safetensors, RefusesOverlapsGapsAndLeftovers) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_TRUE(SafetensorsFile::parse(file_of(two("[2,4]", "[0,2]"), 4)).has_value()) << "any order";
  expect_refused(two("[0,2]", "[1,3]"), 3, "tensor \"b\" overlaps another");
  expect_refused(two("[0,2]", "[0,2]"), 2, "overlaps another");
  expect_refused(two("[0,2]", "[3,5]"), 5, "gap of 1 bytes before tensor \"b\"");
  expect_refused(two("[1,3]", "[3,5]"), 5, "gap of 1 bytes before tensor \"a\"");
  expect_refused(two("[0,2]", "[2,4]"), 7, "3 bytes after the last tensor");
  expect_refused("{}", 1, "1 bytes after the last tensor");
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
      2, "overlaps another");
}

TEST(Safetensors, ErrorsShowNamesFromTheFileEscapedAndCut) {
  const auto file = SafetensorsFile::parse(file_of("{\"" + std::string(5000, 'n') + "\\n\":{}}", 0));
  ASSERT_FALSE(file.has_value());
  EXPECT_LT(file.error().message.size(), 300U);
  expect_refused(R"({"line\nbreak":{}})", 0, R"(tensor "line\x0abreak")");
}

TEST(Safetensors, GetChecksTypeAndShape) {
  const auto bytes =
      serialize_safetensors({{"t", DType::kU16, {2, 3}, std::vector<std::byte>(12)}}, {{"k", "v"}}).value();
  const auto file = SafetensorsFile::parse(bytes).value();
  EXPECT_TRUE(file.get("t", DType::kU16, {2, 3}).has_value());
  EXPECT_TRUE(file.get("t", DType::kU16, {0, 3}).has_value());
  EXPECT_EQ(file.get("t", DType::kU32, {2, 3}).error().message, "tensor \"t\": dtype U16; must be U32");
  EXPECT_EQ(file.get("t", DType::kU16, {2, 0, 1}).error().message,
            "tensor \"t\": shape [2, 3]; must be [2, 0, 1], 0 meaning any");
  EXPECT_EQ(file.get("t", DType::kU16, {3, 3}).error().code, Code::kInvalid);
  EXPECT_EQ(file.get("u", DType::kU16, {2, 3}).error().message, "tensor \"u\": missing");
  EXPECT_EQ(file.meta("k").value(), "v");
  EXPECT_EQ(file.meta("l").error().message, "metadata \"l\": missing");
}

TEST(Safetensors, TheWriterRefusesWhatTheReaderWould) {
  const std::vector<std::byte> two(2);
  const auto refused = [](const std::vector<TensorData>& tensors,
                          const std::map<std::string, std::string>& metadata) {
    const auto bytes = serialize_safetensors(tensors, metadata);
    return !bytes.has_value() && bytes.error().code == Code::kInvalid;
  };
  EXPECT_TRUE(refused({{"t", DType::kU8, {3}, two}}, {}));
  EXPECT_TRUE(refused({{"t", DType::kU8, {1ULL << 63U, 2}, {}}}, {}));
  EXPECT_TRUE(refused({{"t", DType::kU8, {2}, two}, {"t", DType::kU8, {2}, two}}, {}));
  EXPECT_TRUE(refused({{"__metadata__", DType::kU8, {2}, two}}, {}));
  EXPECT_TRUE(refused({{"\xff", DType::kU8, {2}, two}}, {}));
  EXPECT_TRUE(refused({{"t", DType::kU8, {1, 1, 1, 1, 1, 1, 1, 1, 2}, two}}, {}));
  EXPECT_TRUE(refused({}, {{"k", "\xff"}}));
}

}  // namespace
}  // namespace eldr::signature
