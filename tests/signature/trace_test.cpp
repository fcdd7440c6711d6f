// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/trace.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "lib/signature/safetensors.h"
#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

void expect_equal(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.experts, b.experts);
  EXPECT_EQ(a.top_k, b.top_k);
  EXPECT_EQ(a.prefill_counts, b.prefill_counts);
  EXPECT_EQ(a.decode_counts, b.decode_counts);
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.decode_tokens, b.decode_tokens);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.decode_experts, b.decode_experts);
  EXPECT_EQ(a.decode_offsets, b.decode_offsets);
}

/// A file taken apart, to be changed and put together again.
struct Parts {
  explicit Parts(const std::vector<std::byte>& bytes) : buffer(bytes) {
    const auto file = SafetensorsFile::parse(buffer).value();
    metadata = file.metadata();
    for (const auto& [name, view] : file.tensors())
      tensors.push_back({name, view.dtype, view.shape, view.bytes});
  }
  TensorData& tensor(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const TensorData& t) { return t.name == name; });
  }
  void drop(const std::string& name) {
    std::erase_if(tensors, [&](const TensorData& t) { return t.name == name; });
  }
  std::vector<std::byte> bytes() const { return serialize_safetensors(tensors, metadata).value(); }

  std::vector<std::byte> buffer;
  std::map<std::string, std::string> metadata;
  std::vector<TensorData> tensors;
};

void expect_file_refused(const std::string& reason, const std::function<void(Parts&)>& change) {
  Parts parts(serialize_trace(samples::trace(1)).value());
  change(parts);
  const auto trace = parse_trace(parts.bytes());
  ASSERT_FALSE(trace.has_value()) << "expected: " << reason;
  EXPECT_EQ(trace.error().code, Code::kInvalid);
  EXPECT_NE(trace.error().message.find(reason), std::string::npos)
      << trace.error().message << "\nexpected: " << reason;
}

/// Neither written nor, put into a file by another writer, read.
void expect_trace_refused(const std::string& reason, const std::function<void(Trace&)>& change) {
  auto trace = samples::trace(1);
  change(trace);
  const auto bytes = serialize_trace(trace);
  ASSERT_FALSE(bytes.has_value()) << "expected: " << reason;
  EXPECT_EQ(bytes.error().code, Code::kInvalid);
  EXPECT_NE(bytes.error().message.find(reason), std::string::npos)
      << bytes.error().message << "\nexpected: " << reason;
}

TEST(Trace, RoundTrips) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto trace =
        samples::trace(seed, {.requests = 1 + seed, .layers = 1 + seed % 3, .experts = 8, .top_k = 3});
    const auto bytes = serialize_trace(trace);
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto back = parse_trace(*bytes);
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    expect_equal(trace, *back);
    EXPECT_EQ(serialize_trace(*back).value(), *bytes) << "same trace, same bytes";
  }
}

TEST(Trace, RoundTripsWithoutLabelsAndTokens) {
  auto trace = samples::trace(1);
  trace.labels.clear();
  trace.decode_experts.clear();
  trace.decode_offsets.clear();
  const auto back = parse_trace(serialize_trace(trace).value());
  ASSERT_TRUE(back.has_value()) << back.error().to_string();
  expect_equal(trace, *back);
}

TEST(Trace, ExpertsAreWrittenInOneByteWhereTheyFit) {
  const auto dtype_at = [](std::uint32_t experts) {
    const auto bytes =
        serialize_trace(samples::trace(2, {.requests = 3, .layers = 2, .experts = experts, .top_k = 2}))
            .value();
    return SafetensorsFile::parse(bytes).value().tensors().at("decode_experts").dtype;
  };
  EXPECT_EQ(dtype_at(256), DType::kU8);
  EXPECT_EQ(dtype_at(257), DType::kU16);
}

TEST(Trace, LargeExpertNumbersRoundTrip) {
  const auto trace = samples::trace(3, {.requests = 4, .layers = 2, .experts = 4096, .top_k = 8});
  expect_equal(trace, parse_trace(serialize_trace(trace).value()).value());
}

