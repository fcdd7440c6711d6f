// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/centroids.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

double worst_cosine(const RowMatrixF& a, const RowMatrixF& b) {
  double worst = 1;
  for (Eigen::Index k = 0; k < a.rows(); ++k) {
    worst = std::min(worst, a.row(k).cast<double>().normalized().dot(b.row(k).cast<double>().normalized()));
  }
  return worst;
}

void expect_equal_but_for_rows(const CentroidSet& a, const CentroidSet& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.top_k, b.top_k);
  EXPECT_EQ(a.spec.layers, b.spec.layers);
  EXPECT_EQ(a.spec.experts, b.spec.experts);
  EXPECT_EQ(a.spec.transform, b.spec.transform);
  EXPECT_EQ(a.spec.idf, b.spec.idf);
  EXPECT_EQ(a.assignment, b.assignment);
  EXPECT_EQ(a.placement, b.placement);
  EXPECT_EQ(a.spread, b.spread);
  EXPECT_EQ(a.rho, b.rho);
  EXPECT_EQ(a.rho_all_layers, b.rho_all_layers);
  EXPECT_EQ(a.tau, b.tau);
  EXPECT_EQ(a.fit_hash, b.fit_hash);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.best_similarity_quantiles, b.best_similarity_quantiles);
  EXPECT_EQ(a.extra, b.extra);
}

DType dtype_in(const std::vector<std::byte>& bytes) {
  return SafetensorsFile::parse(bytes).value().tensors().at("centroids").dtype;
}

/// A file taken apart, to be changed and put together again.
class Parts {
 public:
  explicit Parts(DType dtype) : buffer_(serialize_centroids(samples::centroids(1), dtype).value()) {
    const auto file = SafetensorsFile::parse(buffer_).value();
    metadata = file.metadata();
    for (const auto& [name, view] : file.tensors()) {
      tensors.push_back({name, view.dtype, view.shape, view.bytes});
    }
  }
  TensorData& tensor(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const TensorData& t) { return t.name == name; });
  }
  void drop(const std::string& name) {
    std::erase_if(tensors, [&](const TensorData& t) { return t.name == name; });
  }
  /// Overwrites one element.
  template <class T>
  void put(const std::string& name, std::size_t index, T value) {
    const auto offset =
        static_cast<std::size_t>(tensor(name).bytes.data() - buffer_.data()) + index * sizeof(T);
    std::memcpy(buffer_.data() + offset, &value, sizeof value);
  }
  std::vector<std::byte> bytes() const { return serialize_safetensors(tensors, metadata).value(); }

  std::map<std::string, std::string> metadata;
  std::vector<TensorData> tensors;

 private:
  std::vector<std::byte> buffer_;
};

void expect_file_refused(const std::string& reason, const std::function<void(Parts&)>& change,
                         DType dtype = DType::kF32) {
  Parts parts(dtype);
  change(parts);
  const auto set = parse_centroids(parts.bytes());
  ASSERT_FALSE(set.has_value()) << "expected: " << reason;
  EXPECT_EQ(set.error().code, Code::kInvalid);
  EXPECT_NE(set.error().message.find(reason), std::string::npos)
      << set.error().message << "\nexpected: " << reason;
}

void expect_set_refused(const std::string& reason, const std::function<void(CentroidSet&)>& change) {
  auto set = samples::centroids(1);
  change(set);
  const auto bytes = serialize_centroids(set);
  ASSERT_FALSE(bytes.has_value()) << "expected: " << reason;
  EXPECT_EQ(bytes.error().code, Code::kInvalid);
  EXPECT_NE(bytes.error().message.find(reason), std::string::npos)
      << bytes.error().message << "\nexpected: " << reason;
}

TEST(Centroids, RoundTripExactlyInF32) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto set = samples::centroids(seed);
    if (seed % 2 == 1) set.placement.assign(4 * 3 * 16, static_cast<std::int16_t>(seed));
    const auto back = parse_centroids(serialize_centroids(set, DType::kF32).value());
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    expect_equal_but_for_rows(set, *back);
    EXPECT_EQ(set.centroids, back->centroids);
  }
}

TEST(Centroids, RoundTripWithinTheBoundInEveryDType) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto set = samples::centroids(seed, {.clusters = 7, .layers = 5, .experts = 64, .requests = 30});
    for (const DType dtype : {DType::kI8, DType::kF16}) {
      const auto bytes = serialize_centroids(set, dtype).value();
      EXPECT_EQ(dtype_in(bytes), dtype);
      const auto back = parse_centroids(bytes);
      ASSERT_TRUE(back.has_value()) << back.error().to_string();
      expect_equal_but_for_rows(set, *back);
      EXPECT_GE(worst_cosine(set.centroids, back->centroids), 1 - 0.001);
      for (Eigen::Index k = 0; k < 7; ++k)
        EXPECT_NEAR(back->centroids.row(k).norm(), 1, 1e-6) << "normalised again";
    }
  }
}

