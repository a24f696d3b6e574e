// status, watch, version, peer, model and config, word for word.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/exit_codes.h"
#include "cli/status_table.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(StatusNotes, TellThatMassWasLost) {
  client::DaemonStatus status;
  status.node.node = "box-1";
  status.node.gauges["mass_imbalance"] = 1e-5;
  EXPECT_THAT(StatusNotes(status), IsEmpty());
  status.node.gauges["mass_imbalance"] = 0.25;
  EXPECT_THAT(StatusNotes(status),
              testing::ElementsAre(testing::AllOf(
                  StartsWith("box-1: "), HasSubstr("differ by 0.250"),
                  HasSubstr("mass_imbalance"))));
}

TEST_F(CliTest, StatusIsATableWithARowANode) {
  StartDaemon("box-1");
  control::FakeBackend& second = StartDaemon("gateway-12");
  control::DaemonStatus idle;
  idle.node.node = NodeId("gateway-12");
  second.SetStatus(idle);
  const Result result = Run({"status", "-t", "unix:" + Socket("box-1"), "-t",
                             "unix:" + Socket("gateway-12")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(
      result.out,
      "NODE        PHASE          STEP   ROUND    LOSS  SCORE  ALGORITHM  "
      "TOPOLOGY  PLAN         NEIGHBOURS     SENT  RECEIVED  NETWORK\n"
      "box-1       training  1000/4000  40/160  0.5000  0.750  pame       "
      "ring      2 (3 waits)         0/2  1.23 MB     999 B  plant-4 (364 d)\n"
      "gateway-12  idle              0       0       -      -  -          "
      "-         -                   0/0      0 B       0 B  -\n");
  EXPECT_EQ(result.err,
            "dflctl: warning: box-1: 3 mini-batches gave no gradient and were "
            "passed over\n"
            "dflctl: warning: box-1: 7 models of neighbours were not mixed "
            "with, since they lay too far away\n");
}

TEST_F(CliTest, StatusInJsonHasRawNumbersUnderStableKeys) {
  StartDaemon("box-1");
  const Result result = RunAt("box-1", {"status", "--local", "-o", "json"});
  EXPECT_EQ(result.code, 0) << result.err;
  std::ifstream golden(GOLDEN_DIR "/status.json");
  std::ostringstream expected;
  expected << golden.rdbuf();
  EXPECT_EQ(result.out, expected.str());
  // YAML says the same.
  const Result yaml = RunAt("box-1", {"status", "--local", "-o", "yaml"});
  EXPECT_THAT(yaml.out,
              StartsWith("targets:\n  - target: \"unix:FOLDER/box-1.sock\"\n"
                         "    ok: true\n    status:\n      node: box-1\n"));
  EXPECT_THAT(yaml.out, HasSubstr("\n        kappa:\n          - 5\n"));
}

TEST_F(CliTest, StatusWarnsOfInsecurityOnStderr) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.insecure = true;
  daemon.SetStatus(status);
  const Result result = RunAt("box-1", {"status", "--local"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("warning: box-1 is insecure"));
}

TEST_F(CliTest, StatusWarnsOfAPlanThatMayNeedTooMuch) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).err,
              Not(HasSubstr("memory")));
  status.memory_bytes = status.memory_limit_bytes + 1'000'000;
  daemon.SetStatus(status);
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).err,
              HasSubstr("warning: box-1: its plan may need 9.00 MB of memory, "
                        "more than the 8.00 MB allowed"));
}

TEST_F(CliTest, TextOfANodeCannotSteerTheTerminal) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.algorithm = "\x1b[31mred";
  status.warnings = {"\x1b]0;title"};
  daemon.SetStatus(status);
  const Result result = RunAt("box-1", {"status", "--local"});
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b")));
}

TEST_F(CliTest, StatusShowsPeersWhenAsked) {
  StartDaemon("box-1");
  EXPECT_THAT(
      RunAt("box-1", {"status", "--local", "--peers"}).out,
      AllOf(HasSubstr("Peers of box-1:"), HasSubstr("connection refused"),
            HasSubstr("MIXES  WHY NOT"), HasSubstr("no     it is paused")));
}

