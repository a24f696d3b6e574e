// The wall clock is set by an hour while the daemon runs: libfaketime stands
// between it and the system's clock. No timer may be late by more than a
// second.
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

constexpr char kPair[] =
    "run: pair\nseed: 5\nversion: 1\nmembers: [a, b]\n"
    "model: {kind: logistic, classes: 3}\n"
    "algorithm: {name: d-psgd, knobs: {eta: 0.05}}\n"
    "topology: {kind: complete}\nbatch_size: 8\n"
    "deadline: {exchange: 300ms}\n";

// "" where it is not installed.
std::string FakeTimeLibrary() {
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
        "/usr/lib/arm-linux-gnueabihf", "/usr/lib64", "/usr/lib"}) {
    const std::string path =
        absl::StrCat(folder, "/faketime/libfaketimeMT.so.1");
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

class Clocks : public testing::Test {
 protected:
  void SetUp() override {
    if (FakeTimeLibrary().empty()) {
      GTEST_SKIP() << "install faketime to run this test";
    }
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    Shift("+0");
  }

  // From here on the wall clock of the daemons is the true one and this.
  void Shift(const std::string& by) const {
    WriteFile(folder_.File("shift.new"), by + "\n");
    std::filesystem::rename(folder_.File("shift.new"), folder_.File("shift"));
  }

  DaemonProcess::Options Node(const std::string& name) const {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    options.environment = {{"LD_PRELOAD", FakeTimeLibrary()},
                           {"FAKETIME_TIMESTAMP_FILE", folder_.File("shift")},
                           {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
                           {"FAKETIME_NO_CACHE", "1"}};
    return options;
  }

  static bool Start(DaemonProcess& daemon) {
    return daemon.client().ApplyPlan({kPair, std::nullopt, false}).ok() &&
           daemon.client().Train(client::TrainAction::kStart).ok();
  }
  // Whether it takes `steps` more steps in that time.
  static bool Goes(DaemonProcess& daemon, int64_t steps, absl::Duration limit) {
    const int64_t from = daemon.Status().step;
    return daemon.StatusBecomes(limit, [&](const client::NodeStatus& status) {
      return status.step >= from + steps;
    });
  }

  TemporaryFolder folder_;
};

TEST_F(Clocks, AWallClockThatIsSetMakesNoTimerLate) {
  DaemonProcess a(Node("a"));
  ASSERT_TRUE(a.Start()) << a.log();
  DaemonProcess::Options dialling = Node("b");
  dialling.peers = {a.peer_address()};
  DaemonProcess b(dialling);
  ASSERT_TRUE(b.Start()) << b.log();
  ASSERT_TRUE(Start(a) && Start(b));
  ASSERT_TRUE(Goes(a, 5, absl::Seconds(20))) << a.log();

  // Alone, a moves only when its deadlines pass: nobody wakes its loop.
  b.process().Signal(SIGSTOP);
  ASSERT_TRUE(Goes(a, 3, absl::Seconds(20))) << a.log();
  for (const char* by : {"+1h", "-1h", "+0"}) {
    SCOPED_TRACE(by);
    Shift(by);
    // Six deadlines, and a second that they may be late by in all.
    EXPECT_TRUE(Goes(a, 5, absl::Milliseconds(6 * 300 + 1000))) << a.log();
  }
  // What is new comes about in time as well: a link, and the end.
  Shift("-1h");
  b.process().Signal(SIGCONT);
  EXPECT_TRUE(b.StatusBecomes(absl::Seconds(20),
                              [](const client::NodeStatus& status) {
                                return !status.peers.empty() &&
                                       status.peers[0].linked;
                              }))
      << b.log();
  const auto end = a.Stop();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 0) << a.log();
}

TEST_F(Clocks, EventsSayTheWallClock) {
  DaemonProcess::Options options = Node("a");
  options.extra_flags = {"--log.format=json"};
  DaemonProcess a(options);
  ASSERT_TRUE(a.Start()) << a.log();
  Shift("+5000d");
  ASSERT_TRUE(a.client().Train(client::TrainAction::kStart).status().code() ==
              absl::StatusCode::kFailedPrecondition);
  const std::string year =
      absl::FormatTime("\"time\":\"%Y", absl::Now() + absl::Hours(24) * 5000,
                       absl::UTCTimeZone());
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return a.log().find(year) != std::string::npos;
  })) << a.log();
}

}  // namespace
}  // namespace dfl::testing_support
