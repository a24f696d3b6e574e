#include "daemon/app/memory_limit.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/app/cgroup.h"
#include "daemon/app/compute/cpu_quota.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A folder in the place of "/".
class MemoryLimitTest : public testing::Test {
 public:
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

 protected:
  MemoryLimitTest() {
    std::string name = testing::TempDir() + "/machine-XXXXXX";
    root_ = std::string(mkdtemp(name.data())) + "/";
  }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::string root_;
};

TEST_F(MemoryLimitTest, IsTheSettingWhereThereIsOne) {
  Write("proc/meminfo", "MemTotal:  4096 kB\n");
  const MemoryLimit limit = FindMemoryLimit(uint64_t{1} << 40, root_);
  EXPECT_EQ(limit.bytes, int64_t{1} << 40);
  EXPECT_EQ(limit.origin, "compute.memory_limit");
  EXPECT_GT(FindMemoryLimit(~uint64_t{0}, root_).bytes, 0);
}

TEST_F(MemoryLimitTest, IsTheMachinesMemoryWithoutACgroup) {
  Write("proc/meminfo",
        "MemFree:      1024 kB\nHugePages:   0\nMemTotal:    4096 kB\n");
  const MemoryLimit limit = FindMemoryLimit(0, root_);
  EXPECT_EQ(limit.bytes, 4096 << 10);
  EXPECT_EQ(limit.origin, "the machine's memory");
}

TEST_F(MemoryLimitTest, IsUnknownWhereNothingCanBeRead) {
  EXPECT_EQ(FindMemoryLimit(0, root_).bytes, 0);
  EXPECT_EQ(FindMemoryLimit(0, root_).origin, "");
}

TEST_F(MemoryLimitTest, IsTheLeastOfTheGroupsAboveTheProcess) {
  Write("proc/meminfo", "MemTotal:  4096 kB\n");
  Write("proc/self/cgroup", "0::/system.slice/dfld.service\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/fs/cgroup/system.slice/memory.max", "1000000\n");
  Write("sys/fs/cgroup/system.slice/dfld.service/memory.max", "2000000\n");
  const MemoryLimit limit = FindMemoryLimit(0, root_);
  EXPECT_EQ(limit.bytes, 1000000);
  EXPECT_EQ(limit.origin, "the cgroup's memory limit");
  // More than the machine has is no limit.
  Write("sys/fs/cgroup/system.slice/memory.max", "9000000\n");
  Write("sys/fs/cgroup/system.slice/dfld.service/memory.max", "8000000\n");
  EXPECT_EQ(FindMemoryLimit(0, root_).origin, "the machine's memory");
}

TEST_F(MemoryLimitTest, ReadsCgroupsOfVersion1) {
  Write("proc/meminfo", "MemTotal:  4096 kB\n");
  Write("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/x\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(FindMemoryLimit(0, root_).bytes, 3000000);
}

TEST_F(MemoryLimitTest, GroupsAreFoundByController) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/a/b\n0::/c\n");
  EXPECT_THAT(
      GroupFolders(root_, "cpu"),
      ElementsAre(root_ + "sys/fs/cgroup/cpu/", root_ + "sys/fs/cgroup/cpu/a/",
                  root_ + "sys/fs/cgroup/cpu/a/b/"));
  EXPECT_THAT(GroupFolders(root_, ""), ElementsAre(root_ + "sys/fs/cgroup/",
                                                   root_ + "sys/fs/cgroup/c/"));
  EXPECT_THAT(GroupFolders(root_, "memory"),
              ElementsAre(root_ + "sys/fs/cgroup/memory/"));
}

// A quota of any group above counts.
TEST_F(MemoryLimitTest, ProcessorsAreThoseOfTheTightestGroup) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  const CpuQuota quota = FindCpuQuota(root_);
  EXPECT_EQ(quota.count(), 1);
  EXPECT_EQ(quota.limit, 0.5);
  EXPECT_EQ(quota.usage_file, root_ + "sys/fs/cgroup/a/cpu.stat");
}

TEST(CheckMemory, TellsTheFigureItsPartsTheLimitAndWhatToChange) {
  runtime::MemoryNeed need;
  need.parts = {{"data", 1'000'000}, {"for 7 neighbours: vectors", 2'500'000}};
  need.total = 3'500'000;
  EXPECT_TRUE(CheckMemory(need, {3'500'000, "x"}).ok());
  EXPECT_TRUE(CheckMemory(need, {}).ok());
  const absl::Status status =
      CheckMemory(need, {3'000'000, "compute.memory_limit"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* said :
       {"may need 3.50 MB", "allowed: 3.00 MB (compute.memory_limit)",
        "data 1.00 MB, for 7 neighbours: vectors 2.50 MB",
        "a topology with fewer neighbours", "or set compute.memory_limit"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(said));
  }
}

}  // namespace
}  // namespace dfl::app
