// How a daemon starts, stops, is killed and comes back; what it says when it
// cannot start; and what it does without its peers or its disk.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "dfl/storage/v1/storage.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kAlone[] =
    "run: alone\nseed: 5\nmembers: [a]\n"
    "model: {kind: logistic, classes: 3}\n"
    "algorithm: {name: local}\nbatch_size: 8\n";
constexpr char kPair[] =
    "run: pair\nseed: 5\nversion: 1\nmembers: [a, b]\n"
    "model: {kind: logistic, classes: 3}\n"
    "algorithm: {name: pame, knobs: {nu: 1, p: 0.5, kappa: [2, 4]}}\n"
    "topology: {kind: complete}\nbatch_size: 8\n"
    "deadline: {exchange: 200ms}\n";

class Lifecycle : public testing::Test {
 protected:
  void SetUp() override { WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1); }

  DaemonProcess::Options Node(const std::string& name) const {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    return options;
  }

  // dfld with the settings that node `name` was started with.
  Outcome RunAgain(const std::string& name, std::vector<std::string> flags) {
    std::vector<std::string> command = {Program("dfld"), "--config",
                                        folder_.File(name + ".yaml")};
    command.insert(command.end(), flags.begin(), flags.end());
    return RunCommand(command, {{"OPENBLAS_NUM_THREADS", "1"}},
                      absl::Seconds(30));
  }

  static Outcome Dflctl(const DaemonProcess& daemon,
                        std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), Program("dflctl"));
    arguments.insert(arguments.end(), {"--target", daemon.target()});
    return RunCommand(arguments, {}, absl::Seconds(30));
  }

  static absl::Status Apply(DaemonProcess& daemon, const std::string& plan) {
    return daemon.client().ApplyPlan({plan, std::nullopt, false}).status();
  }
  static absl::Status Start(DaemonProcess& daemon) {
    return daemon.client().Train(client::TrainAction::kStart).status();
  }

  static bool Reaches(DaemonProcess& daemon, int64_t step) {
    return daemon.StatusBecomes(absl::Seconds(20),
                                [step](const client::NodeStatus& status) {
                                  return status.step >= step;
                                });
  }
  static bool Enters(DaemonProcess& daemon, client::Phase phase) {
    return daemon.StatusBecomes(absl::Seconds(20),
                                [phase](const client::NodeStatus& status) {
                                  return status.phase == phase;
                                });
  }

  static bool Exists(const std::string& path) {
    return std::filesystem::exists(path);
  }

  TemporaryFolder folder_;
};

// --------------------------------------------------------------- stopping ----

struct StopCase {
  std::string name;
  int signal;
  client::Phase phase;
};

class Stopping : public Lifecycle,
                 public testing::WithParamInterface<StopCase> {};

TEST_P(Stopping, IsCleanAndWithinTenSeconds) {
  const StopCase& c = GetParam();
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  const std::string ready_file = folder_.File("a.1.ready");
  const auto ready = nlohmann::json::parse(ReadFile(ready_file));
  EXPECT_EQ(ready.at("node"), "a");
  EXPECT_EQ(ready.at("pid"), daemon.process().pid());
  EXPECT_EQ(ready.at("peer").at(0), daemon.peer_address());
  EXPECT_EQ(ready.at("control").at(0), daemon.target());
  if (c.phase != client::Phase::kIdle) {
    // Alone among two it joins for a while before it starts fresh.
    ASSERT_TRUE(
        Apply(daemon, c.phase == client::Phase::kJoining ? kPair : kAlone)
            .ok());
    ASSERT_TRUE(Start(daemon).ok());
  }
  ASSERT_TRUE(Enters(daemon, c.phase)) << daemon.log();
  if (c.phase == client::Phase::kTraining) {
    ASSERT_TRUE(Reaches(daemon, 10));
  }
  daemon.process().Signal(c.signal);
  const auto ended = daemon.process().Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value()) << daemon.log();
  EXPECT_EQ(ended->code, 0) << daemon.log();
  EXPECT_THAT(daemon.log(),
              HasSubstr(c.signal == SIGTERM ? "shutdown: SIGTERM"
                                            : "shutdown: SIGINT"));
  EXPECT_FALSE(Exists(ready_file));
  EXPECT_FALSE(Exists(folder_.File("a.sock")));
  EXPECT_EQ(ReadFile(folder_.File("a.1.out")), "");
}

