// SPDX-License-Identifier: Apache-2.0
// Lets a script see lib/signature from outside: writes samples, reads files and prints what it read as JSON.
// For interop_test.py; exits 65 with one line on standard error when the library refuses its input.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/exit_code.h"
#include "lib/signature/assignment.h"
#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"
#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

int refuse(const Error& error) {
  std::cerr << error.to_string() << "\n";
  return exit_code_for(error);
}

json rows_of(const RowMatrixF& matrix) {
  json rows = json::array();
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    rows.push_back(std::vector<float>(matrix.row(i).begin(), matrix.row(i).end()));
  }
  return rows;
}

int sample_trace(const Words& words) {
  const auto saved = save_trace(words[0], samples::trace(std::stoull(words[1])));
  return saved ? 0 : refuse(saved.error());
}

int sample_centroids(const Words& words) {
  const DType dtype = words[1] == "I8" ? DType::kI8 : words[1] == "F16" ? DType::kF16 : DType::kF32;
  auto set = samples::centroids(std::stoull(words[2]));
  if (words[3] == "placed") {
    for (std::size_t i = 0; i < 4 * set.spec.dimension(); ++i)
      set.placement.push_back(static_cast<std::int16_t>(i % 4));
  }
  const auto bytes = serialize_centroids(set, dtype);
  if (!bytes) return refuse(bytes.error());
  const auto written = write_file_atomically(words[0], *bytes);
  return written ? 0 : refuse(written.error());
}

int dump_trace(const Words& words) {
  const auto trace = load_trace(words[0]);
  if (!trace) return refuse(trace.error());
  std::cout << json{{"model", trace->model},
                    {"layers", trace->layers},
                    {"experts", trace->experts},
                    {"top_k", trace->top_k},
                    {"prefill_counts", trace->prefill_counts},
                    {"decode_counts", trace->decode_counts},
                    {"prompt_tokens", trace->prompt_tokens},
                    {"decode_tokens", trace->decode_tokens},
                    {"labels", trace->labels},
                    {"decode_experts", trace->decode_experts},
                    {"decode_offsets", trace->decode_offsets}};
  return 0;
}

int dump_centroids(const Words& words) {
  const auto set = load_centroids(words[0]);
  if (!set) return refuse(set.error());
  std::cout << json{{"model", set->model},
                    {"experts", set->spec.experts},
                    {"top_k", set->top_k},
                    {"transform", name_of(set->spec.transform)},
                    {"layers", set->spec.layers},
                    {"idf", rows_of(set->spec.idf)},
                    {"centroids", rows_of(set->centroids)},
                    {"assignment", set->assignment},
                    {"placement", set->placement},
                    {"spread", set->spread},
                    {"rho", set->rho},
                    {"rho_all_layers", set->rho_all_layers},
                    {"tau", set->tau},
                    {"fit_hash", set->fit_hash},
                    {"seed", set->seed},
                    {"best_similarity_quantiles", set->best_similarity_quantiles},
                    {"extra", set->extra}};
  return 0;
}

/// Signatures of a trace's prompts under a centroid file's spec, and their similarities; null where there is
/// none.
int signatures(const Words& words) {
  const auto set = load_centroids(words[0]);
  if (!set) return refuse(set.error());
  const auto trace = load_trace(words[1]);
  if (!trace) return refuse(trace.error());
  json out = json::array();
  for (std::size_t r = 0; r < trace->requests(); ++r) {
    ExpertCounts counts{trace->layers, trace->experts, {}, trace->prompt_tokens[r], trace->prompt_tokens[r]};
    counts.counts.assign(trace->prefill(r).begin(), trace->prefill(r).end());
    const auto signature = signature_of(set->spec, counts);
    if (!signature) return refuse(signature.error());
    if (!*signature) {
      out.push_back(nullptr);
      continue;
    }
    const Eigen::VectorXf similar = similarities(set->centroids, **signature);
    out.push_back({{"signature", std::vector<float>((*signature)->begin(), (*signature)->end())},
                   {"similarities", std::vector<float>(similar.begin(), similar.end())}});
  }
  std::cout << out;
  return 0;
}

/// Input file: {"cost": [[…]], "capacity": n}, capacity 0 meaning the general problem.
int assign(const Words& words) {
  std::ifstream file(words[0]);
  const json input = json::parse(file);
  const auto rows = input.at("cost").get<std::vector<std::vector<double>>>();
  Eigen::MatrixXd cost(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(rows.at(0).size()));
  for (Eigen::Index i = 0; i < cost.rows(); ++i) {
    for (Eigen::Index j = 0; j < cost.cols(); ++j)
      cost(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }
  const auto capacity = input.at("capacity").get<std::int32_t>();
  const auto choice = capacity == 0 ? solve_assignment(cost) : solve_capacitated_assignment(cost, capacity);
  if (!choice) return refuse(choice.error());
  std::cout << json(*choice);
  return 0;
}

struct Command {
  const char* name;
  const char* arguments;
  std::size_t count;
  int (*run)(const Words&);
};
constexpr Command kCommands[] = {
    {"sample-trace", "OUT SEED", 2, sample_trace},
    {"sample-centroids", "OUT I8|F16|F32 SEED placed|plain", 4, sample_centroids},
    {"dump-trace", "FILE", 1, dump_trace},
    {"dump-centroids", "FILE", 1, dump_centroids},
    {"signatures", "CENTROIDS TRACE", 2, signatures},
    {"assign", "FILE", 1, assign}};

int run(int argc, char** argv) {
  const Words words(argv + std::min(argc, 2), argv + argc);
  for (const Command& command : kCommands) {
    if (argc > 1 && argv[1] == std::string(command.name) && words.size() == command.count)
      return command.run(words);
  }
  for (const Command& command : kCommands)
    std::fprintf(stderr, "usage: signature_tool %s %s\n", command.name, command.arguments);
  return kExitUsage;
}

}  // namespace
}  // namespace eldr::signature

int main(int argc, char** argv) {
  try {
    return eldr::signature::run(argc, argv);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "signature_tool: %s\n", problem.what());
    return eldr::kExitBadData;
  }
}