TEST_F(CliTest, NeighboursAreThoseWithWhomModelsAreExchanged) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.peers[0].mixing = true;
  status.node.peers[0].not_mixing = "";
  daemon.SetStatus(status);
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).out, HasSubstr("  1/2  "));
}

TEST_F(CliTest, WatchGivesALineAnUpdateAndJsonADocumentALine) {
  StartDaemon("box-1");
  EXPECT_EQ(RunAt("box-1", {"watch", "--count=1"}).out,
            "box-1 training step 1000/4000 round 40/160 loss 0.5000 accuracy "
            "0.7500 plan 2 "
            "(3 waits) neighbours 0/2 sent 1.23 MB received 999 B\n");
  const Result json =
      RunAt("box-1", {"watch", "--count=2", "--interval=100ms", "-o", "json"});
  std::istringstream lines(json.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto update = nlohmann::json::parse(line);
    EXPECT_EQ(update["status"]["step"], 1000);
    EXPECT_TRUE(update["events"].is_array());
  }
  EXPECT_EQ(count, 2);
  EXPECT_EQ(json.code, 0);
}

TEST_F(CliTest, WatchEndsWhenAllHaveFinished) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.phase = ports::Phase::kFinished;
  daemon.SetStatus(status);
  const Result result = RunAt("box-1", {"watch", "--until-finished"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(CliTest, TheExitCodeOfWatchSaysHowTheRunHasEnded) {
  control::FakeBackend& first = StartDaemon("box-1");
  control::FakeBackend& second = StartDaemon("box-2");
  control::DaemonStatus good = control::SampleStatus("box-1");
  good.node.phase = ports::Phase::kFinished;
  first.SetStatus(good);
  const auto watch = [&](const control::DaemonStatus& status) {
    second.SetStatus(status);
    return Run({"watch", "--until-finished", "-t", "unix:" + Socket("box-1"),
                "-t", "unix:" + Socket("box-2")});
  };
  control::DaemonStatus status = control::SampleStatus("box-2");
  status.node.phase = ports::Phase::kFinished;
  status.node.phase_reason = "50 steps are done; learned alone: no model came";
  status.node.alone = "no model came";
  const Result alone = watch(status);
  EXPECT_EQ(alone.code, kLearnedAlone);
  EXPECT_THAT(alone.out, HasSubstr(" ALONE\n"));
  EXPECT_EQ(
      alone.err,
      "dflctl: box-2 finished: 50 steps are done; learned alone: no model "
      "came\n");
  status.node.phase = ports::Phase::kStopped;
  status.node.phase_reason = "stopped by hand";
  EXPECT_EQ(watch(status).code, kStopped);
  status.node.phase = ports::Phase::kFailed;
  status.node.phase_reason = "0 of 50 steps: every gradient fails";
  const Result failed = watch(status);
  EXPECT_EQ(failed.code, kTrainingFailed);
  EXPECT_THAT(failed.err, HasSubstr("box-2 failed: 0 of 50 steps"));
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("10  watch --until-finished"));
}

TEST_F(CliTest, ANodeThatLearnsAloneIsWarnedOf) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.alone = "no model came from its 2 neighbours";
  daemon.SetStatus(status);
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).err,
              HasSubstr("warning: box-1 learns alone: no model came from its 2 "
                        "neighbours"));
  status.node.phase = ports::Phase::kFinished;
  daemon.SetStatus(status);
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).err,
              HasSubstr("warning: box-1 learned alone: "));
}

TEST_F(CliTest, NewDataThatAreNotTakenUpAreWarnedOf) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.data_error = "its new data are not taken up: b.csv: line 3";
  daemon.SetStatus(status);
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).err,
              HasSubstr("warning: box-1: its new data are not taken up: b.csv: "
                        "line 3"));
}