INSTANTIATE_TEST_SUITE_P(
    Table, Stopping,
    testing::Values(
        StopCase{"SigtermIdle", SIGTERM, client::Phase::kIdle},
        StopCase{"SigtermTraining", SIGTERM, client::Phase::kTraining},
        StopCase{"SigtermJoining", SIGTERM, client::Phase::kJoining},
        StopCase{"SigintTraining", SIGINT, client::Phase::kTraining}),
    [](const auto& info) { return info.param.name; });

// A gradient that does not come back keeps nobody waiting.
class StuckGradient : public Lifecycle {
 protected:
  void StartStuck(DaemonProcess& daemon) {
    const Outcome made =
        RunCommand({Program("make_torchscript"), folder_.File("net.pt"), "4",
                    "3", "endless"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    ASSERT_TRUE(daemon.Start()) << daemon.log();
    const absl::Status applied = Apply(
        daemon, absl::StrCat("members: [a]\nalgorithm: {name: local}\n"
                             "model: {kind: torchscript, classes: 3, path: \"",
                             folder_.File("net.pt"), "\"}\n"));
    ASSERT_TRUE(applied.ok()) << applied;
    ASSERT_TRUE(Start(daemon).ok());
    ASSERT_TRUE(Enters(daemon, client::Phase::kTraining)) << daemon.log();
    daemon.process().Signal(SIGTERM);
    ASSERT_TRUE(Eventually(absl::Seconds(5), [&] {
      return daemon.log().find("shutdown: SIGTERM") != std::string::npos;
    }));
  }
};

TEST_F(StuckGradient, DoesNotOutlastTheShutdown) {
  DaemonProcess daemon(Node("a"));
  ASSERT_NO_FATAL_FAILURE(StartStuck(daemon));
  const auto ended = daemon.process().Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value()) << daemon.log();
  EXPECT_EQ(ended->code, 1) << daemon.log();
  EXPECT_THAT(daemon.log(),
              HasSubstr("while waiting for the node: a gradient, an evaluation "
                        "or an export under way: ending at once"));
}

TEST_F(StuckGradient, EndsAtOnceAtTheSecondSignal) {
  DaemonProcess daemon(Node("a"));
  ASSERT_NO_FATAL_FAILURE(StartStuck(daemon));
  daemon.process().Signal(SIGINT);
  const auto ended = daemon.process().Wait(absl::Seconds(2));
  ASSERT_TRUE(ended.has_value()) << daemon.log();
  EXPECT_EQ(ended->code, 1) << daemon.log();
  EXPECT_THAT(daemon.log(),
              ContainsRegex("second signal while waiting .*: ending at once"));
}

TEST_F(Lifecycle, HangupIsNoReasonToEnd) {
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  daemon.process().Signal(SIGHUP);
  EXPECT_EQ(daemon.Status().phase, client::Phase::kIdle);
  EXPECT_EQ(daemon.Stop()->code, 0);
}

// ------------------------------------------------------- what is taken ----

class Taken : public Lifecycle {
 protected:
  void SetUp() override {
    Lifecycle::SetUp();
    first_ = std::make_unique<DaemonProcess>(Node("a"));
    ASSERT_TRUE(first_->Start()) << first_->log();
  }
  void TearDown() override {
    // The one that was there first is unharmed.
    EXPECT_EQ(first_->Status().phase, client::Phase::kIdle);
    EXPECT_EQ(first_->Stop()->code, 0);
  }
  // Flags that give a second daemon its own of everything but `shared`.
  std::vector<std::string> OwnAllBut(const std::string& shared) const {
    std::map<std::string, std::string> own = {
        {"state_dir", folder_.File("b.state")},
        {"peer.listen", "127.0.0.1:0"},
        {"control.socket", folder_.File("b.sock")}};
    own.erase(shared);
    std::vector<std::string> flags;
    for (const auto& [key, value] : own) {
      flags.push_back(absl::StrCat("--", key, "=", value));
    }
    return flags;
  }