TEST(Centroids, EveryTransformRoundTrips) {
  for (const Transform transform : {Transform::kCount, Transform::kSqrtCount, Transform::kBinary}) {
    auto set = samples::centroids(2);
    set.spec.transform = transform;
    set.spec.idf.setOnes();
    EXPECT_EQ(parse_centroids(serialize_centroids(set).value()).value().spec.transform, transform);
  }
}

TEST(Centroids, TheNarrowestDTypeThatKeepsTheCosinesIsChosen) {
  auto set = samples::centroids(3);
  EXPECT_EQ(dtype_in(serialize_centroids(set).value()), DType::kI8);

  // One large entry and a thousand that 1/127 of it rounds away: I8 would lose 0.6 % of the cosine.
  set = samples::centroids(3, {.clusters = 2, .layers = 1, .experts = 1001, .requests = 2});
  set.centroids.setConstant(0.0035F);
  set.centroids.col(5).setOnes();
  set.centroids.rowwise().normalize();
  const auto bytes = serialize_centroids(set).value();
  EXPECT_EQ(dtype_in(bytes), DType::kF16);
  EXPECT_GE(worst_cosine(set.centroids, parse_centroids(bytes).value().centroids), 1 - 0.001);
  EXPECT_LT(worst_cosine(set.centroids,
                         parse_centroids(serialize_centroids(set, DType::kI8).value()).value().centroids),
            1 - 0.001);
}

TEST(Centroids, FitsAMebibyteOrSaysByHowMuchNot) {
  // 64 clusters of 4 layers x 128 experts: 32 KiB in I8.
  auto set = samples::centroids(4, {.clusters = 64, .layers = 4, .experts = 128, .requests = 1000});
  EXPECT_LE(serialize_centroids(set).value().size(), 48U << 10U);
  // 64 clusters of 128 layers x 128 experts: 1 MiB in I8 alone.
  set = samples::centroids(4, {.clusters = 64, .layers = 128, .experts = 128, .requests = 1000});
  const auto bytes = serialize_centroids(set);
  ASSERT_FALSE(bytes.has_value());
  EXPECT_EQ(bytes.error().code, Code::kResourceExhausted);
  EXPECT_NE(bytes.error().message.find("over the 1048576"), std::string::npos) << bytes.error().message;
  // The number of layers that it says fits does, and one more does not.
  const auto said = bytes.error().message.find("keep at most ");
  ASSERT_NE(said, std::string::npos) << bytes.error().message;
  const auto most = static_cast<std::size_t>(std::atoi(bytes.error().message.c_str() + said + 13));
  for (const std::size_t layers : {most, most + 1}) {
    set = samples::centroids(4, {.clusters = 64, .layers = layers, .experts = 128, .requests = 1000});
    EXPECT_EQ(serialize_centroids(set).has_value(), layers == most) << layers;
  }
  const auto parsed = parse_centroids(std::vector<std::byte>(kMaxCentroidFile + 1));
  ASSERT_FALSE(parsed.has_value());
  EXPECT_NE(parsed.error().message.find("1048577 bytes"), std::string::npos);
}

TEST(Centroids, SharesAndSizes) {
  auto set = samples::centroids(5);
  EXPECT_EQ(set.clusters(), 4U);
  EXPECT_EQ(set.requests(), 20U);
  EXPECT_DOUBLE_EQ(set.max_cluster_share(), 0.25);
  set.assignment = {0, 0, 0, 1};
  EXPECT_DOUBLE_EQ(set.max_cluster_share(), 0.75);
  set.assignment.clear();
  EXPECT_DOUBLE_EQ(set.max_cluster_share(), 0);
  EXPECT_TRUE(parse_centroids(serialize_centroids(set).value()).has_value()) << "no assignment is allowed";
}

