// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/centroids.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/signature/centroid_values.h"
#include "lib/signature/counts.h"
#include "lib/signature/tensor_values.h"
#include "lib/signature/text.h"

namespace eldr::signature {
namespace {

constexpr const char* kFormat = "eldr-centroids/1";
constexpr std::size_t kMaxClusters = 4096;
constexpr std::string_view kQuantilePrefix = "best_similarity_";
constexpr double kRounding = 1e-3;       ///< cosines and correlations may leave [-1, 1] by so much
constexpr double kUnitTolerance = 0.01;  ///< a centroid's length differs from 1 by less

const std::vector<std::string> kTensorNames = {"layers",         "idf",        "centroids",
                                               "centroid_scale", "assignment", "placement"};
const std::vector<std::string> kMetadataNames = {
    "format",         "model",    "experts",  "top_k", "transform", "spread", "rho",
    "rho_all_layers", "clusters", "requests", "tau",   "fit_hash",  "seed"};

tl::unexpected<Error> invalid(const std::string& what, const std::string& why) {
  return failure(Code::kInvalid, "centroids: " + what + ": " + why);
}
tl::unexpected<Error> in_centroids(const Error& error) { return failure(error.with_context("centroids")); }

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// ---- what holds for every set, read or about to be written ----

Status check_layers(const SignatureSpec& spec) {
  if (spec.layers.empty() || spec.layers.size() > kMaxLayers) {
    return invalid(
        "layers", std::to_string(spec.layers.size()) + " layers; must be 1 to " + std::to_string(kMaxLayers));
  }
  auto sorted = spec.layers;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0)
    return invalid("layers", "layer " + std::to_string(sorted.front()) + " is negative");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return invalid("layers", "layer " + std::to_string(*twice) + " is there twice");
  return {};
}

Status check_idf(const SignatureSpec& spec) {
  if (spec.idf.rows() != static_cast<Eigen::Index>(spec.layers.size()) ||
      spec.idf.cols() != static_cast<Eigen::Index>(spec.experts)) {
    return invalid("idf", "must be layers x experts");
  }
  const bool used = spec.transform == Transform::kCountIdf;
  for (const float weight : spec.idf.reshaped()) {
    if (!std::isfinite(weight) || weight < 0) return invalid("idf", "a weight is negative or not a number");
    if (!used && weight != 1) {
      return invalid("idf", "must be all ones with transform " + std::string(name_of(spec.transform)));
    }
  }
  return {};
}

Status check_rows(const CentroidSet& set) {
  if (set.centroids.rows() < 1 || set.centroids.rows() > static_cast<Eigen::Index>(kMaxClusters)) {
    return invalid("centroids", std::to_string(set.centroids.rows()) + " clusters; must be 1 to " +
                                    std::to_string(kMaxClusters));
  }
  if (set.centroids.cols() != static_cast<Eigen::Index>(set.spec.dimension())) {
    return invalid("centroids", std::to_string(set.centroids.cols()) + " columns; layers x experts are " +
                                    std::to_string(set.spec.dimension()));
  }
  for (Eigen::Index row = 0; row < set.centroids.rows(); ++row) {
    const double length = std::sqrt(set.centroids.row(row).cast<double>().squaredNorm());
    if (std::abs(length - 1) < kUnitTolerance) continue;  // false for NaN and infinity
    return invalid("centroids",
                   "row " + std::to_string(row) + " has length " + format_double(length) + "; must be 1");
  }
  return {};
}

Status check_assignment(const CentroidSet& set) {
  for (const std::uint32_t cluster : set.assignment) {
    if (cluster >= set.clusters()) {
      return invalid("assignment",
                     "cluster " + std::to_string(cluster) + " of " + std::to_string(set.clusters()));
    }
  }
  return {};
}

Status check_placement(const CentroidSet& set) {
  if (set.placement.empty()) return {};
  if (set.placement.size() != set.clusters() * set.spec.dimension()) {
    return invalid("placement", "must be clusters x layers x experts, or absent");
  }
  if (*std::min_element(set.placement.begin(), set.placement.end()) < 0)
    return invalid("placement", "a rank is negative");
  return {};
}

Status check_between(const std::string& name, double value, double low, double high) {
  if (value >= low - kRounding && value <= high + kRounding) return {};  // false for NaN
  return invalid(name,
                 std::to_string(value) + "; must be " + format_double(low) + " to " + format_double(high));
}

Status check_numbers(const CentroidSet& set) {
  if (const Status s = check_between("spread", set.spread, 0, 2); !s) return s;
  if (const Status s = check_between("rho", set.rho, -1, 1); !s) return s;
  if (const Status s = check_between("rho_all_layers", set.rho_all_layers, -1, 1); !s) return s;
  if (const Status s = check_between("tau", set.tau, 0, 2); !s) return s;
  for (const auto& [name, value] : set.best_similarity_quantiles) {
    if (const Status s = check_between(std::string(kQuantilePrefix) + name, value, -1, 1); !s) return s;
  }
  return {};
}

Status check(const CentroidSet& set) {
  if (set.spec.experts == 0 || set.spec.experts > kMaxExperts) {
    return invalid("experts",
                   std::to_string(set.spec.experts) + "; must be 1 to " + std::to_string(kMaxExperts));
  }
  if (set.top_k == 0 || set.top_k > set.spec.experts) {
    return invalid("top_k", std::to_string(set.top_k) + "; must be 1 to the " +
                                std::to_string(set.spec.experts) + " experts");
  }
  for (const auto part : {check_layers, check_idf}) {
    if (const Status right = part(set.spec); !right) return right;
  }
  for (const auto part : {check_rows, check_assignment, check_placement, check_numbers}) {
    if (const Status right = part(set); !right) return right;
  }
  return {};
}

// ---- metadata ----

/// Reads metadata one key after the other; the first problem stays.
class MetadataReader {
 public:
  explicit MetadataReader(const SafetensorsFile& file) : file_(file) {}

