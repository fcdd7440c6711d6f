// SPDX-License-Identifier: Apache-2.0
#include "calibrator/dataset/source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

namespace eldr::calibrator {
namespace {

/// SHA-256 of what is fed to it.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      throw std::bad_alloc();  // the one thing that can fail here
    }
  }
  void feed(const char* data, std::size_t size) { EVP_DigestUpdate(context_.get(), data, size); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      text += fmt::format("{:02x}", digest[i]);
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

/// Hands every piece of `file` to `sink`.
Status pump(std::FILE* file, const std::string& name, const ByteSink& sink, const std::stop_token& stop) {
  std::vector<char> buffer(std::size_t{1} << 16U);
  for (;;) {
    if (stop.stop_requested()) {
      return failure(Code::kCancelled, "stopped while reading the data set");
    }
    const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), file);
    if (size > 0 && !sink(buffer.data(), size)) {
      return {};
    }
    if (size < buffer.size()) {
      if (std::ferror(file) != 0) {
        return failure(Code::kUnavailable, fmt::format("data set {}: {}", name, std::strerror(errno)));
      }
      return {};
    }
  }
}

Result<std::string> hash_of_file(const std::string& path, const std::stop_token& stop) {
  const File file(std::fopen(path.c_str(), "rb"));
  struct stat facts {};
  if (!file || fstat(fileno(file.get()), &facts) != 0 || S_ISDIR(facts.st_mode)) {
    return failure(Code::kNotFound, fmt::format("data set {}: {}", path,
                                                file ? "is a folder; must be a file" : std::strerror(errno)));
  }
  Sha256 hash;
  const Status read = pump(
      file.get(), path,
      [&](const char* data, std::size_t size) {
        hash.feed(data, size);
        return true;
      },
      stop);
  if (!read) {
    return failure(read.error());
  }
  return hash.hex();
}

/// A copy in the temporary folder of what `produce` gives, hashed on the way.
Result<LocalDataset> spool(const DatasetSource& source, const std::string& name,
                           const std::function<Status(const ByteSink&)>& produce) {
  std::string path = source.temp_directory + "/eldr-dataset-XXXXXX";
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) {
    return failure(Code::kResourceExhausted,
                   fmt::format("temporary file in {}: {}", source.temp_directory, std::strerror(errno)));
  }
  LocalDataset dataset(path, "", true);  // removes the file on every way out but the last
  File file(fdopen(descriptor, "wb"));
  if (!file) {
    close(descriptor);
    return failure(Code::kResourceExhausted,
                   fmt::format("temporary file {}: {}", path, std::strerror(errno)));
  }
  Sha256 hash;
  std::uint64_t size = 0;
  Status written;
  const Status produced = produce([&](const char* data, std::size_t count) {
    size += count;
    if (size > source.max_bytes) {
      written = failure(Code::kInvalid,
                        fmt::format("data set {}: is larger than {} bytes", name, source.max_bytes));
    } else if (std::fwrite(data, 1, count, file.get()) != count) {
      written =
          failure(Code::kResourceExhausted, fmt::format("temporary file {}: {}", path, std::strerror(errno)));
    }
    hash.feed(data, count);
    return written.has_value();
  });
  if (!written) {
    return failure(written.error());
  }
  if (!produced) {
    return failure(produced.error());
  }
  if (std::fflush(file.get()) != 0) {
    return failure(Code::kResourceExhausted,
                   fmt::format("temporary file {}: {}", path, std::strerror(errno)));
  }
  dataset.set_sha256(hash.hex());
  return dataset;
}

Status check_hash(const LocalDataset& dataset, const std::string& name, std::string expected) {
  std::transform(expected.begin(), expected.end(), expected.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!expected.empty() && expected != dataset.sha256()) {
    return failure(Code::kInvalid, fmt::format("data set {}: its SHA-256 is {}; {} was expected", name,
                                               dataset.sha256(), expected));
  }
  return {};
}

Result<LocalDataset> obtain(const DatasetSource& source, const Download& download, const std::string& name,
                            const std::stop_token& stop) {
  if (source.file == "-") {
    return spool(source, name, [&](const ByteSink& sink) { return pump(source.input, name, sink, stop); });
  }
  if (source.file.empty()) {
    return spool(source, name, [&](const ByteSink& sink) { return download(source.url, sink, stop); });
  }
  auto hash = hash_of_file(source.file, stop);
  if (!hash) {
    return failure(hash.error());
  }
  return LocalDataset(source.file, std::move(*hash), false);
}

}  // namespace

LocalDataset::~LocalDataset() {
  if (temporary_) {
    unlink(path_.c_str());
  }
}

LocalDataset::LocalDataset(LocalDataset&& other) noexcept
    : path_(std::move(other.path_)),
      sha256_(std::move(other.sha256_)),
      temporary_(std::exchange(other.temporary_, false)) {}

Result<LocalDataset> obtain_dataset(const DatasetSource& source, const Download& download,
                                    const std::stop_token& stop) {
  const std::string name = source.file == "-"    ? "standard input"
                           : source.file.empty() ? source.url
                                                 : source.file;
  auto dataset = obtain(source, download, name, stop);
  if (!dataset) {
    return failure(dataset.error());
  }
  if (const Status same = check_hash(*dataset, name, source.expected_sha256); !same) {
    return failure(same.error());
  }
  return dataset;
}

}  // namespace eldr::calibrator