  std::unique_ptr<DaemonProcess> first_;
};

TEST_F(Taken, StateFolderNamesWhoHoldsIt) {
  const Outcome second = RunAgain("a", OwnAllBut("state_dir"));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(folder_.File("a.state")));
  EXPECT_THAT(second.err,
              HasSubstr(absl::StrCat("in use by another dfld (pid ",
                                     first_->process().pid(), ")")));
  EXPECT_THAT(second.err, HasSubstr("state_dir of its own"));
}

TEST_F(Taken, PeerPortIsNamed) {
  std::vector<std::string> flags = OwnAllBut("peer.listen");
  flags.push_back("--peer.listen=" + first_->peer_address());
  const Outcome second = RunAgain("a", flags);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(first_->peer_address()));
  EXPECT_THAT(second.err, HasSubstr("in use"));
}

// A wrong plan ends it before it tries a port, even one that is taken.
TEST_F(Taken, PortIsNotTriedWithAWrongPlan) {
  WriteFile(folder_.File("wrong.yaml"), "membres: [a]\n");
  std::vector<std::string> flags = OwnAllBut("peer.listen");
  flags.push_back("--peer.listen=" + first_->peer_address());
  flags.push_back("--run.plan=" + folder_.File("wrong.yaml"));
  const Outcome second = RunAgain("a", flags);
  EXPECT_EQ(second.exit_code, 78);
  EXPECT_THAT(second.err, HasSubstr("run.plan: "));
}

TEST_F(Taken, ControlSocketIsNamed) {
  const Outcome second = RunAgain("a", OwnAllBut("control.socket"));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(folder_.File("a.sock")));
  EXPECT_THAT(second.err, HasSubstr("address in use"));
}

TEST_F(Taken, ControlPortIsNamed) {
  std::vector<std::string> flags = OwnAllBut("");
  flags.push_back("--control.listen=" + first_->peer_address());
  const Outcome second = RunAgain("a", flags);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(first_->peer_address()));
  EXPECT_THAT(second.err, HasSubstr("in use"));
}

TEST_F(Lifecycle, FileInPlaceOfTheSocketIsLeftAlone) {
  WriteFile(folder_.File("a.sock"), "somebody's");
  DaemonProcess daemon(Node("a"));
  EXPECT_FALSE(daemon.Start());
  const auto ended = daemon.process().Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 1);
  EXPECT_THAT(daemon.log(), HasSubstr(folder_.File("a.sock")));
  EXPECT_THAT(daemon.log(), HasSubstr("no socket"));
  EXPECT_EQ(ReadFile(folder_.File("a.sock")), "somebody's");
}

// --------------------------------------------------------------- security ----