TEST(Centroids, RefusesMetadataThatIsMissingOrWrong) {
  for (const std::string key : {"format", "model", "experts", "top_k", "transform", "spread", "rho",
                                "rho_all_layers", "clusters", "requests", "tau", "fit_hash", "seed"}) {
    expect_file_refused("metadata \"" + key + "\": missing", [&](Parts& p) { p.metadata.erase(key); });
  }
  expect_file_refused("must be \"eldr-centroids/1\"",
                      [](Parts& p) { p.metadata["format"] = "eldr-trace/1"; });
  expect_file_refused("transform \"idf\": must be count-idf",
                      [](Parts& p) { p.metadata["transform"] = "idf"; });
  for (const std::string key : {"spread", "rho", "rho_all_layers", "tau", "best_similarity_p50"}) {
    for (const std::string bad :
         {"", "nan", "inf", "-inf", "1e999", "0x1p3", " 0.5", "0.5 ", "0,5", "+0.5"}) {
      expect_file_refused("metadata \"" + key + "\": ", [&](Parts& p) { p.metadata[key] = bad; });
    }
    expect_file_refused(key + ": 3.0", [&](Parts& p) { p.metadata[key] = "3"; });
    expect_file_refused(key + ": -3.0", [&](Parts& p) { p.metadata[key] = "-3"; });
  }
  for (const std::string key : {"experts", "top_k", "clusters", "requests", "seed"}) {
    for (const std::string bad : {"", "-1", "1.0", " 4", "99999999999999999999"}) {
      expect_file_refused("metadata \"" + key + "\": ", [&](Parts& p) { p.metadata[key] = bad; });
    }
  }
  expect_file_refused("metadata clusters: 5; the tensors have 4",
                      [](Parts& p) { p.metadata["clusters"] = "5"; });
  expect_file_refused("metadata requests: 19; the tensors have 20",
                      [](Parts& p) { p.metadata["requests"] = "19"; });
  expect_file_refused("metadata experts: 0", [](Parts& p) { p.metadata["experts"] = "0"; });
  expect_file_refused("tensor \"idf\": shape [3, 16]; must be [3, 17]",
                      [](Parts& p) { p.metadata["experts"] = "17"; });
  expect_file_refused("top_k: 17; must be 1 to the 16 experts", [](Parts& p) { p.metadata["top_k"] = "17"; });
  expect_file_refused("top_k: 0", [](Parts& p) { p.metadata["top_k"] = "0"; });
  expect_file_refused("must be all ones with transform count",
                      [](Parts& p) { p.metadata["transform"] = "count"; });
}

TEST(Centroids, RefusesTensorsThatAreMissingForeignOrOfAnotherShape) {
  for (const std::string name : {"layers", "idf", "centroids", "assignment"}) {
    expect_file_refused("tensor \"" + name + "\": missing", [&](Parts& p) { p.drop(name); });
    expect_file_refused("tensor \"" + name + "\": shape",
                        [&](Parts& p) { p.tensor(name).shape.push_back(1); });
  }
  expect_file_refused("dtype U32; must be I32", [](Parts& p) { p.tensor("layers").dtype = DType::kU32; });
  expect_file_refused("dtype I32; must be F32", [](Parts& p) { p.tensor("idf").dtype = DType::kI32; });
  expect_file_refused("dtype U32; must be I8, F16 or F32",
                      [](Parts& p) { p.tensor("centroids").dtype = DType::kU32; });
  expect_file_refused(
      "tensor \"centroid_scale\": missing", [](Parts& p) { p.drop("centroid_scale"); }, DType::kI8);
  expect_file_refused(
      "tensor \"centroid_scale\": shape",
      [](Parts& p) {
        p.tensor("centroid_scale").shape = {2, 2};
      },
      DType::kI8);
  static const std::vector<std::byte> four_bytes(4), many_bytes(4096);
  expect_file_refused("belongs to I8 centroids only", [](Parts& p) {
    p.tensors.push_back({"centroid_scale", DType::kF32, {1}, four_bytes});
  });
  expect_file_refused("not part of the format", [](Parts& p) {
    p.tensors.push_back({"extra", DType::kU8, {0}, {}});
  });
  expect_file_refused("tensor \"placement\": dtype", [](Parts& p) {
    p.tensors.push_back({"placement", DType::kU16, {4, 3, 16}, std::span(many_bytes).first(4 * 3 * 16 * 2)});
  });
  expect_file_refused("tensor \"placement\": shape", [](Parts& p) {
    p.tensors.push_back({"placement", DType::kI16, {4, 16, 3}, std::span(many_bytes).first(4 * 3 * 16 * 2)});
  });
  expect_file_refused("layers: must not be empty", [](Parts& p) {
    p.drop("layers");
    p.tensors.push_back({"layers", DType::kI32, {0}, {}});
  });
  expect_file_refused("0 clusters", [](Parts& p) {
    p.drop("centroids");
    p.tensors.push_back({"centroids", DType::kF32, {0, 48}, {}});
  });
  expect_file_refused(
      "0 clusters",
      [](Parts& p) {
        p.drop("centroids");
        p.drop("centroid_scale");
        p.tensors.push_back({"centroids", DType::kI8, {0, 48}, {}});
        p.tensors.push_back({"centroid_scale", DType::kF32, {0}, {}});
      },
      DType::kI8);
}