TEST(Trace, ViewsAreTheRequestsRows) {
  const auto trace = samples::trace(4);
  const std::size_t row = trace.layers.size() * trace.experts;
  ASSERT_EQ(trace.prefill(3).size(), row);
  EXPECT_EQ(trace.prefill(3).data(), trace.prefill_counts.data() + 3 * row);
  EXPECT_EQ(trace.decode(11).data(), trace.decode_counts.data() + 11 * row);
}

TEST(Trace, SavesAndLoads) {
  const auto path =
      (std::filesystem::temp_directory_path() / ("eldr-trace-test-" + std::to_string(::getpid()))).string();
  const auto trace = samples::trace(5);
  ASSERT_TRUE(save_trace(path, trace).has_value());
  expect_equal(load_trace(path).value(), trace);
  std::filesystem::remove(path);
  EXPECT_EQ(load_trace(path).error().code, Code::kNotFound);
}

TEST(Trace, RefusesMetadataThatIsMissingOrWrong) {
  for (const std::string key : {"format", "model", "layers", "experts", "top_k"}) {
    expect_file_refused("metadata \"" + key + "\": missing", [&](Parts& p) { p.metadata.erase(key); });
  }
  expect_file_refused("must be \"eldr-trace/1\"", [](Parts& p) { p.metadata["format"] = "eldr-trace/2"; });
  expect_file_refused("metadata layers: must be a JSON list", [](Parts& p) { p.metadata["layers"] = "1"; });
  expect_file_refused("metadata layers: a number over",
                      [](Parts& p) { p.metadata["layers"] = "[1,3,2147483648]"; });
  expect_file_refused("must ascend", [](Parts& p) { p.metadata["layers"] = "[1,3,3]"; });
  expect_file_refused("must ascend", [](Parts& p) { p.metadata["layers"] = "[5,3,1]"; });
  expect_file_refused("is negative", [](Parts& p) { p.metadata["layers"] = "[-1,3,5]"; });
  expect_file_refused("must not be empty or 0", [](Parts& p) { p.metadata["layers"] = "[]"; });
  expect_file_refused("tensor \"decode_counts\"", [](Parts& p) {
    p.metadata["layers"] = "[1,3]";
    p.tensor("prefill_counts").shape = {12, 2, 24};
    p.drop("prefill_counts");
    static const std::vector<std::byte> fewer(12 * 2 * 16 * 4);
    p.tensors.push_back({"prefill_counts", DType::kU32, {12, 2, 16}, fewer});
  });
  for (const std::string bad : {"", "-1", "16.0", " 16", "4097", "1e1", "99999999999999999999"}) {
    expect_file_refused("metadata experts", [&](Parts& p) { p.metadata["experts"] = bad; });
    expect_file_refused("metadata top_k", [&](Parts& p) { p.metadata["top_k"] = bad; });
  }
  expect_file_refused("must not be empty or 0", [](Parts& p) { p.metadata["experts"] = "0"; });
  expect_file_refused("must not be empty or 0", [](Parts& p) { p.metadata["top_k"] = "0"; });
  expect_file_refused("metadata labels", [](Parts& p) { p.metadata["labels"] = "[1,2]"; });
  expect_file_refused("metadata labels", [](Parts& p) { p.metadata["labels"] = "[]"; });
  expect_file_refused("labels: 1 labels; must be none or one for each of the 12",
                      [](Parts& p) { p.metadata["labels"] = "[\"a\"]"; });
}