TEST_F(Lifecycle, InsecureIsWarnedOfAndShown) {
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_THAT(daemon.log(), HasSubstr("security is off"));
  const auto status = daemon.client().Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_TRUE(status->insecure);
  EXPECT_THAT(status->warnings, Not(IsEmpty()));
  const Outcome table = Dflctl(daemon, {"status"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("a "));
  EXPECT_THAT(table.err, HasSubstr("plain text"));
  const Outcome json = Dflctl(daemon, {"status", "-o", "json"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("targets").at(0).at("status").at(
                "insecure"),
            true);
}

TEST_F(Lifecycle, WithoutANetworkSecurityMayStaySet) {
  WriteFile(folder_.File("plan.yaml"), kAlone);
  WriteFile(folder_.File("a.yaml"),
            absl::StrCat("name: a\nstate_dir: ", folder_.File("a.state"),
                         "\nsecurity: tls\npeer: {listen: []}\n"
                         "control: {socket: ",
                         folder_.File("a.sock"),
                         "}\ncompute: {threads: 1}\n"
                         "data: {format: csv, header: no, label_column: -1, "
                         "classes: 3, train: {paths: [",
                         folder_.File("train.csv"), "]}}\nrun: {plan: ",
                         folder_.File("plan.yaml"), ", autostart: on}\n"));
  Process::Options start;
  start.command = {Program("dfld"), "--config", folder_.File("a.yaml")};
  start.stderr_file = folder_.File("log");
  Process process(start);
  {
    DaemonProcess client_only(Node("a"));
    EXPECT_TRUE(Reaches(client_only, 5)) << ReadFile(start.stderr_file);
    EXPECT_FALSE(client_only.client().Status()->insecure);
  }
  process.Signal(SIGTERM);
  const auto ended = process.Wait(absl::Seconds(10));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->code, 0);
  EXPECT_THAT(ReadFile(start.stderr_file), Not(HasSubstr("insecure")));
}

// ------------------------------------------------------ death and return ----

TEST_F(Lifecycle, KilledItGoesOnWithItsPlan) {
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  ASSERT_TRUE(Apply(daemon, kAlone).ok());
  ASSERT_TRUE(Start(daemon).ok());
  ASSERT_TRUE(Reaches(daemon, 20));
  const client::NodeStatus before = daemon.Status();
  daemon.Kill();
  // What the kill left behind is in nobody's way.
  ASSERT_TRUE(Exists(folder_.File("a.sock")));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_TRUE(Reaches(daemon, 20)) << daemon.log();
  const client::NodeStatus after = daemon.Status();
  EXPECT_EQ(after.run_id, "alone");
  EXPECT_EQ(after.plan_version, before.plan_version);
  EXPECT_EQ(after.contract, before.contract);
  EXPECT_NE(after.incarnation, before.incarnation);
  EXPECT_EQ(daemon.Stop()->code, 0);
}

// What was answered to is on disk.
TEST_F(Lifecycle, KilledRightAfterAnOrderItKeepsIt) {
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  ASSERT_TRUE(Apply(daemon, kAlone).ok());
  ASSERT_TRUE(Start(daemon).ok());
  daemon.Kill();
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_TRUE(Enters(daemon, client::Phase::kTraining)) << daemon.log();
  ASSERT_TRUE(daemon.client().Train(client::TrainAction::kStop).ok());
  daemon.Kill();
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_THAT(daemon.Status().phase,
              AnyOf(client::Phase::kIdle, client::Phase::kStopped));
}

// A pause outlives the daemon too.
TEST_F(Lifecycle, StoppedByHandItStaysStopped) {
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  ASSERT_TRUE(Apply(daemon, kAlone).ok());
  ASSERT_TRUE(Start(daemon).ok());
  ASSERT_TRUE(Reaches(daemon, 5));
  ASSERT_TRUE(daemon.client().Train(client::TrainAction::kStop).ok());
  ASSERT_TRUE(Enters(daemon, client::Phase::kStopped));
  const int64_t step = daemon.Status().step;
  ASSERT_EQ(daemon.Stop()->code, 0);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_EQ(daemon.Status().phase, client::Phase::kStopped);
  EXPECT_EQ(daemon.Status().step, step) << "with its model";
  EXPECT_EQ(daemon.Status().plan_version, 1);
}

class TornState : public Lifecycle {
 protected:
  // A node that held plan version 1, then 2, and ended.
  void MakeState() {
    DaemonProcess daemon(Node("a"));
    ASSERT_TRUE(daemon.Start()) << daemon.log();
    ASSERT_TRUE(Apply(daemon, kAlone).ok());
    ASSERT_TRUE(Apply(daemon, absl::StrCat(kAlone, "stop: {steps: 7}\n")).ok());
    ASSERT_EQ(daemon.client().Plan()->version, 2);
    ASSERT_EQ(daemon.Stop()->code, 0);
  }
  std::string Slot(int i) const {
    return folder_.File(absl::StrCat("a.state/node_state.", i));
  }
  // By what is in them: both may be written within a tick of the file system's
  // clock.
  int Newest() const { return Generation(0) > Generation(1) ? 0 : 1; }
  uint64_t Generation(int i) const {
    std::ifstream in(Slot(i), std::ios::binary);
    storage::v1::NodeStateFile file;
    storage::v1::NodeState state;
    EXPECT_TRUE(file.ParseFromIstream(&in) &&
                state.ParseFromString(file.state()))
        << Slot(i);
    return state.generation();
  }
  static void Tear(const std::string& path) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  }
};

