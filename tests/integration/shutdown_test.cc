// A daemon that is told to end while it starts, and one that cannot end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::HasSubstr;

constexpr char kScenario[] =
    "run: alone\n"
    "seed: 11\n"
    "members: [a]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: local}\n"
    "batch_size: 10\n"
    "stop: {steps: 10000}\n"
    "network:\n"
    "  problem: {kind: linear, n: 4, rows: 30}\n";

class Shutdown : public testing::Test {
 protected:
  void SetUp() override {
    WriteFile(folder_.File("scenario.yaml"), kScenario);
    ASSERT_EQ(mkfifo(gate_.c_str(), 0600), 0);
  }

  // A daemon that waits at `variable`'s gate when it comes there.
  DaemonProcess::Options Gated(const std::string& variable) const {
    DaemonProcess::Options options;
    options.program = "analytic_dfld";
    options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")},
                           {variable, gate_}};
    options.name = "a";
    options.folder = folder_.path();
    options.train_csv = "unread.csv";
    return options;
  }
  // Whether somebody waits at the gate. It stays shut as long as `fd` is open.
  bool Waits(int& fd) const {
    return Eventually(absl::Seconds(20), [&] {
      fd = open(gate_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return fd >= 0;
    });
  }

  TemporaryFolder folder_;
  const std::string gate_ = folder_.File("gate");
};

class ShutdownBySignal : public Shutdown,
                         public testing::WithParamInterface<int> {};

TEST_P(ShutdownBySignal, ASignalEndsALongStartAtOnce) {
  // As DaemonProcess starts it, but for waiting until it listens.
  WriteFile(folder_.File("a.yaml"),
            "name: a\nsecurity: insecure\npeers: []\nstate_dir: " +
                folder_.File("state") +
                "\npeer: {listen: [\"127.0.0.1:0\"]}\ncontrol: {socket: " +
                folder_.File("s") +
                "}\ndata: {format: csv, train: {paths: [unread.csv]}}\n");
  Process::Options options;
  options.command = {Program("analytic_dfld"), "--config",
                     folder_.File("a.yaml")};
  options.environment = Gated("DFL_START_GATE").environment;
  options.stderr_file = folder_.File("log");
  Process daemon(options);
  int fd = -1;
  ASSERT_TRUE(Waits(fd)) << ReadFile(options.stderr_file);
  daemon.Signal(SIGHUP);  // is no reason to die
  daemon.Signal(GetParam());
  const std::optional<Exit> end = daemon.Wait(absl::Seconds(2));
  close(fd);
  ASSERT_TRUE(end.has_value()) << "it went on starting";
  EXPECT_EQ(end->signal, GetParam());
  EXPECT_THAT(ReadFile(options.stderr_file), HasSubstr("while starting"));
}

INSTANTIATE_TEST_SUITE_P(Of, ShutdownBySignal,
                         testing::Values(SIGTERM, SIGINT));

TEST_F(Shutdown, AnEndThatHangsIsAFailureAndSaysWhatHung) {
  WriteFile(folder_.File("plan.yaml"),
            std::string(kScenario).substr(
                0, std::string(kScenario).find("network:")));
  DaemonProcess::Options options = Gated("DFL_GATE");
  options.extra_yaml =
      "run: {plan: \"" + folder_.File("plan.yaml") + "\", autostart: yes}\n";
  DaemonProcess daemon(options);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  int fd = -1;
  ASSERT_TRUE(Waits(fd)) << daemon.log();
  daemon.process().Signal(SIGTERM);
  const std::optional<Exit> end = daemon.process().Wait(absl::Seconds(20));
  close(fd);
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 1);
  EXPECT_THAT(daemon.log(), HasSubstr("waiting for the node: a gradient"));
}

}  // namespace
}  // namespace dfl::testing_support