// A node without gradients has no loss, and one without classes no accuracy.
TEST_F(CliTest, WhatIsNotThereIsNoNumber) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  control::DaemonStatus status = control::SampleStatus("box-1");
  status.node.loss.reset();
  status.node.evaluation.accuracy.reset();
  status.node.evaluation.macro_f1.reset();
  status.node.evaluation.mae = 0.125;
  status.node.evaluation.r2 = 0.875;
  daemon.SetStatus(status);
  EXPECT_THAT(RunAt("box-1", {"status", "--local"}).out,
              HasSubstr("   -  R2 0.875  "));
  EXPECT_THAT(RunAt("box-1", {"watch", "--count=1"}).out,
              HasSubstr(" loss - MAE 0.1250 R2 0.8750 plan "));
  const auto json =
      nlohmann::json::parse(RunAt("box-1", {"status", "--local", "-o", "json"})
                                .out)["targets"][0]["status"];
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["evaluation"]["accuracy"].is_null());
  EXPECT_EQ(json["evaluation"]["r2"], 0.875);
}

TEST_F(CliTest, VersionNamesProgramAndDaemon) {
  StartDaemon("box-1");
  const Result result = RunAt("box-1", {"version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out,
            "PROGRAM  NODE   VERSION  CONTROL  PEERS  LIBRARIES\n"
            "dflctl   -      0.1.0    1        -\n"
            "dfld     box-1  0.1.0    1        1-1    torch 2.6.0\n");
}

TEST_F(CliTest, PeersAreAddedListedAndRemoved) {
  StartDaemon("box-1");
  EXPECT_EQ(RunAt("box-1", {"peer", "add", "10.0.0.9:7600"}).out,
            "unix:FOLDER/box-1.sock: dials 10.0.0.9:7600\n");
  EXPECT_THAT(RunAt("box-1", {"peer", "list"}).out,
              HasSubstr("10.0.0.9:7600  -     down  control\n"));
  EXPECT_EQ(RunAt("box-1", {"peer", "remove", "10.0.0.9:7600"}).code, 0);
  const Result gone = RunAt("box-1", {"peer", "remove", "10.0.0.9:7600"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("is not dialled"));
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(CliTest, AModelGoesToAFileAndBack) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  daemon.SetModelFile(std::string(3 << 20, 'm'));
  const std::string file = WriteFile("model.safetensors", "old");
  const Result out = RunAt("box-1", {"model", "export", file});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(out.out,
            "FOLDER/model.safetensors: 3.15 MB, the model of step 1000\n");
  EXPECT_EQ(Read(file), std::string(3 << 20, 'm'));
  const Result in = RunAt("box-1", {"model", "import", file});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_EQ(daemon.imported(), std::string(3 << 20, 'm'));
}

TEST_F(CliTest, AFailedExportLeavesTheFileAsItWas) {
  StartDaemon("box-1");
  const std::string file = WriteFile("model.pt", "old");
  // By its name it is to be TorchScript, which this model has not.
  const Result refused = RunAt("box-1", {"model", "export", file});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("export safetensors"));
  EXPECT_EQ(Read(file), "old");
  EXPECT_EQ(RunAt("box-1", {"model", "export", folder_.File("no/such/x")}).code,
            1);
  EXPECT_THAT(
      RunAt("box-1", {"model", "export", file, "--format=safetensor"}).err,
      HasSubstr("did you mean \"safetensors\""));
  EXPECT_EQ(RunAt("box-1", {"model", "import", folder_.File("none")}).code, 1);
}

TEST_F(CliTest, ConfigIsCheckedWithoutADaemonAndShownWithOne) {
  const std::string good =
      WriteFile("good.yaml",
                "name: box-1\nsecurity: insecure\n"
                "data:\n  format: csv\n  train: {paths: [/tmp/a.csv]}\n");
  const std::string bad = WriteFile("bad.yaml", "nmae: box-1\n");
  const Result refused = Run({"config", "validate", bad});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("FOLDER/bad.yaml:1"));
  EXPECT_THAT(refused.err, HasSubstr("name"));
  const Result shown = Run({"config", "show", good, "--origin"});
  EXPECT_THAT(shown.out + shown.err, HasSubstr("FOLDER/good.yaml:1"));
  StartDaemon("box-1");
  EXPECT_EQ(RunAt("box-1", {"config", "show", "--origin"}).out,
            "KEY   VALUE  ORIGIN\nname  box-1  /etc/dfld/dfld.yaml:1\n");
  EXPECT_THAT(RunAt("box-1", {"config", "show", "--effective"}).out,
              HasSubstr("log.level  info\n"));
}

}  // namespace
}  // namespace dfl::cli
