// How many threads train, from readings made up here; and the reader, on files
// of a folder.
#include "daemon/app/compute/thread_policy.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "daemon/app/compute/cpu_quota.h"
#include "daemon/app/compute/cpu_readings.h"
#include "daemon/app/compute/training_threads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::app {
namespace {

constexpr absl::Duration kSpan = absl::Seconds(10);

// After ten seconds in which this process used `own` processors, all together
// `all`, and those of the cgroup `group`.
ThreadChoice After(const CpuBounds& bounds, double own, double all,
                   double group = 0) {
  CpuReading before;
  before.at = absl::UnixEpoch() + absl::Hours(5);
  before.own = absl::Seconds(100);
  before.all = absl::Seconds(7000);
  if (bounds.limit > 0) before.group = absl::Seconds(300);
  CpuReading now = before;
  now.at += kSpan;
  now.own += own * kSpan;
  now.all = *before.all + all * kSpan;
  if (bounds.limit > 0) now.group = *before.group + group * kSpan;
  return ChooseThreads(bounds, before, now);
}

TEST(ChooseThreads, TakesTheProcessorsThatNobodyElseUses) {
  const CpuBounds two{2, 0};
  EXPECT_EQ(After(two, 0, 0), (ThreadChoice{2, "2 of 2 processors are idle"}));
  EXPECT_EQ(After(two, 1.9, 1.95).threads, 2);  // what it uses itself is idle
  EXPECT_EQ(After(two, 1, 1.2).threads, 2);     // a little of another's
  EXPECT_EQ(After(two, 1, 2),
            (ThreadChoice{1, "others use 1.0 of 2 processors"}));
  EXPECT_EQ(After(two, 0.1, 2).threads, 1);  // never none
  const CpuBounds eight{8, 0};
  EXPECT_EQ(After(eight, 8, 8).threads, 8);
  EXPECT_EQ(After(eight, 4, 7),
            (ThreadChoice{5, "others use 3.0 of 8 processors"}));
  EXPECT_EQ(After(eight, 4, 8).threads, 4);
}

TEST(ChooseThreads, TwoDaemonsOnOneMachineShareIt) {
  const CpuBounds eight{8, 0};
  // Each sees the other's load; from 8 and 8 threads they go to 4 and 4, and
  // stay there.
  EXPECT_EQ(After(eight, 4, 8).threads, 4);
}

TEST(ChooseThreads, TheQuotaBoundsIt) {
  const CpuBounds quota{64, 2};
  EXPECT_EQ(After(quota, 2, 30, 2),
            (ThreadChoice{2, "the quota is 2 processors"}));
  EXPECT_EQ(
      After(quota, 0.5, 30, 1.5),
      (ThreadChoice{1, "others in the cgroup use 1.0 of its 2 processors"}));
  // The machine is full, whatever the quota is.
  EXPECT_EQ(After(quota, 1, 64, 1),
            (ThreadChoice{1, "others use 63.0 of 64 processors"}));
  EXPECT_EQ(After({64, 0.5}, 0.5, 1, 0.5),
            (ThreadChoice{1, "the quota is 0.5 processors"}));
}

TEST(ChooseThreads, WithoutReadingsItTakesWhatItMayUse) {
  CpuReading before;
  before.at = absl::UnixEpoch();
  CpuReading now = before;
  now.at += kSpan;
  EXPECT_EQ(ChooseThreads({4, 0}, before, now),
            (ThreadChoice{4, "what others use cannot be read"}));
  EXPECT_EQ(ChooseThreads({4, 1.5}, before, now).threads, 2);
}

// A clock and counters that the test sets.
struct Machine {
  absl::Time now = absl::UnixEpoch();
  absl::Duration all;
  int reads = 0;

