// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/signature/safetensors.h"
#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

using samples::bytes_of_text;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "eldr-file-test-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~FileTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  std::filesystem::path directory_;
};

TEST_F(FileTest, RoundTripsAndReplaces) {
  ASSERT_TRUE(write_file_atomically(path("f"), bytes_of_text("old, and longer")).has_value());
  ASSERT_TRUE(write_file_atomically(path("f"), bytes_of_text("new")).has_value());
  EXPECT_EQ(read_file(path("f"), 3).value(), bytes_of_text("new"));
  EXPECT_EQ(entries(), 1U) << "no temporary file stays";
  ASSERT_TRUE(write_file_atomically(path("empty"), {}).has_value());
  EXPECT_TRUE(read_file(path("empty"), 0).value().empty());
}

TEST_F(FileTest, AReaderOfTheOldFileKeepsIt) {
  ASSERT_TRUE(write_file_atomically(path("f"), bytes_of_text("old")).has_value());
  std::ifstream open_before(path("f"));
  ASSERT_TRUE(write_file_atomically(path("f"), bytes_of_text("new")).has_value());
  std::string text;
  open_before >> text;
  EXPECT_EQ(text, "old");
}

TEST_F(FileTest, SaysWhyAFileCannotBeRead) {
  const auto missing = read_file(path("none"), 10);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find(path("none")), std::string::npos);
  EXPECT_EQ(read_file(path("none/below"), 10).error().code, Code::kNotFound);

  ASSERT_TRUE(write_file_atomically(path("f"), bytes_of_text("eleven byte")).has_value());
  const auto large = read_file(path("f"), 10);
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, Code::kInvalid);
  EXPECT_NE(large.error().message.find("11 bytes; at most 10"), std::string::npos);

  EXPECT_EQ(read_file(directory_.string(), 10).error().code, Code::kInvalid) << "a directory";
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(path("pipe"), 10).error().code, Code::kInvalid)
      << "a pipe, at once and without waiting";
}

TEST_F(FileTest, AFailedWriteLeavesNothingBehindAndTheOldFileAlone) {
  EXPECT_EQ(write_file_atomically(path("none/f"), bytes_of_text("x")).error().code, Code::kNotFound);
  ASSERT_EQ(::mkdir(path("f").c_str(), 0700), 0);
  ASSERT_TRUE(write_file_atomically(path("f/inner"), {}).has_value());
  EXPECT_FALSE(write_file_atomically(path("f"), bytes_of_text("x")).has_value())
      << "a directory is in the way";
  EXPECT_EQ(entries(), 1U);
}

/// RLIMIT_FSIZE stands for a full disk: the write stops in the middle with EFBIG.
[[noreturn]] void write_with_a_size_limit(const std::string& path) {
  const rlimit limit{1000, 1000};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);
  const auto status = write_file_atomically(path, std::vector<std::byte>(5000));
  ::_exit(!status && status.error().code == Code::kResourceExhausted ? 0 : 1);
}

TEST_F(FileTest, AFullDiskIsAMessageAndNoHalfFile) {
  ASSERT_TRUE(write_file_atomically(path("f"), bytes_of_text("old")).has_value());
  EXPECT_EXIT(write_with_a_size_limit(path("f")), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(path("f"), 100).value(), bytes_of_text("old"));
  EXPECT_EQ(entries(), 1U);
}

}  // namespace
}  // namespace eldr::signature
