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
    absl::StatusOr<std::unique_ptr<DiskFiles>> files = DiskFiles::Open(folder_);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *std::move(files) : nullptr;
  }
  bool Exists(const std::string& name) {
    return access((folder_ + "/" + name).c_str(), F_OK) == 0;
  }
  std::string folder_;
};

TEST_F(DiskFilesTest, WritesReadsReplacesAndRemoves) {
  const std::unique_ptr<DiskFiles> files = MustOpen();
  EXPECT_EQ(files->Read("a").status().code(), absl::StatusCode::kNotFound);
  const std::string bytes("x\0y\n", 4);
  ASSERT_TRUE(files->WriteAtomically("a", bytes).ok());
  EXPECT_EQ(*files->Read("a"), bytes);
  ASSERT_TRUE(files->WriteAtomically("a", "").ok());
  EXPECT_EQ(*files->Read("a"), "");
  ASSERT_TRUE(files->Remove("a").ok());
  ASSERT_TRUE(files->Remove("a").ok());  // absent is fine
  EXPECT_EQ(files->Read("a").status().code(), absl::StatusCode::kNotFound);
}

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
      DiskFiles::Open(folder_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(folder_));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("(pid ", getpid(), ")")));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("a state_dir of its own"));
  first.reset();
  EXPECT_TRUE(DiskFiles::Open(folder_).ok());
}

TEST_F(DiskFilesTest, TheLockOfAKilledDaemonIsFree) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto files = DiskFiles::Open(folder_);
    const char answer = files.ok() ? 'y' : 'n';
    if (write(pipe_fds[1], &answer, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char answer = 0;
  ASSERT_EQ(read(pipe_fds[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_THAT(std::string(DiskFiles::Open(folder_).status().message()),
              HasSubstr(absl::StrCat("(pid ", child, ")")));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(DiskFiles::Open(folder_).ok());
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
  const absl::Status status = DiskFiles::Open(folder_ + "/file/below").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("Not a directory"));
  EXPECT_FALSE(DiskFiles::Open("").ok());
}

}  // namespace
}  // namespace dfl::store