  TrainingThreads Threads(int set) {
    return TrainingThreads(
        set, CpuBounds{2, 0},
        [this] {
          ++reads;
          return CpuReading{now, absl::ZeroDuration(), all, std::nullopt};
        },
        [this] { return now; });
  }
  void Pass(absl::Duration span, double others) {
    now += span;
    all += others * span;
  }
};

TEST(TrainingThreads, AreLookedAtAgainAfterEverLongerTimesUpToAMinute) {
  Machine machine;
  TrainingThreads threads = machine.Threads(0);
  EXPECT_EQ(threads.choice(),
            (ThreadChoice{1, "what others use is not known yet"}));
  EXPECT_EQ(threads.Now(), 1);
  EXPECT_EQ(machine.reads, 1);
  machine.Pass(absl::Seconds(1), 0);
  EXPECT_EQ(threads.Now(), 2);
  // 2, 4, 8, 16, 32 seconds, and then a minute each time.
  for (const int seconds : {2, 4, 8, 16, 32, 60, 60}) {
    const int before = machine.reads;
    machine.Pass(absl::Seconds(seconds) - absl::Milliseconds(1), 1);
    EXPECT_EQ(threads.Now(), seconds == 2 ? 2 : 1) << seconds;
    EXPECT_EQ(machine.reads, before) << seconds;
    machine.Pass(absl::Milliseconds(1), 1);
    EXPECT_EQ(threads.Now(), 1) << seconds;
    EXPECT_EQ(machine.reads, before + 1) << seconds;
  }
  EXPECT_EQ(threads.choice().reason, "others use 1.0 of 2 processors");
  machine.Pass(absl::Minutes(1), 0);
  EXPECT_EQ(threads.Now(), 2);
}

TEST(TrainingThreads, OfTheSettingsStay) {
  Machine machine;
  TrainingThreads threads = machine.Threads(3);
  machine.Pass(absl::Hours(1), 2);
  EXPECT_EQ(threads.Now(), 3);
  EXPECT_EQ(threads.choice(), (ThreadChoice{3, "compute.threads"}));
  EXPECT_EQ(machine.reads, 0);
}

class CpuReadings : public ::testing::Test {
 protected:
  CpuReadings() : root_(::testing::TempDir() + "cpu_readings/") {
    std::filesystem::remove_all(root_);
  }
  ~CpuReadings() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const std::string root_;
};

TEST_F(CpuReadings, CountWhatIsNotIdleOnTheOwnProcessors) {
  // user nice system idle iowait irq softirq steal guest guest_nice, in
  // hundredths of a second.
  Write("proc/stat",
        "cpu  9 9 9 9 9 9 9 9 9 9\n"
        "cpu0 100 20 30 5000 600 1 2 3 50 0\n"
        "cpu1 9000 0 0 0 0 0 0 0 0 0\n"
        "cpu2 1000 0 0 7 0 0 0 0 0 0\n"
        "intr 5\n");
  CpuQuota quota;
  quota.processors = {0, 2};
  const CpuReading reading = ReadCpu(quota, root_);
  EXPECT_EQ(reading.all, absl::Milliseconds(11'560));
  EXPECT_EQ(reading.group, std::nullopt);
  EXPECT_GT(reading.own, absl::ZeroDuration());
  quota.processors = {7};
  EXPECT_EQ(ReadCpu(quota, root_).all, std::nullopt);
  quota.processors = {0};
  EXPECT_EQ(ReadCpu(quota, root_ + "nowhere/").all, std::nullopt);
}

TEST_F(CpuReadings, CountTheGroupWhoseQuotaBounds) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  Write("sys/fs/cgroup/a/cpu.stat",
        "usage_usec 2500000\nuser_usec 7\nsystem_usec 8\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  const CpuQuota quota = FindCpuQuota(root_);
  EXPECT_EQ(quota.limit, 1.5);
  EXPECT_EQ(ReadCpu(quota, root_).group, absl::Milliseconds(2500));
}

TEST_F(CpuReadings, CountTheGroupInVersion1Too) {
  Write("proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n");
  Write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "50000\n");
  Write("sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
  Write("sys/fs/cgroup/cpu/docker/x/cpuacct.usage", "1500000000\n");
  const CpuQuota quota = FindCpuQuota(root_);
  EXPECT_EQ(quota.limit, 0.5);
  EXPECT_EQ(quota.count(), 1);
  EXPECT_EQ(ReadCpu(quota, root_).group, absl::Milliseconds(1500));
}

}  // namespace
}  // namespace dfl::app