  std::string text(const std::string& key) {
    const auto value = file_.meta(key);
    if (!value) fail(in_centroids(value.error()));
    return value ? *value : "";
  }
  double number(const std::string& key) {
    const std::string value = text(key);
    const auto parsed = parse_double(value);
    if (!parsed) fail(invalid("metadata " + in_quotes(key), in_quotes(value) + "; must be a decimal number"));
    return parsed.value_or(0);
  }
  std::uint64_t whole(const std::string& key, std::uint64_t most) {
    const std::string value = text(key);
    const auto parsed = parse_unsigned(value);
    if (!parsed || *parsed > most) {
      fail(invalid("metadata " + in_quotes(key),
                   in_quotes(value) + "; must be a whole number of at most " + std::to_string(most)));
      return 0;
    }
    return *parsed;
  }
  void fail(const tl::unexpected<Error>& error) {
    if (status_) status_ = error;
  }
  const Status& status() const { return status_; }

 private:
  const SafetensorsFile& file_;
  Status status_;
};

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

Status read_metadata(const SafetensorsFile& file, CentroidSet& set) {
  MetadataReader reader(file);
  const std::string format = reader.text("format");
  if (format != kFormat)
    reader.fail(invalid("metadata format", in_quotes(format) + "; must be \"eldr-centroids/1\""));
  set.model = reader.text("model");
  set.spec.experts = static_cast<std::uint32_t>(reader.whole("experts", kMaxExperts));
  set.top_k = static_cast<std::uint32_t>(reader.whole("top_k", kMaxExperts));
  const auto transform = transform_from(reader.text("transform"));
  if (!transform) reader.fail(in_centroids(transform.error()));
  set.spec.transform = transform.value_or(Transform::kCountIdf);
  set.spread = reader.number("spread");
  set.rho = reader.number("rho");
  set.rho_all_layers = reader.number("rho_all_layers");
  set.tau = reader.number("tau");
  set.fit_hash = reader.text("fit_hash");
  set.seed = reader.whole("seed", std::numeric_limits<std::uint64_t>::max());
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(kQuantilePrefix)) {
      set.best_similarity_quantiles[key.substr(kQuantilePrefix.size())] = reader.number(key);
    } else if (!contains(kMetadataNames, key)) {
      set.extra[key] = value;
    }
  }
  return reader.status();
}

