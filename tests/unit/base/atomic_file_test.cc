// What a file that is replaced keeps, and what is never replaced.
#include "daemon/base/atomic_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl {
namespace {

using testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/dfl.XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string Make(const std::string& name, const std::string& text,
                   mode_t mode) const {
    std::ofstream(File(name)) << text;
    EXPECT_EQ(chmod(File(name).c_str(), mode), 0);
    return File(name);
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0);
    return info.st_mode;
  }
  static absl::Status Write(const std::string& path, const std::string& text) {
    auto file = OutputFile::Open(path);
    if (!file.ok()) return file.status();
    absl::Status status = (*file)->Append(text);
    if (status.ok()) status = (*file)->Commit();
    return status;
  }
  // Nothing half done is left behind.
  int Files() const {
    return static_cast<int>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

TEST_F(AtomicFileTest, APlainFileIsReplacedAndKeepsItsMode) {
  const std::string path = Make("m", "OLD", 0640);
  ASSERT_TRUE(Write(path, "new").ok());
  EXPECT_EQ(ReadAll(path), "new");
  EXPECT_EQ(ModeOf(path), S_IFREG | 0640);
  const mode_t mask = umask(027);
  ASSERT_TRUE(Write(File("fresh"), "new").ok());
  umask(mask);
  EXPECT_EQ(ModeOf(File("fresh")), S_IFREG | 0640);
  EXPECT_EQ(Files(), 2);
}

TEST_F(AtomicFileTest, WhatIsNotCommittedLeavesTheFileAsItWas) {
  const std::string path = Make("m", "OLD", 0600);
  {
    auto file = OutputFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->atomic());
    ASSERT_TRUE((*file)->Append("half").ok());
  }
  EXPECT_EQ(ReadAll(path), "OLD");
  EXPECT_EQ(Files(), 1);
}

TEST_F(AtomicFileTest, ALinkStaysAndWhatItLeadsToIsReplaced) {
  std::filesystem::create_directory(File("there"));
  const std::string real = Make("there/real", "OLD", 0604);
  std::filesystem::create_symlink("there/real", File("one"));
  std::filesystem::create_symlink(File("one"), File("two"));
  ASSERT_TRUE(Write(File("two"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(File("two")));
  EXPECT_TRUE(std::filesystem::is_symlink(File("one")));
  EXPECT_EQ(ReadAll(real), "new");
  EXPECT_EQ(ModeOf(real), S_IFREG | 0604);
  // One that leads to a free name makes the file there.
  std::filesystem::create_symlink("there/free", File("dangling"));
  ASSERT_TRUE(Write(File("dangling"), "x").ok());
  EXPECT_EQ(ReadAll(File("there/free")), "x");
  std::filesystem::create_symlink("loop", File("loop"));
  EXPECT_THAT(std::string(Write(File("loop"), "x").message()),
              HasSubstr("symbolic links"));
}

TEST_F(AtomicFileTest, AFifoAndADeviceAreWrittenTo) {
  ASSERT_EQ(mkfifo(File("p").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = ReadAll(File("p")); });
  EXPECT_TRUE(Write(File("p"), "through the pipe").ok());
  reader.join();
  EXPECT_EQ(got, "through the pipe");
  EXPECT_TRUE(S_ISFIFO(ModeOf(File("p"))));
  std::filesystem::create_symlink("/dev/null", File("null"));
  EXPECT_TRUE(Write(File("null"), "gone").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(File("null")));
  EXPECT_TRUE(S_ISCHR(ModeOf("/dev/null")));
  EXPECT_EQ(Files(), 2);
}

TEST_F(AtomicFileTest, AnOpenFileOfThisProcessIsWrittenTo) {
  const int fd = open(File("out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  struct stat before = {};
  struct stat after = {};
  ASSERT_EQ(fstat(fd, &before), 0);
  EXPECT_TRUE(Write("/proc/self/fd/" + std::to_string(fd), "x").ok());
  ASSERT_EQ(stat(File("out").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(ReadAll(File("out")), "x");
  close(fd);
}

// As the shell opened it: with its place, and at the end with >>.
TEST_F(AtomicFileTest, AnOpenFileGoesOnWhereItIs) {
  std::ofstream(File("log")) << "before ";
  const int fd = open(File("log").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(fd, 0);
  const std::string name = "/dev/fd/" + std::to_string(fd);
  EXPECT_TRUE(NamesDescriptor(name));
  EXPECT_FALSE(NamesDescriptor(File("log")));
  auto file = OutputFile::Open(name);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->atomic());
  ASSERT_TRUE((*file)->Append("model ").ok());
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(write(fd, "after", 5), 5);
  close(fd);
  EXPECT_EQ(ReadAll(File("log")), "before model after");
}

// What a crash leaves: no half file beside the whole one.
TEST_F(AtomicFileTest, NothingIsSeenBeforeTheCommit) {
  auto file = AtomicFile::Create(File("new"), AtomicFile::Readers::kAll);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("half").ok());
  EXPECT_EQ(Files(), 0);
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(Files(), 1);
  EXPECT_EQ(ModeOf(File("new")), S_IFREG | 0644);
}

TEST_F(AtomicFileTest, NoFolderSocketOrBlockDeviceIsTouched) {
  std::filesystem::create_directory(File("d"));
  EXPECT_EQ(Write(File("d"), "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Write(File("no/such"), "x").code(), absl::StatusCode::kNotFound);
  // What must be a plain file is never anything else.
  ASSERT_EQ(mkfifo(File("p").c_str(), 0600), 0);
  const auto refused = AtomicFile::Create(File("p"));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("is a FIFO and would be replaced"));
  EXPECT_FALSE(AtomicFile::Create("/dev/null").ok());
}

}  // namespace
}  // namespace dfl
