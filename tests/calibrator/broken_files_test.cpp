// SPDX-License-Identifier: Apache-2.0
// Trace and centroid files that are broken in one place each: the program ends with 65 and names the place.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lib/signature/centroids.h"
#include "lib/signature/safetensors.h"
#include "lib/signature/trace.h"
#include "tests/calibrator/program.h"

namespace eldr::calibrator {
namespace {

using nlohmann::ordered_json;
using testing::Child;
using testing::Ended;
using testing::Program;

/// A safetensors file taken apart: what the header says and the bytes after it, free to disagree.
struct Parts {
  ordered_json header;
  std::string data;

  static Parts of(const std::string& file) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof(length));
    return {ordered_json::parse(file.substr(8, length)), file.substr(8 + length)};
  }
  std::string file() const { return with_header(header.dump()); }
  std::string with_header(const std::string& text) const {
    const std::uint64_t length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text + data;
  }
  /// Sets one number of a tensor.
  template <class Number>
  void set(const std::string& tensor, std::size_t index, Number value) {
    const std::size_t begin = header[tensor]["data_offsets"][0];
    std::memcpy(data.data() + begin + index * sizeof(Number), &value, sizeof(Number));
  }
};

struct Row {
  std::string what;
  std::function<std::string(Parts)> broken;  ///< a whole file
  std::string says;
};