/// Sizes that the metadata repeat must be those of the tensors.
Status check_sizes(const SafetensorsFile& file, const CentroidSet& set) {
  MetadataReader reader(file);
  const auto must_be = [&](const std::string& key, std::uint64_t is) {
    const std::uint64_t said = reader.whole(key, kMost32);
    if (said != is)
      reader.fail(
          invalid("metadata " + key, std::to_string(said) + "; the tensors have " + std::to_string(is)));
  };
  must_be("clusters", set.clusters());
  must_be("requests", set.requests());
  return reader.status();
}

Result<std::map<std::string, std::string>> metadata_of(const CentroidSet& set) {
  std::map<std::string, std::string> metadata = {{"format", kFormat},
                                                 {"model", set.model},
                                                 {"experts", std::to_string(set.spec.experts)},
                                                 {"top_k", std::to_string(set.top_k)},
                                                 {"transform", std::string(name_of(set.spec.transform))},
                                                 {"spread", format_double(set.spread)},
                                                 {"rho", format_double(set.rho)},
                                                 {"rho_all_layers", format_double(set.rho_all_layers)},
                                                 {"clusters", std::to_string(set.clusters())},
                                                 {"requests", std::to_string(set.requests())},
                                                 {"tau", format_double(set.tau)},
                                                 {"fit_hash", set.fit_hash},
                                                 {"seed", std::to_string(set.seed)}};
  for (const auto& [name, value] : set.best_similarity_quantiles) {
    metadata[std::string(kQuantilePrefix) + name] = format_double(value);
  }
  for (const auto& [key, value] : set.extra) {
    if (key.starts_with(kQuantilePrefix) || !metadata.try_emplace(key, value).second) {
      return invalid("metadata " + in_quotes(key),
                     "is the format's own and cannot be among the other metadata");
    }
  }
  return metadata;
}

// ---- tensors ----

Status read_spec(const SafetensorsFile& file, SignatureSpec& spec) {
  const auto layers = file.get("layers", DType::kI32, {0});
  if (!layers) return in_centroids(layers.error());
  spec.layers = values_of<std::int32_t>(*layers);
  // An extent of 0 would mean "any" to get().
  if (spec.layers.empty()) return invalid("layers", "must not be empty");
  if (spec.experts == 0) return invalid("metadata experts", "0; must be 1 to " + std::to_string(kMaxExperts));
  const auto idf = file.get("idf", DType::kF32, {spec.layers.size(), spec.experts});
  if (!idf) return in_centroids(idf.error());
  const auto weights = values_of<float>(*idf);
  spec.idf = Eigen::Map<const RowMatrixF>(weights.data(), static_cast<Eigen::Index>(spec.layers.size()),
                                          static_cast<Eigen::Index>(spec.experts));
  return {};
}

Status read_tensors(const SafetensorsFile& file, CentroidSet& set) {
  for (const auto& [name, view] : file.tensors()) {
    if (!contains(kTensorNames, name)) return invalid("tensor " + in_quotes(name), "not part of the format");
  }
  if (const Status spec = read_spec(file, set.spec); !spec) return spec;
  auto centroids = decode_centroids(file, set.spec.dimension());
  if (!centroids) return in_centroids(centroids.error());
  set.centroids = std::move(*centroids);
  if (set.clusters() == 0)
    return invalid("centroids", "0 clusters; must be 1 to " + std::to_string(kMaxClusters));

  const auto assignment = file.get("assignment", DType::kU32, {0});
  if (!assignment) return in_centroids(assignment.error());
  set.assignment = values_of<std::uint32_t>(*assignment);
  if (!file.has("placement")) return {};
  const auto placement =
      file.get("placement", DType::kI16, {set.clusters(), set.spec.layers.size(), set.spec.experts});
  if (!placement) return in_centroids(placement.error());
  set.placement = values_of<std::int16_t>(*placement);
  return {};
}

void renormalise_rows(RowMatrixF& rows) {
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    rows.row(row) =
        (rows.row(row).cast<double>() / std::sqrt(rows.row(row).cast<double>().squaredNorm())).cast<float>();
  }
}

/// Of a file that is too large with `layers`, each of that many bytes.
std::size_t layers_that_fit(std::size_t file, std::size_t layers, std::size_t layer_bytes) {
  const std::size_t over = file - kMaxCentroidFile;
  const std::size_t away = (over + layer_bytes - 1) / layer_bytes;
  return layers > away ? layers - away : 0;
}

}  // namespace