TEST(Centroids, RefusesValuesThatCannotBe) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kNaN, kInf, -kInf}) {
    expect_file_refused("a value is not a finite number", [&](Parts& p) { p.put("centroids", 50, bad); });
    expect_file_refused("a weight is negative or not a number", [&](Parts& p) { p.put("idf", 7, bad); });
    expect_file_refused(
        "a scale is not a positive number", [&](Parts& p) { p.put("centroid_scale", 2, bad); }, DType::kI8);
  }
  for (const std::uint16_t bad : {0x7c00, 0xfc00, 0x7e00}) {  // infinities and NaN as halves
    expect_file_refused(
        "a value is not a finite number", [&](Parts& p) { p.put("centroids", 50, bad); }, DType::kF16);
  }
  for (const float bad : {0.0F, -1.0F}) {
    expect_file_refused(
        "a scale is not a positive number", [&](Parts& p) { p.put("centroid_scale", 2, bad); }, DType::kI8);
  }
  expect_file_refused("a weight is negative", [](Parts& p) { p.put("idf", 0, -0.5F); });
  expect_file_refused("row 1 has length 0; must be 1", [](Parts& p) {
    for (std::size_t i = 0; i < 48; ++i) p.put("centroids", 48 + i, 0.0F);
  });
  expect_file_refused(
      "row 2 has length 0; must be 1",
      [](Parts& p) {
        for (std::size_t i = 0; i < 48; ++i) p.put("centroids", 96 + i, std::int8_t{0});
      },
      DType::kI8);
  expect_file_refused("row 0 has length", [](Parts& p) { p.put("centroids", 0, 1.5F); });
  expect_file_refused("row 0 has length", [](Parts& p) { p.put("centroids", 0, 3e38F); });
  expect_file_refused("assignment: cluster 4 of 4",
                      [](Parts& p) { p.put("assignment", 19, std::uint32_t{4}); });
  expect_file_refused("layer 6 is there twice", [](Parts& p) { p.put("layers", 1, std::int32_t{6}); });
  expect_file_refused("layer -2 is negative", [](Parts& p) { p.put("layers", 1, std::int32_t{-2}); });
}

TEST(Centroids, RefusesEveryTruncation) {
  const auto bytes =
      serialize_centroids(samples::centroids(6, {.clusters = 2, .layers = 1, .experts = 4, .requests = 3}))
          .value();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_centroids(std::span(bytes).first(size)).has_value()) << size;
  }
}

TEST(Centroids, TheWriterRefusesWhatTheReaderWould) {
  expect_set_refused("0 clusters", [](CentroidSet& s) { s.centroids.resize(0, 48); });
  expect_set_refused("47 columns", [](CentroidSet& s) { s.centroids.conservativeResize(4, 47); });
  expect_set_refused("has length", [](CentroidSet& s) { s.centroids.row(3).setZero(); });
  expect_set_refused("has length",
                     [](CentroidSet& s) { s.centroids(0, 0) = std::numeric_limits<float>::quiet_NaN(); });
  expect_set_refused("layers: 0 layers", [](CentroidSet& s) { s.spec.layers.clear(); });
  expect_set_refused("experts: 0", [](CentroidSet& s) { s.spec.experts = 0; });
  expect_set_refused("top_k: 0", [](CentroidSet& s) { s.top_k = 0; });
  expect_set_refused("idf: must be layers x experts", [](CentroidSet& s) { s.spec.idf.resize(3, 15); });
  expect_set_refused("must be all ones", [](CentroidSet& s) { s.spec.transform = Transform::kBinary; });
  expect_set_refused("placement: must be", [](CentroidSet& s) { s.placement.assign(7, 0); });
  expect_set_refused("placement: a rank is negative",
                     [](CentroidSet& s) { s.placement.assign(4 * 3 * 16, -1); });
  expect_set_refused("assignment: cluster", [](CentroidSet& s) { s.assignment[0] = 4; });
  expect_set_refused("rho: nan", [](CentroidSet& s) { s.rho = std::numeric_limits<double>::quiet_NaN(); });
  expect_set_refused("spread: -1", [](CentroidSet& s) { s.spread = -1; });
  expect_set_refused("best_similarity_p50: 2",
                     [](CentroidSet& s) { s.best_similarity_quantiles["p50"] = 2; });
  expect_set_refused("is the format's own", [](CentroidSet& s) { s.extra["rho"] = "1"; });
  expect_set_refused("is the format's own", [](CentroidSet& s) { s.extra["best_similarity_p33"] = "1"; });
  expect_set_refused("is not UTF-8", [](CentroidSet& s) { s.model = "\xff"; });
  const auto other = serialize_centroids(samples::centroids(1), DType::kF64);
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().message.find("must be I8, F16 or F32"), std::string::npos);
}

}  // namespace
}  // namespace eldr::signature