/// What no safetensors file may be; `tensor` is one of the file, but not the first.
std::vector<Row> container_rows(const std::string& tensor) {
  const auto edit = [](auto change) {
    return [change](Parts parts) {
      change(parts);
      return parts.file();
    };
  };
  return {
      {"empty", [](const Parts&) { return std::string(); }, "truncated"},
      {"cut in the length", [](const Parts& p) { return p.file().substr(0, 5); }, "truncated"},
      {"cut in the header", [](const Parts& p) { return p.file().substr(0, 100); }, "truncated"},
      {"cut in the data", [](const Parts& p) { return p.file().substr(0, p.file().size() - 1); },
       "data_offsets"},
      {"a byte too many", [](const Parts& p) { return p.file() + "x"; }, "1 bytes after the last tensor"},
      {"huge header",
       [](const Parts& p) {
         std::string file = p.file();
         file.replace(0, 8, std::string(7, '\xFF') + '\x7F');
         return file;
       },
       "header of 9223372036854775807 bytes"},
      {"header is no JSON", [](const Parts& p) { return p.with_header("{\"a\": nonsense}"); }, "not JSON"},
      {"header nests", [](const Parts& p) { return p.with_header("{\"a\":" + std::string(100000, '[')); },
       "where the format has none"},
      {"unknown dtype", edit([=](Parts& p) { p.header[tensor]["dtype"] = "Q4"; }), tensor},
      {"wrong dtype", edit([=](Parts& p) { p.header[tensor]["dtype"] = "F32"; }), tensor},
      {"wrong shape", edit([=](Parts& p) {
         p.header[tensor]["shape"] = {1, 2};
       }),
       tensor},
      {"negative shape", edit([=](Parts& p) { p.header[tensor]["shape"] = {-1}; }), tensor},
      {"huge shape", edit([=](Parts& p) {
         p.header[tensor]["shape"] = {1ULL << 40U, 1ULL << 20U};
       }),
       tensor},
      {"shape over 64 bits", edit([=](Parts& p) {
         p.header[tensor]["shape"] = {1ULL << 60U, 1ULL << 60U};
       }),
       tensor},
      {"offsets beyond the end", edit([=](Parts& p) {
         p.header[tensor]["data_offsets"] = {0, p.data.size() + 8};
       }),
       tensor},
      {"offsets the wrong way", edit([=](Parts& p) {
         p.header[tensor]["data_offsets"] = {8, 0};
       }),
       tensor},
      {"overlap", edit([=](Parts& p) {
         ordered_json& offsets = p.header[tensor]["data_offsets"];
         offsets = {offsets[0].get<std::size_t>() - 4, offsets[1].get<std::size_t>() - 4};
       }),
       "tensor \"" + tensor + "\" overlaps"},
      {"duplicate tensor",
       [=](const Parts& p) {
         const std::string text = p.header.dump();
         return p.with_header("{\"" + tensor + "\":" + p.header[tensor].dump() + "," + text.substr(1));
       },
       "duplicate tensor \"" + tensor + "\""},
      {"duplicate metadata",
       [](const Parts& p) {
         std::string text = p.header.dump();
         const std::string key = "\"__metadata__\":{";
         text.insert(text.find(key) + key.size(), "\"format\":\"x\",");
         return p.with_header(text);
       },
       "duplicate metadata key \"format\""},
      {"missing tensor", edit([=](Parts& p) {
         const std::size_t begin = p.header[tensor]["data_offsets"][0];
         const std::size_t size = p.header[tensor]["data_offsets"][1].get<std::size_t>() - begin;
         p.data.erase(begin, size);
         p.header.erase(tensor);
         for (auto& [name, entry] : p.header.items()) {
           if (name != "__metadata__" && entry["data_offsets"][0] > begin) {
             entry["data_offsets"] = {entry["data_offsets"][0].get<std::size_t>() - size,
                                      entry["data_offsets"][1].get<std::size_t>() - size};
           }
         }
       }),
       tensor},
      {"a tensor of another format", edit([](Parts& p) {
         p.header["extra"] = {
             {"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {p.data.size(), p.data.size()}}};
       }),
       "extra"},
      {"another format", edit([](Parts& p) { p.header["__metadata__"]["format"] = "eldr-other/1"; }),
       "format"},
      {"no metadata", edit([](Parts& p) { p.header.erase("__metadata__"); }), "format"},
      {"experts is no number", edit([](Parts& p) { p.header["__metadata__"]["experts"] = "-1"; }), "experts"},
      {"experts is another", edit([](Parts& p) { p.header["__metadata__"]["experts"] = "32"; }), ""},
      {"experts is huge",
       edit([](Parts& p) { p.header["__metadata__"]["experts"] = "99999999999999999999"; }), "experts"},
      {"top_k is 0", edit([](Parts& p) { p.header["__metadata__"]["top_k"] = "0"; }), "top_k"},
  };
}

template <class Number>
std::function<std::string(Parts)> with(const std::string& tensor, std::size_t index, Number value) {
  return [=](Parts parts) {
    parts.set(tensor, index, value);
    return parts.file();
  };
}
std::function<std::string(Parts)> with_metadata(const std::string& key, const std::string& value) {
  return [=](Parts parts) {
    parts.header["__metadata__"][key] = value;
    return parts.file();
  };
}

class BrokenFiles : public Program {
 protected:
  void expect_refused(const Row& row, const Parts& good, const std::vector<std::string>& arguments) const {
    std::ofstream(at("broken.safetensors"), std::ios::binary) << row.broken(good);
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit, 65) << row.what << "\n" << ended.err;
    EXPECT_NE(ended.err.find(row.says), std::string::npos) << row.what << " should name " << row.says << "\n"
                                                           << ended.err;
    EXPECT_NE(ended.err.find("broken.safetensors"), std::string::npos) << row.what << "\n" << ended.err;
    EXPECT_FALSE(std::filesystem::exists(at("c.safetensors"))) << row.what;
  }
};

TEST_F(BrokenFiles, Traces) {
  const Parts good = Parts::of(Child::read(at("trace.safetensors")));
  std::ofstream(at("again.safetensors"), std::ios::binary) << good.file();
  ASSERT_EQ(run({"inspect", at("again.safetensors")}).exit, 0) << "the parts make a file again";
  std::vector<Row> rows = container_rows("prefill_counts");
  const std::vector<Row> own = {
      {"a count of more tokens than there are", with("prefill_counts", 3, 1'000'000U), "prefill_counts"},
      {"a negative count", with("decode_counts", 0, std::int32_t{-1}), "decode_counts"},
      {"no tokens for the counts", with("prompt_tokens", 0, 0U), "prefill_counts"},
      {"layers are no list", with_metadata("layers", "1,2"), "layers"},
      {"layers descend", with_metadata("layers", "[5,4,3,2,1]"), "layers"},
      {"a negative layer", with_metadata("layers", "[-1,2,3,4,5]"), "layers"},
      {"a layer twice", with_metadata("layers", "[1,1,3,4,5]"), "layers"},
      {"fewer layers", with_metadata("layers", "[1,2]"), "prefill_counts"},
      {"fewer labels", with_metadata("labels", "[\"a\"]"), "labels"},
      {"labels are no list", with_metadata("labels", "nonsense"), "labels"},
  };
  rows.insert(rows.end(), own.begin(), own.end());
  for (const Row& row : rows) {
    expect_refused(
        row, good,
        {"fit", "--trace", at("broken.safetensors"), "--clusters", "2", "--out", at("c.safetensors")});
  }
}

TEST_F(BrokenFiles, TracesWithTokens) {
  auto trace = signature::load_trace(at("trace.safetensors")).value();
  trace.decode_offsets = {0};
  for (const std::uint32_t tokens : trace.decode_tokens) {
    trace.decode_offsets.push_back(trace.decode_offsets.back() + tokens);
  }
  trace.decode_experts.assign(trace.decode_offsets.back() * trace.layers.size() * trace.top_k, 1);
  ASSERT_TRUE(signature::save_trace(at("tokens.safetensors"), trace));
  const Parts good = Parts::of(Child::read(at("tokens.safetensors")));
  EXPECT_EQ(run({"inspect", at("tokens.safetensors")}).exit, 0);
  for (const Row& row : std::vector<Row>{
           {"an expert that is not there", with("decode_experts", 7, std::uint8_t{16}), "decode_experts"},
           {"offsets go back", with("decode_offsets", 3, std::uint64_t{0}), "decode_offsets"},
           {"offsets begin late", with("decode_offsets", 0, std::uint64_t{1}), "decode_offsets"},
           {"a huge offset", with("decode_offsets", 60, std::numeric_limits<std::uint64_t>::max()),
            "decode_offsets"},
       }) {
    expect_refused(row, good, {"inspect", at("broken.safetensors")});
  }
}

TEST_F(BrokenFiles, Centroids) {
  ASSERT_EQ(run({"fit", "--trace", at("trace.safetensors"), "--clusters", "2", "--ep-ranks", "4", "--out",
                 at("good.safetensors")})
                .exit,
            0);
  const auto set = signature::load_centroids(at("good.safetensors")).value();
  // In numbers that can be NaN.
  const auto bytes = signature::serialize_centroids(set, signature::DType::kF32).value();
  const Parts good = Parts::of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto i8 = signature::serialize_centroids(set, signature::DType::kI8).value();
  const Parts narrow = Parts::of({reinterpret_cast<const char*>(i8.data()), i8.size()});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();

  std::vector<Row> rows = container_rows("assignment");
  const std::vector<Row> own = {
      {"NaN in a centroid", with("centroids", 3, kNan), "centroids"},
      {"infinity in a centroid", with("centroids", 3, kInfinity), "centroids"},
      {"a centroid that is not of length 1", with("centroids", 3, 5.0F), "centroids"},
      {"NaN in the weights", with("idf", 0, kNan), "idf"},
      {"a negative weight", with("idf", 0, -1.0F), "idf"},
      {"a cluster that is not there", with("assignment", 9, 2U), "assignment"},
      {"a negative layer", with("layers", 0, -4), "layers"},
      {"a negative rank", with("placement", 5, std::int16_t{-1}), "placement"},
      {"spread is NaN", with_metadata("spread", "nan"), "spread"},
      {"rho is over 1", with_metadata("rho", "1.5"), "rho"},
      {"tau is text", with_metadata("tau", "wide"), "tau"},
      {"seed is negative", with_metadata("seed", "-1"), "seed"},
      {"another number of clusters", with_metadata("clusters", "3"), "clusters"},
      {"an unknown transform", with_metadata("transform", "cube"), "transform"},
      {"a quantile that is NaN", with_metadata("best_similarity_p50", "nan"), "best_similarity_p50"},
  };
  rows.insert(rows.end(), own.begin(), own.end());
  for (const Row& row : rows) {
    expect_refused(row, good, {"inspect", at("broken.safetensors")});
  }
  expect_refused({"a scale that is NaN", with("centroid_scale", 0, kNan), "centroid_scale"}, narrow,
                 {"inspect", at("broken.safetensors")});
  expect_refused({"a scale of 0", with("centroid_scale", 1, 0.0F), "centroid_scale"}, narrow,
                 {"inspect", at("broken.safetensors")});
  // Over the 1 MiB of a ConfigMap.
  expect_refused({"oversized",
                  [](Parts parts) {
                    parts.header["__metadata__"]["more"] = std::string(1 << 20U, 'x');
                    return parts.file();
                  },
                  "1048576"},
                 good, {"inspect", at("broken.safetensors")});
}

TEST_F(BrokenFiles, NotAFile) {
  std::filesystem::create_directory(at("broken.safetensors"));
  EXPECT_EQ(run({"inspect", at("broken.safetensors")}).exit, 65);
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  const Ended pipe = run({"fit", "--trace", at("pipe"), "--clusters", "2", "--out", at("c.safetensors")});
  EXPECT_EQ(pipe.exit, 65) << pipe.err;
  EXPECT_NE(pipe.err.find("not a regular file"), std::string::npos) << pipe.err;
}

TEST_F(BrokenFiles, AHugeFileIsNotReadIntoMemory) {
  std::ofstream(at("huge.safetensors"));
  std::filesystem::resize_file(at("huge.safetensors"), std::uintmax_t{9} << 30U);  // sparse
  const Ended fit =
      run({"fit", "--trace", at("huge.safetensors"), "--clusters", "2", "--out", at("c.safetensors")});
  EXPECT_EQ(fit.exit, 65) << fit.err;
  EXPECT_NE(fit.err.find("at most 8589934592"), std::string::npos) << fit.err;
  EXPECT_LT(fit.peak_kib, 1 << 20);
}

}  // namespace
}  // namespace eldr::calibrator