std::vector<std::uint32_t> CentroidSet::cluster_sizes() const {
  std::vector<std::uint32_t> sizes(clusters(), 0);
  for (const std::uint32_t cluster : assignment) ++sizes[cluster];
  return sizes;
}

double CentroidSet::max_cluster_share() const {
  if (assignment.empty()) return 0;
  const std::vector<std::uint32_t> sizes = cluster_sizes();
  return static_cast<double>(*std::max_element(sizes.begin(), sizes.end())) /
         static_cast<double>(assignment.size());
}

Result<CentroidSet> parse_centroids(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxCentroidFile) {
    return invalid("file", std::to_string(bytes.size()) + " bytes; at most " +
                               std::to_string(kMaxCentroidFile) + " are allowed");
  }
  const auto file = SafetensorsFile::parse(bytes);
  if (!file) return in_centroids(file.error());
  CentroidSet set;
  if (const Status metadata = read_metadata(*file, set); !metadata) return failure(metadata.error());
  if (const Status tensors = read_tensors(*file, set); !tensors) return failure(tensors.error());
  if (const Status sizes = check_sizes(*file, set); !sizes) return failure(sizes.error());
  if (const Status right = check(set); !right) return failure(right.error());
  if (file->tensors().at("centroids").dtype != DType::kF32) renormalise_rows(set.centroids);
  return set;
}

Result<std::vector<std::byte>> serialize_centroids(const CentroidSet& set, DType dtype) {
  if (const Status right = check(set); !right) return failure(right.error());
  const auto metadata = metadata_of(set);
  if (!metadata) return failure(metadata.error());
  const auto values = encode_centroids(set.centroids, dtype);
  if (!values) return in_centroids(values.error());

  const std::size_t k = set.clusters();
  const std::size_t s = set.spec.layers.size();
  const std::size_t e = set.spec.experts;
  const auto idf = std::as_bytes(std::span(set.spec.idf.data(), s * e));
  // Wide types first, so that every tensor is aligned to its type.
  std::vector<TensorData> tensors = {
      {"layers", DType::kI32, {s}, bytes_of(set.spec.layers)},
      {"idf", DType::kF32, {s, e}, idf},
      {"assignment", DType::kU32, {set.assignment.size()}, bytes_of(set.assignment)}};
  if (!values->scale.empty())
    tensors.push_back({"centroid_scale", DType::kF32, {k}, bytes_of(values->scale)});
  const TensorData rows{"centroids", dtype, {k, s * e}, values->bytes};
  const TensorData placement{"placement", DType::kI16, {k, s, e}, bytes_of(set.placement)};
  if (size_of(dtype) >= 2) tensors.push_back(rows);
  if (!set.placement.empty()) tensors.push_back(placement);
  if (size_of(dtype) < 2) tensors.push_back(rows);

  const std::size_t bytes_a_value = size_of(dtype) + (set.placement.empty() ? 0 : size_of(DType::kI16));
  auto bytes = serialize_safetensors(tensors, *metadata);
  if (!bytes) return in_centroids(bytes.error());
  if (bytes->size() > kMaxCentroidFile) {
    return failure(
        Code::kResourceExhausted,
        "centroids: file of " + std::to_string(bytes->size()) + " bytes with " + std::string(name_of(dtype)) +
            " centroids, " + std::to_string(bytes->size() - kMaxCentroidFile) + " over the " +
            std::to_string(kMaxCentroidFile) + " that a ConfigMap may hold: keep at most " +
            std::to_string(layers_that_fit(bytes->size(), s, e * (sizeof(float) + k * bytes_a_value))) +
            " layers");
  }
  return bytes;
}

Result<std::vector<std::byte>> serialize_centroids(const CentroidSet& set) {
  if (const Status right = check(set); !right) return failure(right.error());
  return serialize_centroids(set, narrowest_dtype(set.centroids));
}

Result<CentroidSet> load_centroids(const std::string& path) {
  const auto bytes = read_file(path, kMaxCentroidFile);
  if (!bytes) return failure(bytes.error());
  auto set = parse_centroids(*bytes);
  if (!set) return failure(set.error().with_context(path));
  return set;
}

}  // namespace eldr::signature