TEST_F(TornState, FallsBackToTheGenerationBeforeAndSaysSo) {
  MakeState();
  const int torn = Newest();
  Tear(Slot(torn));
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_THAT(daemon.log(), HasSubstr(absl::StrCat("node_state.", torn)));
  EXPECT_THAT(daemon.log(), HasSubstr("the other generation"));
  EXPECT_THAT(daemon.log(), HasSubstr("is used instead"));
  // There it was version 1; the network's records know of the newer one.
  EXPECT_THAT(daemon.log(), HasSubstr("plan version 1"));
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return daemon.client().Plan()->version == 2;
  })) << daemon.log();
  // What it saves now is whole again.
  ASSERT_EQ(daemon.Stop()->code, 0);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_THAT(daemon.log(), Not(HasSubstr("node_state")));
  EXPECT_EQ(daemon.client().Plan()->version, 2);
}

// A directory where the next generation is to be written: the write fails, as
// on a full disk.
TEST_F(TornState, AStateThatCannotBeWrittenKeepsNobodyFromItsRun) {
  {
    DaemonProcess daemon(Node("a"));
    ASSERT_TRUE(daemon.Start()) << daemon.log();
    ASSERT_TRUE(Apply(daemon, kAlone).ok());
    ASSERT_TRUE(daemon.client().Train(client::TrainAction::kStart).ok());
    ASSERT_TRUE(Enters(daemon, client::Phase::kTraining));
    ASSERT_EQ(daemon.Stop()->code, 0);
  }
  const std::string next = Slot(1 - Newest());
  std::filesystem::remove(next);
  std::filesystem::create_directories(next + "/in-the-way");
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  EXPECT_TRUE(Enters(daemon, client::Phase::kTraining)) << daemon.log();
  EXPECT_EQ(daemon.Status().plan_version, 1);
  EXPECT_THAT(daemon.log(), HasSubstr("the state is not written"));
}

TEST_F(TornState, NeitherGenerationWholeIsRefused) {
  MakeState();
  Tear(Slot(0));
  Tear(Slot(1));
  const Outcome outcome = RunAgain("a", {});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err, HasSubstr("node_state.0"));
  EXPECT_THAT(outcome.err, HasSubstr("node_state.1"));
  EXPECT_THAT(outcome.err, HasSubstr(folder_.File("a.state")));
  EXPECT_THAT(outcome.err, HasSubstr("Remove both to start as new"));
}

// ------------------------------------------------------------------- disk ----

TEST_F(Lifecycle, StateFolderBelowAFileIsNamed) {
  WriteFile(folder_.File("file"), "");
  DaemonProcess::Options options = Node("a");
  options.extra_flags = {"--state_dir=" + folder_.File("file/state")};
  DaemonProcess daemon(options);
  EXPECT_FALSE(daemon.Start());
  EXPECT_EQ(daemon.process().Wait(absl::Seconds(10))->code, 1);
  EXPECT_THAT(daemon.log(), HasSubstr(folder_.File("file")));
  EXPECT_THAT(daemon.log(), HasSubstr("Not a directory"));
}

