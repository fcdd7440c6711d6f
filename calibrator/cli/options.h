// SPDX-License-Identifier: Apache-2.0
// The command lines, as values. Defaults here are the ones that --help prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace eldr::calibrator {

struct DatasetOptions {
  std::string file;    ///< path, or "-" for standard input
  std::string url;     ///< http or https
  std::string sha256;  ///< 64 hex digits; optional
  std::uint64_t sample_size = 1000;
};

struct CollectOptions {
  std::string model;
  std::string model_revision;  ///< part of the identity of a trace; the engine is not asked for it
  std::string engine;          ///< base URL
  DatasetOptions dataset;
  std::uint32_t decode_tokens = 128;
  std::uint64_t seed = 0;
  std::uint32_t concurrency = 16;
  std::uint32_t retries = 5;
  std::uint32_t engine_wait_seconds = 1800;
  std::uint32_t request_timeout_seconds = 600;
  std::uint32_t experts = 0;  ///< 0: derived from the ids seen
  std::uint32_t top_k = 0;    ///< 0: from the engine's answers
  std::string layer_numbers;  ///< "1-26" or "0,2,4"; empty: derived
  bool keep_decode_experts = false;
};

struct BackendOptions {
  std::string backend = "auto";         ///< auto, cpu, cuda
  std::string cuda_library;             ///< path of the CUDA backend; empty: looked for beside the program
  std::uint64_t cuda_memory_limit = 0;  ///< MiB; 0: a share of what is free
};

struct FitCommandOptions {
  std::vector<std::uint32_t> clusters;  ///< `fit` makes a file for each; `run` takes one
  std::string match;                    ///< centroid file whose cluster numbers are kept
  std::uint32_t ep_ranks = 1;
  double ep_batch = 32;
  std::uint64_t seed = 0;
  BackendOptions backend;
  std::string transform = "count-idf";  ///< count-idf, count, sqrt-count, binary, auto
  std::uint32_t max_layers = 0;
  std::uint32_t restarts = 8;
  std::uint32_t threads = 0;  ///< 0: all
  bool no_held_out = false;
  double tau = 0.1;
  std::string fit_hash;
  std::string report;         ///< file for the page that shows the fit; empty: none
  std::string placement_out;  ///< file for the placement of all layers; empty: none
};

struct PublishOptions {
  std::string config_map;
  std::string ns;
  std::string kubeconfig;
};

struct RunOptions {
  std::string trace;  ///< a recorded trace: nothing is collected
  CollectOptions collect;
  FitCommandOptions fit;
  PublishOptions publish;
  std::string cache_directory;
  std::string collect_hash;
  bool from_cache = false;
  std::string out;  ///< also, or instead of publishing, write the centroids here
};

struct Options {
  std::string log_format = "text";
  std::string log_level = "info";
  std::string termination_log = "/dev/termination-log";
  bool json = false;
  std::string command;    ///< "collect", "fit", "run", "report", "inspect"
  std::string trace;      ///< fit, report: input
  std::string centroids;  ///< report: input; inspect: optional
  std::string out;        ///< collect, fit, report: output
  std::string file;       ///< inspect: input
  CollectOptions collect;
  FitCommandOptions fit;
  RunOptions run;
};

}  // namespace eldr::calibrator
