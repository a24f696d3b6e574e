#include "daemon/store/disk_files.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/contract/files_contract.h"

namespace dfl::store {
namespace {

using testing::HasSubstr;

class DiskFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/store_test_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  std::unique_ptr<DiskFiles> MustOpen() {
    absl::StatusOr<std::unique_ptr<DiskFiles>> files =
        DiskFiles::OpenFolder(folder_);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *std::move(files) : nullptr;
  }
  bool Exists(const std::string& name) {
    return access((folder_ + "/" + name).c_str(), F_OK) == 0;
  }
  std::string folder_;
};

TEST_F(DiskFilesTest, MakesItsFolderForItselfAlone) {
  folder_ += "/deep/er";
  const std::unique_ptr<DiskFiles> files = MustOpen();
  ASSERT_TRUE(files->WriteAtomically("a", "1").ok());
  struct stat info;
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  ASSERT_EQ(stat((folder_ + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(DiskFilesTest, ASecondDaemonIsRefusedAndToldWhoHoldsTheFolder) {
  std::unique_ptr<DiskFiles> first = MustOpen();
  const absl::StatusOr<std::unique_ptr<DiskFiles>> second =
      DiskFiles::OpenFolder(folder_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(folder_));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("(pid ", getpid(), ")")));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("a state_dir of its own"));
  first.reset();
  EXPECT_TRUE(DiskFiles::OpenFolder(folder_).ok());
}

TEST_F(DiskFilesTest, TheLockOfAKilledDaemonIsFree) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto files = DiskFiles::OpenFolder(folder_);
    const char answer = files.ok() ? 'y' : 'n';
    if (write(pipe_fds[1], &answer, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char answer = 0;
  ASSERT_EQ(read(pipe_fds[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_THAT(std::string(DiskFiles::OpenFolder(folder_).status().message()),
              HasSubstr(absl::StrCat("(pid ", child, ")")));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(DiskFiles::OpenFolder(folder_).ok());
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST_F(DiskFilesTest, AFullDiskKeepsTheOldContent) {
  const std::unique_ptr<DiskFiles> files = MustOpen();
  ASSERT_TRUE(files->WriteAtomically("a", "old").ok());
  // The nearest to a full disk that needs no root: no file may pass 1 KiB.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1024;
  void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      files->WriteAtomically("a", std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_ + "/a: cannot"));
  EXPECT_EQ(*files->Read("a"), "old");
  EXPECT_FALSE(Exists(".writing-a"));
}

TEST_F(DiskFilesTest, AWriteThatIsGivenUpLeavesNothing) {
  const std::unique_ptr<DiskFiles> files = MustOpen();
  absl::StatusOr<std::unique_ptr<ports::FileWriter>> writer =
      files->Replace("a");
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append("half").ok());
  EXPECT_TRUE(Exists(".writing-a"));
  writer->reset();
  EXPECT_FALSE(Exists(".writing-a"));
}

TEST_F(DiskFilesTest, ALargeFileIsReadByRangesAndNotAsAWhole) {
  const std::unique_ptr<DiskFiles> files = MustOpen();
  const std::string name = folder_ + "/large";
  const int64_t size = ports::Files::kMaxWholeBytes + 3;
  std::ofstream(name) << "";
  ASSERT_EQ(truncate(name.c_str(), size), 0);
  EXPECT_EQ(files->Read("large").status().code(), absl::StatusCode::kInternal);
  const auto reader = files->Open("large");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->size(), size);
  char last[3] = {'x', 'x', 'x'};
  ASSERT_TRUE((*reader)->Read(size - 3, last).ok());
  EXPECT_EQ(std::string(last, 3), std::string(3, '\0'));
}

TEST_F(DiskFilesTest, ClearsWhatAnInterruptedWriteLeft) {
  MustOpen();
  std::ofstream(folder_ + "/.writing-a") << "half";
  std::ofstream(folder_ + "/kept") << "whole";
  const std::unique_ptr<DiskFiles> files = MustOpen();
  EXPECT_FALSE(Exists(".writing-a"));
  EXPECT_EQ(*files->Read("kept"), "whole");
}

TEST_F(DiskFilesTest, RefusesNamesThatLeaveTheFolder) {
  const std::unique_ptr<DiskFiles> files = MustOpen();
  for (const std::string& name :
       {std::string(), std::string("../a"), std::string("a/b"),
        std::string(".hidden"), std::string("lock"), std::string(101, 'a'),
        std::string("a\0b", 3)}) {
    EXPECT_EQ(files->Read(name).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(files->WriteAtomically(name, "x").code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(files->Remove(name).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(DiskFilesTest, SaysWhyAFolderCannotBeUsed) {
  std::ofstream(folder_ + "/file") << "x";
  const absl::Status status =
      DiskFiles::OpenFolder(folder_ + "/file/below").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("Not a directory"));
  EXPECT_FALSE(DiskFiles::OpenFolder("").ok());
}

class DiskFolder : public testing_support::FilesUnderTest {
 public:
  DiskFolder() {
    std::string pattern = testing::TempDir() + "/store_test_XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    auto opened = DiskFiles::OpenFolder(pattern);
    EXPECT_TRUE(opened.ok()) << opened.status();
    files_ = *std::move(opened);
  }
  ports::Files& files() override { return *files_; }

 private:
  std::unique_ptr<DiskFiles> files_;
};

}  // namespace
}  // namespace dfl::store

namespace dfl::testing_support {
namespace {

INSTANTIATE_TEST_SUITE_P(DiskFiles, FilesContract, testing::Values([] {
                           return std::unique_ptr<FilesUnderTest>(
                               new store::DiskFolder());
                         }));

}  // namespace
}  // namespace dfl::testing_support