// Mounts of its own, for which it takes root.
class Disk : public Lifecycle {
 protected:
  void SetUp() override {
    Lifecycle::SetUp();
    std::filesystem::create_directory(folder_.File("a.state"));
    const Outcome possible = RunCommand(Mounting("size=4k", {"true"}));
    if (possible.exit_code != 0) {
      GTEST_SKIP() << "needs root and mount namespaces: " << possible.err;
    }
  }
  // `command` with a tmpfs on the state folder that only it sees.
  std::vector<std::string> Mounting(const std::string& options,
                                    const std::vector<std::string>& command) {
    std::vector<std::string> all = {
        "unshare",
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs -o \"$1\" none \"$2\" && shift 2 && exec \"$@\"",
        "sh",
        options,
        folder_.File("a.state")};
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
};

TEST_F(Disk, ReadOnlyStateFolderIsNamed) {
  DaemonProcess::Options options = Node("a");
  options.wrapper = Mounting("ro", {});
  DaemonProcess daemon(options);
  EXPECT_FALSE(daemon.Start());
  EXPECT_EQ(daemon.process().Wait(absl::Seconds(10))->code, 1);
  EXPECT_THAT(daemon.log(), HasSubstr(folder_.File("a.state/lock")));
  EXPECT_THAT(daemon.log(), HasSubstr("Read-only file system"));
}

TEST_F(Disk, FullFromTheStartIsRefused) {
  DaemonProcess::Options options = Node("a");
  options.wrapper = Mounting("size=4k", {});  // room for the lock alone
  DaemonProcess daemon(options);
  EXPECT_FALSE(daemon.Start());
  EXPECT_EQ(daemon.process().Wait(absl::Seconds(10))->code, 1);
  EXPECT_THAT(daemon.log(), HasSubstr(folder_.File("a.state/node_state")));
  EXPECT_THAT(daemon.log(), HasSubstr("No space left on device"));
}

TEST_F(Disk, FullLaterRefusesThePlanAndGoesOn) {
  DaemonProcess::Options options = Node("a");
  // The lock, two generations, the audit log, the records and the first plan;
  // the third generation must stand beside them first.
  options.wrapper = Mounting("size=24k", {});
  DaemonProcess daemon(options);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  ASSERT_TRUE(Apply(daemon, kAlone).ok()) << daemon.log();
  const absl::Status full =
      Apply(daemon, absl::StrCat(kAlone, "stop: {steps: 7}\n"));
  EXPECT_FALSE(full.ok());
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("No space left on device"));
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("what was there before is kept"));
  const absl::Status peer = daemon.client().AddPeer("box-2:7000").status();
  EXPECT_THAT(std::string(peer.message()), HasSubstr("so it is not added"));
  EXPECT_TRUE(daemon.client().Peers()->addresses.empty());
  // It still holds and trains what it had.
  EXPECT_EQ(daemon.client().Plan()->version, 1);
  const absl::Status started = Start(daemon);
  EXPECT_EQ(started.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(started.message()), HasSubstr("after a restart"));
  EXPECT_TRUE(Reaches(daemon, 20)) << daemon.log();
  EXPECT_EQ(daemon.Stop()->code, 0);
  EXPECT_THAT(daemon.log(), HasSubstr("store: "));
}

// ----------------------------------------------------------- small things ----

