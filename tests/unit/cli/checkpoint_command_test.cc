// checkpoint list, save and restore, word for word.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr char kTable[] =
    "FILE          ITERATION  STEPS  ROUNDS  WRITTEN                       "
    "SIZE "
    " RUN               PLAN  ALGORITHM  EPOCH\n"
    "checkpoint.0        200   1000     200  2023-11-14T22:16:40+00:00  3.00 "
    "MB "
    " 00c0ffee00c0ffee     2  k-gt           3\n"
    "checkpoint.1        101    505     101  2023-11-14T22:15:01+00:00  3.00 "
    "MB "
    " 00c0ffee00c0ffee     2  k-gt           3\n"
    "not used: checkpoint.1.aside, 77 B: it is torn\n";

using CheckpointCommand = CliTest;

TEST_F(CheckpointCommand, ListHasATableForEachTarget) {
  StartDaemon("box-1");
  const Result one = RunAt("box-1", {"checkpoint", "list"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, kTable);
  StartDaemon("box-2");
  const Result two = Run({"checkpoint", "list", "-t", "unix:" + Socket("box-1"),
                          "-t", "unix:" + Socket("box-2")});
  EXPECT_EQ(two.out, std::string("unix:FOLDER/box-1.sock:\n") + kTable +
                         "\nunix:FOLDER/box-2.sock:\n" + kTable);
  EXPECT_THAT(RunAt("box-1", {"checkpoint", "list", "-o", "wide"}).out,
              AllOf(HasSubstr("FILE          NODE   "),
                    HasSubstr("checkpoint.0  box-1  ")));
}

TEST_F(CheckpointCommand, ListInJsonHasRawNumbers) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  const auto said = [&] {
    const Result result = RunAt("box-1", {"checkpoint", "list", "-o", "json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out)["targets"][0];
  };
  const nlohmann::json all = said();
  EXPECT_EQ(all["node"], "box-1");
  const nlohmann::json& newest = all["checkpoints"][0];
  EXPECT_EQ(newest["iteration"], 200);
  EXPECT_EQ(newest["steps"], 1000);
  EXPECT_EQ(newest["rounds"], 200);
  EXPECT_EQ(newest["bytes"], 3000200);
  EXPECT_EQ(newest["written"], "2023-11-14T22:16:40+00:00");
  EXPECT_EQ(newest["plan_version"], 2);
  EXPECT_EQ(newest["tracker_epoch"], 3);
  EXPECT_EQ(all["aside"][0]["reason"], "it is torn");
  // What is not known is null.
  control::CheckpointList unknown;
  unknown.checkpoints = {control::CheckpointInfo()};
  unknown.aside = {{"checkpoint.0.aside", 0, ""}};
  daemon.checkpoints().SetList(unknown);
  EXPECT_TRUE(said()["checkpoints"][0]["written"].is_null());
  EXPECT_TRUE(said()["aside"][0]["reason"].is_null());
  EXPECT_THAT(RunAt("box-1", {"checkpoint", "list"}).out,
              HasSubstr("not used: checkpoint.0.aside, 0 B\n"));
}

TEST_F(CheckpointCommand, SaveWaitsAndSaysWhatWasWritten) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  const Result saved = RunAt("box-1", {"checkpoint", "save"});
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(saved.out,
            "unix:FOLDER/box-1.sock: wrote checkpoint.0, iteration 300 (1500 "
            "steps, 300 rounds), 3.00 MB\n");
  EXPECT_EQ(daemon.checkpoints().saves(), 1);
  const Result json = RunAt("box-1", {"checkpoint", "save", "-o", "json"});
  EXPECT_EQ(
      nlohmann::json::parse(json.out)["targets"][0]["checkpoint"]["iteration"],
      300);
  daemon.checkpoints().FailWith(
      absl::FailedPreconditionError("the node has not begun to train"));
  const Result refused = RunAt("box-1", {"checkpoint", "save"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err, HasSubstr("the node has not begun to train"));
}

TEST_F(CheckpointCommand, ASaveThatTakesTooLongMayStillHappen) {
  StartDaemon("box-1").checkpoints().KeepSaveQuiet();
  const Result late = RunAt("box-1", {"checkpoint", "save", "--timeout=50ms"});
  EXPECT_EQ(late.code, 5);
  EXPECT_THAT(late.err, AllOf(HasSubstr("it may still be written"),
                              HasSubstr("dflctl checkpoint list")));
}

TEST_F(CheckpointCommand, ACheckpointGoesToAFileAndBack) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  daemon.checkpoints().SetFile(std::string(3 << 20, 'c'));
  const std::string file = WriteFile("box-1.ckpt", "old");
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const Result out = RunAt("box-1", {"checkpoint", "save", "--to", file});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(out.out,
            "FOLDER/box-1.ckpt: the checkpoint of box-1 at iteration 300 (1500 "
            "steps, 300 rounds), 3.00 MB\n");
  EXPECT_EQ(daemon.checkpoints().saves(), 1);
  EXPECT_EQ(Read(file), std::string(3 << 20, 'c'));
  struct stat info{};
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "as it was before";

  const Result in = RunAt("box-1", {"checkpoint", "restore", file});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_EQ(in.out,
            "unix:FOLDER/box-1.sock: restored iteration 300 (1500 steps, 300 "
            "rounds), 3.00 MB; it is paused, and goes on from there by `dflctl "
            "train start`\n");
  EXPECT_EQ(daemon.checkpoints().restored(), std::string(3 << 20, 'c'));
  EXPECT_FALSE(daemon.checkpoints().request().other_version);
  EXPECT_EQ(RunAt("box-1", {"checkpoint", "restore", file, "--force"}).code, 0);
  EXPECT_TRUE(daemon.checkpoints().request().other_version);

  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"checkpoint", "save", "--to", file, "-o", "json"},
           {"checkpoint", "restore", file, "-o", "json"}}) {
    const Result json = RunAt("box-1", arguments);
    const auto target = nlohmann::json::parse(json.out)["targets"][0];
    EXPECT_EQ(target["file"], "FOLDER/box-1.ckpt");
    EXPECT_EQ(target["checkpoint"]["iteration"], 300);
  }
}

