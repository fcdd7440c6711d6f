// SPDX-License-Identifier: Apache-2.0
// Whole files in and out of memory: read_file and write_file_atomically of safetensors.h.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/signature/safetensors.h"

namespace eldr::signature {
namespace {

std::string error_text(int number) { return std::generic_category().message(number); }

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  /// 0 or errno: close() is where some file systems first report a failed write.
  int close() {
    const int rc = ::close(fd_);
    fd_ = -1;
    return rc == 0 ? 0 : errno;
  }

 private:
  int fd_;
};

tl::unexpected<Error> cannot(const std::string& verb, const std::string& path, int number) {
  const Code code =
      number == ENOSPC || number == EDQUOT || number == EFBIG ? Code::kResourceExhausted
      : number == ENOENT || number == ENOTDIR || number == EACCES || number == EPERM || number == EROFS
          ? Code::kNotFound
          : Code::kUnavailable;
  return failure(code, path + ": cannot " + verb + ": " + error_text(number));
}

/// Reads until `bytes` is full or the file ends; the count read, or -errno.
ssize_t read_fully(int fd, std::span<std::byte> bytes) {
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(have);
}

/// 0 or errno.
int write_fully(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

/// A name beside `path` that no other call of this or another process uses.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1));
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Makes the rename itself durable. Best effort: some file systems have no fsync of directories.
void sync_directory(const std::string& path) {
  const Descriptor directory(::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.ok()) ::fsync(directory.get());
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::string& path, std::size_t max_bytes) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; it is refused below.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) return cannot("open", path, errno);
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return cannot("read", path, errno);
  if (!S_ISREG(facts.st_mode)) return failure(Code::kInvalid, path + ": not a regular file");
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size > max_bytes) {
    return failure(Code::kInvalid, path + ": " + std::to_string(size) + " bytes; at most " +
                                       std::to_string(max_bytes) + " are allowed");
  }
  try {
    std::vector<std::byte> bytes(size);
    const ssize_t got = read_fully(file.get(), bytes);
    if (got < 0) return cannot("read", path, static_cast<int>(-got));
    if (static_cast<std::size_t>(got) != size)
      return failure(Code::kUnavailable, path + ": changed while it was read");
    return bytes;
  } catch (const std::bad_alloc&) {
    return failure(Code::kResourceExhausted, path + ": no memory for its " + std::to_string(size) + " bytes");
  }
}

Status write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary = temporary_name(path);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.ok()) return cannot("write", path, errno);
  int problem = write_fully(file.get(), bytes);
  const int closing = file.close();
  if (problem == 0) problem = closing;
  if (problem == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) problem = errno;
  if (problem != 0) {
    ::unlink(temporary.c_str());
    return cannot("write", path, problem);
  }
  sync_directory(path);
  return {};
}

}  // namespace eldr::signature