TEST_F(Lifecycle, HelpVersionAndCheckGoToStdout) {
  const Outcome help = RunCommand({Program("dfld"), "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Usage: dfld"));
  EXPECT_THAT(help.out, HasSubstr("--control.socket"));
  EXPECT_THAT(help.out, HasSubstr("78 configuration"));
  EXPECT_THAT(help.out, HasSubstr("\nExample: dfld --config "));
  EXPECT_EQ(help.err, "");
  const Outcome version = RunCommand({Program("dfld"), "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("dfld [0-9.]+\n"));
  EXPECT_EQ(version.err, "");
  const Outcome ctl = RunCommand({Program("dflctl"), "--help"});
  EXPECT_EQ(ctl.exit_code, 0);
  EXPECT_THAT(ctl.out, HasSubstr("Exit codes:"));
  EXPECT_EQ(ctl.err, "");

  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  // Beside a running daemon: a check touches nothing of it.
  const Outcome check = RunAgain("a", {"--check"});
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_THAT(check.out, HasSubstr("training: "));
  EXPECT_THAT(check.out, HasSubstr("classes:  "));
  EXPECT_THAT(check.out, testing::EndsWith("the configuration is valid\n"));
  EXPECT_EQ(check.err, "");
  EXPECT_EQ(daemon.Status().phase, client::Phase::kIdle);
  const Outcome both = Dflctl(daemon, {"version", "-o", "json"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_FALSE(nlohmann::json::parse(both.out).is_null());
}

TEST_F(Lifecycle, ReadyFileThatCannotBeWrittenIsSaid) {
  DaemonProcess daemon(Node("a"));
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  ASSERT_EQ(daemon.Stop()->code, 0);
  const Outcome outcome =
      RunAgain("a", {"--ready-file", folder_.File("absent/ready")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(folder_.File("absent/ready")));
  EXPECT_THAT(outcome.err, HasSubstr("No such file or directory"));
}

TEST_F(Lifecycle, JsonLogIsAnObjectALine) {
  DaemonProcess::Options options = Node("a");
  options.extra_flags = {"--log.format=json", "--log.level=debug"};
  options.peers = {"127.0.0.1:1"};  // nobody: something to complain about
  DaemonProcess daemon(options);
  ASSERT_TRUE(daemon.Start()) << daemon.log();
  ASSERT_TRUE(Apply(daemon, kAlone).ok());
  ASSERT_TRUE(Start(daemon).ok());
  ASSERT_TRUE(Reaches(daemon, 5));
  ASSERT_EQ(daemon.Stop()->code, 0);
  const std::string log = daemon.log();
  std::map<std::string, int> seen;
  for (const absl::string_view line :
       absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    const auto parsed =
        nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << line;
    for (const char* key : {"time", "level", "node", "event", "message"}) {
      EXPECT_TRUE(parsed.contains(key)) << key << " in " << line;
    }
    EXPECT_EQ(parsed.at("node"), "a");
    ++seen[parsed.at("event").get<std::string>()];
  }
  for (const char* event : {"security", "listening", "plan-applied", "phase",
                            "audit", "shutdown"}) {
    EXPECT_EQ(seen.count(event), 1) << event << " in\n" << log;
  }
}

// ------------------------------------------------------------------ peers ----

TEST_F(Lifecycle, WithoutItsPeersItTrainsAloneAndJoinsTheFirstThatComes) {
  DaemonProcess b(Node("b"));
  ASSERT_TRUE(b.Start()) << b.log();
  DaemonProcess::Options options = Node("a");
  options.peers = {b.peer_address()};
  ASSERT_EQ(b.Stop()->code, 0);  // its port is known now

  DaemonProcess a(options);
  ASSERT_TRUE(a.Start()) << a.log();
  ASSERT_TRUE(Apply(a, kPair).ok());
  ASSERT_TRUE(Start(a).ok());
  EXPECT_TRUE(Reaches(a, 50)) << a.log();

  ASSERT_TRUE(b.Start()) << b.log();
  const auto linked = [](const client::NodeStatus& status) {
    return status.peers.size() == 1 && status.peers[0].linked;
  };
  EXPECT_TRUE(a.StatusBecomes(absl::Seconds(20), linked)) << a.log();
  ASSERT_TRUE(Apply(b, kPair).ok());
  ASSERT_TRUE(Start(b).ok());
  const int64_t now = a.Status().step;
  EXPECT_TRUE(Reaches(b, now)) << b.log();
  EXPECT_THAT(b.log(), HasSubstr("took the model of"));
  const auto exchanges = [](const client::NodeStatus& status) {
    return status.models_received > 0;
  };
  EXPECT_TRUE(a.StatusBecomes(absl::Seconds(10), exchanges)) << a.log();
  EXPECT_TRUE(b.StatusBecomes(absl::Seconds(10), exchanges)) << b.log();
  EXPECT_EQ(a.Stop()->code, 0);
  EXPECT_EQ(b.Stop()->code, 0);
}

TEST_F(Lifecycle, PeersAreReachedByNameAndByIpv6) {
  DaemonProcess a(Node("a"));
  ASSERT_TRUE(a.Start()) << a.log();
  const std::string port =
      a.peer_address().substr(a.peer_address().rfind(':') + 1);
  DaemonProcess::Options by_name = Node("b");
  by_name.peers = {"localhost:" + port};
  DaemonProcess b(by_name);
  ASSERT_TRUE(b.Start()) << b.log();
  const auto links = [](int count) {
    return [count](const client::NodeStatus& status) {
      int linked = 0;
      for (const auto& peer : status.peers) linked += peer.linked ? 1 : 0;
      return linked == count;
    };
  };
  EXPECT_TRUE(a.StatusBecomes(absl::Seconds(20), links(1))) << a.log();
  EXPECT_TRUE(b.StatusBecomes(absl::Seconds(20), links(1))) << b.log();

  if (ReadFile("/proc/net/if_inet6").empty()) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  DaemonProcess::Options six = Node("c");
  six.extra_flags = {"--peer.listen=[::1]:0"};
  DaemonProcess c(six);
  ASSERT_TRUE(c.Start()) << c.log();
  EXPECT_THAT(c.peer_address(), testing::StartsWith("[::1]:"));
  DaemonProcess::Options dials_six = Node("d");
  dials_six.peers = {c.peer_address()};
  DaemonProcess d(dials_six);
  ASSERT_TRUE(d.Start()) << d.log();
  EXPECT_TRUE(c.StatusBecomes(absl::Seconds(20), links(1))) << c.log();
  EXPECT_TRUE(d.StatusBecomes(absl::Seconds(20), links(1))) << d.log();
}

}  // namespace
}  // namespace dfl::testing_support