TEST_F(CheckpointCommand, ItGoesToStdoutToo) {
  StartDaemon("box-1").checkpoints().SetFile("bytes");
  const Result out = RunAt("box-1", {"checkpoint", "save", "--to", "-"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(out.out, "bytes");
  EXPECT_THAT(out.err, HasSubstr("the checkpoint of box-1 at iteration 300"));
  out_is_terminal_ = true;
  const Result refused = RunAt("box-1", {"checkpoint", "save", "--to", "-"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("a checkpoint is no text"));
}

TEST_F(CheckpointCommand, WhatFailsLeavesTheFileAsItWas) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  const std::string file = WriteFile("box-1.ckpt", "old");
  daemon.checkpoints().FailWith(absl::NotFoundError("there is none"));
  EXPECT_EQ(RunAt("box-1", {"checkpoint", "save", "--to", file}).code, 1);
  EXPECT_EQ(Read(file), "old");
  const int saves = daemon.checkpoints().saves();
  EXPECT_EQ(
      RunAt("box-1", {"checkpoint", "save", "--to", folder_.File("no/such/x")})
          .code,
      1);
  EXPECT_EQ(daemon.checkpoints().saves(), saves) << "the node wrote none";
}

TEST_F(CheckpointCommand, ARefusalReachesTheCallerUnchanged) {
  control::FakeBackend& daemon = StartDaemon("box-1");
  const std::string file = WriteFile("box-3.ckpt", "bytes");
  daemon.checkpoints().RefuseHead(absl::FailedPreconditionError(
      "the checkpoint is of node box-3, and this node is box-1"));
  const Result refused = RunAt("box-1", {"checkpoint", "restore", file});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("is of node box-3, and this node is"));
  const Result none =
      RunAt("box-1", {"checkpoint", "restore", folder_.File("none")});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("FOLDER/none: No such file"));
  const Result empty =
      RunAt("box-1", {"checkpoint", "restore", WriteFile("empty", "")});
  EXPECT_EQ(empty.code, 1);
  EXPECT_THAT(empty.err, HasSubstr("dflctl checkpoint save --to"));
}

// A checkpoint is of one node.
TEST_F(CheckpointCommand, FilesAreOfOneTarget) {
  StartDaemon("box-1");
  StartDaemon("box-2");
  const std::string file = WriteFile("box-1.ckpt", "bytes");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"save", "--to", file}, {"restore", file}}) {
    std::vector<std::string> arguments = {"checkpoint"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    for (const char* name : {"box-1", "box-2"}) {
      arguments.insert(arguments.end(), {"-t", "unix:" + Socket(name)});
    }
    EXPECT_EQ(Run(arguments).code, 2) << words[0];
  }
}

}  // namespace
}  // namespace dfl::cli
