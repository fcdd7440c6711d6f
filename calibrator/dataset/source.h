// SPDX-License-Identifier: Apache-2.0
// Where a data set comes from: a file, standard input or a URL. The last two are kept in a temporary file, so
// that it can be read twice.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <stop_token>
#include <string>

#include "lib/base/status.h"

namespace eldr::calibrator {

/// A data set on disk. Removes the file when it is temporary.
class LocalDataset {
 public:
  LocalDataset(std::string path, std::string sha256, bool temporary)
      : path_(std::move(path)), sha256_(std::move(sha256)), temporary_(temporary) {}
  ~LocalDataset();
  LocalDataset(LocalDataset&& other) noexcept;
  LocalDataset& operator=(LocalDataset&&) = delete;

  const std::string& path() const { return path_; }
  const std::string& sha256() const { return sha256_; }  ///< of its bytes, 64 hex digits
  void set_sha256(std::string sha256) { sha256_ = std::move(sha256); }

 private:
  std::string path_;
  std::string sha256_;
  bool temporary_;
};

/// Gives the bytes of a download, piece by piece; returns false from the sink to stop it.
using ByteSink = std::function<bool(const char* data, std::size_t size)>;
using Download =
    std::function<Status(const std::string& url, const ByteSink& sink, const std::stop_token& stop)>;

struct DatasetSource {
  std::string file = {};             ///< path, or "-" for `input`
  std::string url = {};              ///< used when `file` is empty
  std::string expected_sha256 = {};  ///< empty: not checked
  std::string temp_directory = "/tmp";
  std::uint64_t max_bytes = std::uint64_t{16} << 30U;  ///< largest download or standard input
  std::FILE* input = stdin;
};

/// kNotFound: no such file; kUnavailable: the URL does not answer; kInvalid: another checksum than expected,
/// or over max_bytes; kResourceExhausted: no room for the temporary file; kCancelled.
Result<LocalDataset> obtain_dataset(const DatasetSource& source, const Download& download,
                                    const std::stop_token& stop);

}  // namespace eldr::calibrator