TEST(Trace, RefusesTensorsThatAreMissingForeignOrOfAnotherShape) {
  for (const std::string name : {"prefill_counts", "decode_counts", "prompt_tokens", "decode_tokens"}) {
    expect_file_refused("tensor \"" + name + "\": missing", [&](Parts& p) { p.drop(name); });
    expect_file_refused("tensor \"" + name + "\": dtype",
                        [&](Parts& p) { p.tensor(name).dtype = DType::kI32; });
    expect_file_refused("tensor \"" + name + "\": shape",
                        [&](Parts& p) { p.tensor(name).shape.insert(p.tensor(name).shape.begin(), 1); });
  }
  expect_file_refused("needs decode_offsets", [](Parts& p) { p.drop("decode_experts"); });
  expect_file_refused("needs decode_offsets", [](Parts& p) { p.drop("decode_offsets"); });
  expect_file_refused("dtype I8; must be U16",
                      [](Parts& p) { p.tensor("decode_experts").dtype = DType::kI8; });
  expect_file_refused("dtype I64; must be U64",
                      [](Parts& p) { p.tensor("decode_offsets").dtype = DType::kI64; });
  expect_file_refused("not part of the format", [](Parts& p) {
    p.tensors.push_back({"extra", DType::kU8, {0}, {}});
  });
  expect_file_refused("0 requests", [](Parts& p) {
    p.drop("prompt_tokens");
    p.tensors.push_back({"prompt_tokens", DType::kU32, {0}, {}});
  });
}

TEST(Trace, RefusesNumbersThatContradictEachOther) {
  expect_trace_refused("0 requests", [](Trace& t) { t.prompt_tokens.clear(); });
  expect_trace_refused("layers: 0 layers", [](Trace& t) { t.layers.clear(); });
  expect_trace_refused("experts: 0", [](Trace& t) { t.experts = 0; });
  expect_trace_refused("top_k: 17; must be 1 to the 16 experts", [](Trace& t) { t.top_k = 17; });
  expect_trace_refused("prefill_counts: must have", [](Trace& t) { t.prefill_counts.pop_back(); });
  expect_trace_refused("decode_counts: must have", [](Trace& t) { t.decode_counts.push_back(0); });
  expect_trace_refused("decode_tokens: must have", [](Trace& t) { t.decode_tokens.pop_back(); });
  expect_trace_refused("labels: 13 labels", [](Trace& t) { t.labels.emplace_back("x"); });
  expect_trace_refused("labels: not UTF-8", [](Trace& t) { t.labels[2] = "\xff"; });
  expect_trace_refused("prefill_counts: request 2, layer 3",
                       [](Trace& t) { t.prefill_counts[2 * 48 + 16] = 4000000000U; });
  expect_trace_refused("decode_counts: request 0, layer 1", [](Trace& t) { t.decode_tokens[0] = 0; });
  expect_trace_refused("decode_counts: request 1, layer 5", [](Trace& t) {
    std::fill_n(t.decode_counts.begin() + 48 + 32, 16,
                t.decode_tokens[1]);  // each expert alone would be possible
  });
  expect_trace_refused("decode_experts: must have layers x top_k",
                       [](Trace& t) { t.decode_experts.pop_back(); });
  expect_trace_refused("decode_experts: expert 16 of 16", [](Trace& t) { t.decode_experts[7] = 16; });
  expect_trace_refused("decode_offsets: must ascend", [](Trace& t) { t.decode_offsets.pop_back(); });
  expect_trace_refused("decode_offsets: must ascend", [](Trace& t) { t.decode_offsets.front() = 1; });
  expect_trace_refused("decode_offsets: must ascend",
                       [](Trace& t) { t.decode_offsets[3] = t.decode_offsets[5] + 1; });
  expect_trace_refused("decode_offsets: must ascend", [](Trace& t) { ++t.decode_offsets.back(); });
  expect_trace_refused("decode_offsets: missing", [](Trace& t) { t.decode_offsets.clear(); });
  expect_trace_refused("decode_offsets: request 0 owns",
                       [](Trace& t) { t.decode_offsets[1] = t.decode_offsets[2]; });
}

TEST(Trace, RefusesEveryTruncation) {
  const auto bytes =
      serialize_trace(samples::trace(6, {.requests = 2, .layers = 1, .experts = 4, .top_k = 1})).value();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_trace(std::span(bytes).first(size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace eldr::signature
