// Daemons steered by dflctl while they train: what is set is seen in status,
// with the version in force; what fails has its exit code.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Exit codes of dflctl.
constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kStopped = 11;
constexpr int kUnreachable = 3;
constexpr int kNotAllowed = 4;
constexpr int kTimeout = 5;
constexpr int kPartlyDone = 6;
constexpr int kConflict = 7;
constexpr int kVersionSkew = 8;

constexpr char kPlan[] =
    "members: [a, b, c]\n"
    "model: {kind: mlp, classes: 3, hidden: [16]}\n"
    "algorithm: {name: pame, knobs: {nu: 1, p: 0.5, kappa: [2, 4]}}\n"
    "topology: {kind: complete}\n"
    "batch_size: 8\n"
    "deadline: {exchange: 500ms}\n";

class Steering : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    WriteBlobs(folder_.File("test.csv"), 30, 4, 3, 2);
    WriteFile(folder_.File("plan.yaml"), kPlan);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) std::cerr << "---- log\n" << node->log();
  }

  // Starts nodes that dial those before them.
  void StartNodes(const std::vector<std::string>& names,
                  const std::vector<std::string>& flags = {}) {
    std::vector<std::string> addresses;
    for (const std::string& name : names) {
      DaemonProcess::Options options;
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = folder_.File("train.csv");
      options.test_csv = folder_.File("test.csv");
      options.peers = addresses;
      options.extra_flags = flags;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
  }

  // dflctl for all nodes, or for those of `targets`.
  Outcome Dflctl(std::vector<std::string> arguments,
                 const std::vector<std::string>& targets) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    for (const std::string& target : targets) {
      arguments.insert(arguments.end(), {"--target", target});
    }
    return RunCommand(arguments, {}, absl::Seconds(30));
  }
  Outcome Dflctl(const std::vector<std::string>& arguments) const {
    std::vector<std::string> targets;
    for (const auto& node : nodes_) targets.push_back(node->target());
    return Dflctl(arguments, targets);
  }
  void Do(const std::vector<std::string>& arguments) const {
    const Outcome outcome = Dflctl(arguments);
    ASSERT_EQ(outcome.exit_code, kOk)
        << absl::StrJoin(arguments, " ") << ": " << outcome.err;
  }
  // The entry of each target in the document that dflctl writes.
  std::vector<json> Ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Outcome outcome = Dflctl(arguments);
    EXPECT_EQ(outcome.exit_code, kOk) << outcome.err;
    const json document = json::parse(outcome.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << outcome.out;
    if (!document.is_object()) return {};
    return document.at("targets").get<std::vector<json>>();
  }
  // Whether the status of every node comes to satisfy `condition`.
  template <typename Condition>
  bool AllBecome(Condition condition) const {
    return Eventually(absl::Seconds(20), [&] {
      for (const json& entry : Ask({"status"})) {
        if (!condition(entry.at("status"))) return false;
      }
      return true;
    });
  }
  bool AllReach(int64_t step) const {
    return AllBecome([step](const json& s) { return s.at("step") >= step; });
  }
  bool AllAre(const std::string& phase) const {
    return AllBecome([&](const json& s) { return s.at("phase") == phase; });
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

// ------------------------------------------------------------------- plan ----

TEST_F(Steering, PlanGoesToEveryTargetAndStatusAndWatchShowItRun) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a", "b", "c"}));
  std::string targets = "# the fleet\n";
  for (const auto& node : nodes_)
    absl::StrAppend(&targets, node->target(), "\n");
  WriteFile(folder_.File("fleet"), targets);
  const auto fleet = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--all", folder_.File("fleet")});
    return Dflctl(arguments, {});
  };

  const Outcome dry = fleet(
      {"plan", "apply", folder_.File("plan.yaml"), "--dry-run", "-o", "json"});
  ASSERT_EQ(dry.exit_code, kOk) << dry.err;
  for (const json& entry : json::parse(dry.out).at("targets")) {
    EXPECT_EQ(entry.at("facts").at("parameter_count"),
              4 * 16 + 16 + 16 * 3 + 3);
    EXPECT_EQ(entry.at("facts").at("train_rows"), 60);
  }
  EXPECT_EQ(nodes_[0]->client().Plan()->version, 0)
      << "a dry run changes nothing";

  const Outcome applied =
      fleet({"plan", "apply", folder_.File("plan.yaml"), "-o", "json"});
  ASSERT_EQ(applied.exit_code, kOk) << applied.err;
  const json answers = json::parse(applied.out).at("targets");
  ASSERT_EQ(answers.size(), 3);
  for (const json& entry : answers) {
    EXPECT_EQ(entry.at("ok"), true);
    EXPECT_EQ(entry.at("version"), 1);
    EXPECT_EQ(entry.at("run_id"), answers[0].at("run_id"));
  }
  // All hold one document, with the seed that was drawn.
  EXPECT_EQ(nodes_[0]->client().Plan()->yaml, nodes_[2]->client().Plan()->yaml);
  EXPECT_THAT(nodes_[0]->client().Plan()->yaml, HasSubstr("seed: "));
  // Once more changes nothing.
  EXPECT_THAT(fleet({"plan", "apply", folder_.File("plan.yaml")}).err,
              HasSubstr("nothing changes"));

  ASSERT_EQ(fleet({"train", "start"}).exit_code, kOk);
  EXPECT_TRUE(AllReach(20));
  for (const json& entry : Ask({"status"})) {
    const json& status = entry.at("status");
    EXPECT_EQ(status.at("phase"), "training");
    EXPECT_EQ(status.at("plan_version"), 1);
    EXPECT_EQ(status.at("algorithm"), "pame");
    EXPECT_EQ(status.at("member_count"), 3);
    EXPECT_EQ(status.at("peers").size(), 2);
  }
  const Outcome table = fleet({"status", "--peers"});
  EXPECT_EQ(table.exit_code, kOk);
  EXPECT_THAT(table.out, HasSubstr("training"));
  EXPECT_THAT(table.out, HasSubstr("Peers of a:"));

  // A line is a document, three targets twice.
  const Outcome watched =
      fleet({"watch", "--count", "2", "--interval", "100ms", "-o", "json"});
  EXPECT_EQ(watched.exit_code, kOk) << watched.err;
  std::map<std::string, std::vector<int64_t>> steps;
  for (const absl::string_view line :
       absl::StrSplit(watched.out, '\n', absl::SkipEmpty())) {
    const json update = json::parse(line.begin(), line.end());
    steps[update.at("status").at("node")].push_back(
        update.at("status").at("step"));
  }
  ASSERT_EQ(steps.size(), 3) << watched.out;
  for (const auto& [node, seen] : steps) {
    ASSERT_EQ(seen.size(), 2) << node;
    EXPECT_GE(seen[1], seen[0]);
  }
  const Outcome lines = fleet({"watch", "--count", "1", "--interval", "100ms"});
  EXPECT_THAT(lines.out, HasSubstr("a training step "));
}

// Neighbours that all lag at once would fill the memory; nothing running is
// disturbed by the plan that is refused for it.
TEST_F(Steering, APlanThatMayNeedTooMuchMemoryIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}, {"--compute.memory_limit=65MB"}));
  std::string plan = absl::StrReplaceAll(kPlan, {{"[a, b, c]", "[a]"}});
  WriteFile(folder_.File("plan.yaml"), plan);
  Do({"plan", "apply", folder_.File("plan.yaml")});
  Do({"train", "start"});
  ASSERT_TRUE(AllReach(5));

  std::vector<std::string> members = {"a"};
  for (int i = 1; i < 40; ++i) members.push_back(absl::StrCat("m", i));
  plan = absl::StrReplaceAll(
      kPlan,
      {{"[a, b, c]", absl::StrCat("[", absl::StrJoin(members, ", "), "]")},
       {"[16]", "[2000]"},
       {"pame, knobs: {nu: 1, p: 0.5, kappa: [2, 4]}", "k-gt"}});
  absl::StrAppend(&plan, "codec: {coordinates: dense}\n");
  WriteFile(folder_.File("large.yaml"), plan);
  for (const char* how : {"--dry-run", "--yes"}) {
    const Outcome refused =
        Dflctl({"plan", "apply", folder_.File("large.yaml"), how});
    EXPECT_EQ(refused.exit_code, kFailed) << refused.out;
    for (const char* said :
         {"memory: the plan may need ",
          "allowed: 65.0 MB (compute.memory_limit)", "program and libraries",
          "for 39 neighbours: vectors", "fewer neighbours"}) {
      EXPECT_THAT(refused.err, HasSubstr(said));
    }
  }
  const json before = Ask({"status"})[0].at("status");
  EXPECT_EQ(before.at("phase"), "training");
  EXPECT_EQ(before.at("plan_version"), 1);
  EXPECT_EQ(before.at("memory_limit_bytes"), 65'000'000);
  EXPECT_GT(before.at("memory_bytes"), 60'000'000);
  EXPECT_TRUE(AllReach(before.at("step").get<int64_t>() + 5));

  // With two neighbours it fits.
  WriteFile(folder_.File("ring.yaml"),
            absl::StrReplaceAll(plan, {{"complete", "ring"}}));
  const std::vector<json> ring =
      Ask({"plan", "apply", folder_.File("ring.yaml"), "--dry-run"});
  ASSERT_EQ(ring.size(), 1U);
  const json& facts = ring[0].at("facts");
  EXPECT_LE(facts.at("memory_bytes"), facts.at("memory_limit_bytes"));
  int64_t sum = 0;
  for (const json& part : facts.at("memory_parts")) {
    sum += part.at("bytes").get<int64_t>();
  }
  EXPECT_EQ(facts.at("memory_bytes"), sum);
}

// A plan that was taken before is taken up again, and may be changed for less.
TEST_F(Steering, AStoredPlanBeyondTheLimitIsTakenUpAndTold) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}));
  WriteFile(folder_.File("plan.yaml"),
            absl::StrReplaceAll(kPlan, {{"[a, b, c]", "[a]"}}));
  Do({"plan", "apply", folder_.File("plan.yaml")});
  Do({"train", "start"});
  ASSERT_TRUE(nodes_[0]->Stop().has_value());
  nodes_.clear();
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}, {"--compute.memory_limit=1MB"}));
  EXPECT_TRUE(AllAre("training"));
  EXPECT_THAT(nodes_[0]->log(), HasSubstr("memory: the plan may need 60.0 MB"));
  EXPECT_THAT(Dflctl({"status"}).err,
              HasSubstr("more than the 1.00 MB allowed"));
  Do({"participation", "set", "p=0.4"});
  EXPECT_TRUE(
      AllBecome([](const json& s) { return s.at("plan_version") == 2; }));
}

TEST_F(Steering, WhatIsSetWhileTrainingIsInForceAtTheNextBoundary) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a", "b", "c"}));
  ASSERT_NO_FATAL_FAILURE(Do({"plan", "apply", folder_.File("plan.yaml")}));
  ASSERT_NO_FATAL_FAILURE(Do({"train", "start"}));
  ASSERT_TRUE(AllReach(10));
  const auto in_force = [](int64_t version) {
    return [version](const json& status) {
      return status.at("plan_version") == version &&
             status.at("pending_plan_version") == 0;
    };
  };

  ASSERT_NO_FATAL_FAILURE(Do({"topology", "set", "star", "--wait"}));
  ASSERT_TRUE(AllBecome(in_force(2)));
  for (const json& entry : Ask({"status"})) {
    const json& status = entry.at("status");
    EXPECT_EQ(status.at("topology"), "star");
    int neighbours = 0;
    for (const json& peer : status.at("peers")) {
      neighbours += peer.at("neighbour") == true ? 1 : 0;
    }
    EXPECT_EQ(neighbours, status.at("node") == "a" ? 2 : 1);
  }

  ASSERT_NO_FATAL_FAILURE(
      Do({"participation", "set", "p=1", "--node", "b", "--wait"}));
  ASSERT_TRUE(AllBecome(in_force(3)));
  for (const json& entry : Ask({"status"})) {
    const json& status = entry.at("status");
    EXPECT_EQ(status.at("knobs").at("p"), status.at("node") == "b" ? 1 : 0.5);
  }
  EXPECT_EQ(nodes_[1]->Status().plan_version, 3);

  ASSERT_NO_FATAL_FAILURE(Do({"period", "set", "kappa=3", "--wait"}));
  ASSERT_TRUE(AllBecome(in_force(4)));
  for (const json& entry : Ask({"status"})) {
    EXPECT_EQ(entry.at("status").at("knobs").at("kappa"), json::array({3, 3}));
  }
  const Outcome shown = Dflctl({"participation", "show"});
  EXPECT_EQ(shown.exit_code, kOk) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("b=1"));

  ASSERT_NO_FATAL_FAILURE(Do({"set", "codec.values=fp16", "--wait"}));
  ASSERT_TRUE(AllBecome(in_force(5)));
  EXPECT_THAT(Ask({"status"})[0].at("status").at("format").dump(),
              HasSubstr("fp16"));
  const Outcome got = Dflctl({"get", "codec.values"});
  EXPECT_EQ(got.exit_code, kOk) << got.err;
  EXPECT_THAT(got.out, HasSubstr("fp16"));

  std::map<std::string, int64_t> before;
  for (const json& entry : Ask({"status"})) {
    before[entry.at("status").at("node")] = entry.at("status").at("step");
  }
  ASSERT_NO_FATAL_FAILURE(Do({"algorithm", "set", "d-psgd", "--wait"}));
  ASSERT_TRUE(AllBecome(in_force(6)));
  // It goes on from the step it had, as another algorithm.
  EXPECT_TRUE(AllBecome([&](const json& status) {
    return status.at("algorithm") == "d-psgd" &&
           status.at("phase") == "training" &&
           status.at("step") > before.at(status.at("node"));
  }));
  const Outcome algorithm = Dflctl({"algorithm", "show"});
  EXPECT_EQ(algorithm.exit_code, kOk);
  EXPECT_THAT(algorithm.out, HasSubstr("d-psgd"));
  for (const auto& node : nodes_) EXPECT_EQ(node->Stop()->code, 0);
}

TEST_F(Steering, PauseResumeAndStop) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a", "b"}));
  WriteFile(folder_.File("plan.yaml"),
            absl::StrReplaceAll(kPlan, {{"[a, b, c]", "[a, b]"}}));
  EXPECT_EQ(Dflctl({"train", "start"}).exit_code, kFailed);  // no plan yet
  ASSERT_NO_FATAL_FAILURE(Do({"plan", "apply", folder_.File("plan.yaml")}));
  EXPECT_EQ(Dflctl({"train", "pause"}).exit_code, kFailed);  // not started
  ASSERT_NO_FATAL_FAILURE(Do({"train", "start"}));
  ASSERT_TRUE(AllReach(10));

  ASSERT_NO_FATAL_FAILURE(Do({"train", "pause"}));
  ASSERT_TRUE(AllAre("paused"));
  const int64_t step = nodes_[0]->Status().step;
  for (int look = 0; look < 20; ++look) {
    EXPECT_EQ(nodes_[0]->Status().step, step);
  }
  ASSERT_NO_FATAL_FAILURE(Do({"train", "resume"}));
  EXPECT_TRUE(AllReach(step + 10));
  ASSERT_NO_FATAL_FAILURE(Do({"train", "stop"}));
  EXPECT_TRUE(AllAre("stopped"));
  // A stopped run has ended for a watch, and not well.
  EXPECT_EQ(Dflctl({"watch", "--until-finished"}).exit_code, kStopped);
  const Outcome pause = Dflctl({"train", "pause"});
  EXPECT_EQ(pause.exit_code, kFailed);
  EXPECT_THAT(pause.err, HasSubstr("the node is stopped"));
}

// -------------------------------------------------------- what goes wrong ----

TEST_F(Steering, ChangeOfAnOldVersionIsAConflict) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a", "b"}));
  WriteFile(folder_.File("plan.yaml"),
            absl::StrReplaceAll(kPlan, {{"[a, b, c]", "[a, b]"}}));
  ASSERT_NO_FATAL_FAILURE(Do({"plan", "apply", folder_.File("plan.yaml")}));
  const std::string shown = Dflctl({"plan", "show"}, {nodes_[0]->target()}).out;
  EXPECT_THAT(shown, StartsWith("version: 1\n"));
  ASSERT_NO_FATAL_FAILURE(Do({"set", "batch_size=4"}));

  // The file that was taken from version 1, edited and given back too late.
  WriteFile(folder_.File("mine.yaml"),
            absl::StrReplaceAll(shown, {{"batch_size: 8", "batch_size: 16"}}));
  const Outcome late = Dflctl({"plan", "apply", folder_.File("mine.yaml")});
  EXPECT_EQ(late.exit_code, kConflict);
  EXPECT_THAT(late.err, HasSubstr("made from plan version 1"));
  EXPECT_THAT(late.err, HasSubstr("the newest is 2"));
  EXPECT_EQ(late.out, "");
  // The same between the daemon and a program that read it before.
  const auto refused =
      nodes_[0]->client().ApplyPlan({shown, /*expected_version=*/1, false});
  EXPECT_TRUE(absl::IsAborted(refused.status())) << refused.status();
  EXPECT_EQ(nodes_[0]->client().Plan()->version, 2);

  // Two people changed two nodes at once.
  const std::string two = Dflctl({"plan", "show"}, {nodes_[0]->target()}).out;
  const auto change = [&](int node, const std::string& batch) {
    return nodes_[node]
        ->client()
        .ApplyPlan({absl::StrReplaceAll(two, {{"version: 2", "version: 3"},
                                              {"batch_size: 4", batch}}),
                    2, false})
        .status();
  };
  ASSERT_TRUE(change(0, "batch_size: 5").ok());
  const absl::Status second = change(1, "batch_size: 6");
  EXPECT_TRUE(second.ok() || absl::IsAborted(second)) << second;
  // The nodes agree by themselves on one of the two.
  EXPECT_TRUE(Eventually(absl::Seconds(20), [&] {
    return nodes_[0]->client().Plan()->yaml == nodes_[1]->client().Plan()->yaml;
  }));
  const Outcome both = Dflctl({"set", "batch_size=7"});
  EXPECT_EQ(both.exit_code, kOk) << both.err;
}

TEST_F(Steering, WhoCannotBeReachedIsTold) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}));
  const std::string nobody = absl::StrCat("unix:", folder_.File("z.sock"));
  const Outcome none = Dflctl({"status", "-o", "json"}, {nobody});
  EXPECT_EQ(none.exit_code, kUnreachable);
  EXPECT_THAT(none.err, HasSubstr(nobody));
  EXPECT_EQ(json::parse(none.out).at("targets")[0].at("error").at("code"),
            "unreachable");
  const Outcome port =
      Dflctl({"status", "--timeout", "2s"}, {"insecure:127.0.0.1:1"});
  EXPECT_EQ(port.exit_code, kUnreachable);
  EXPECT_THAT(port.err, HasSubstr("127.0.0.1:1"));

  const Outcome some =
      Dflctl({"status", "-o", "json"}, {nodes_[0]->target(), nobody});
  EXPECT_EQ(some.exit_code, kPartlyDone);
  const json answers = json::parse(some.out).at("targets");
  EXPECT_EQ(answers[0].at("ok"), true);
  EXPECT_EQ(answers[1].at("ok"), false);
  EXPECT_EQ(answers[1].at("error").at("exit_code"), kUnreachable);

  // A daemon that hangs: a timeout.
  nodes_[0]->process().Signal(SIGSTOP);
  const Outcome slow = Dflctl({"status", "--timeout", "300ms"});
  EXPECT_EQ(slow.exit_code, kTimeout) << slow.err;
  EXPECT_THAT(slow.err, HasSubstr(nodes_[0]->target()));
  nodes_[0]->process().Signal(SIGCONT);
  EXPECT_EQ(Dflctl({"status"}).exit_code, kOk);
}

TEST_F(Steering, ControlIsNotServedToPeers) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}));
  const Outcome outcome =
      Dflctl({"status"}, {"insecure:" + nodes_[0]->peer_address()});
  EXPECT_EQ(outcome.exit_code, kVersionSkew) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(nodes_[0]->peer_address()));
}

TEST_F(Steering, StrangersMayNotOpenTheSocket) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  if (RunCommand(AsNobody({Program("dflctl"), "--help"})).exit_code != 0) {
    GTEST_SKIP() << "needs root and a build that others may read";
  }
  const Outcome outcome = RunCommand(
      AsNobody({Program("dflctl"), "status", "--target", nodes_[0]->target()}));
  EXPECT_EQ(outcome.exit_code, kNotAllowed) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(nodes_[0]->target()));
  EXPECT_THAT(outcome.err, HasSubstr("may not open the socket"));
}

TEST_F(Steering, ControlOnTheNetworkIsTheSame) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}, {"--control.listen=127.0.0.1:0"}));
  const json ready = json::parse(ReadFile(folder_.File("a.1.ready")));
  ASSERT_EQ(ready.at("control").size(), 2);
  std::string address = ready.at("control")[0];
  if (address == nodes_[0]->target()) address = ready.at("control")[1];
  const Outcome outcome =
      Dflctl({"status", "-o", "json"}, {"insecure:" + address});
  ASSERT_EQ(outcome.exit_code, kOk) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out).at("targets")[0].at("status").at("node"),
            "a");
  EXPECT_THAT(outcome.err, HasSubstr("plain text"));
}

// ------------------------------------------------------------ model files ----

// A reader of safetensors of its own: what others' tools find in the file.
struct TensorFile {
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, std::string> metadata;

  static TensorFile Read(const std::string& path) {
    TensorFile file;
    const std::string bytes = ReadFile(path);
    uint64_t length = 0;
    if (bytes.size() < 8) return file;
    std::memcpy(&length, bytes.data(), 8);
    const json header = json::parse(bytes.substr(8, length));
    const char* data = bytes.data() + 8 + length;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        file.metadata = entry.get<std::map<std::string, std::string>>();
        continue;
      }
      EXPECT_EQ(entry.at("dtype"), "F32");
      const int64_t begin = entry.at("data_offsets")[0];
      const int64_t end = entry.at("data_offsets")[1];
      file.shapes[name] = entry.at("shape").get<std::vector<int64_t>>();
      std::vector<float>& values = file.values[name];
      values.resize((end - begin) / 4);
      std::memcpy(values.data(), data + begin, end - begin);
    }
    return file;
  }
};

class ModelFiles : public Steering {
 protected:
  void ApplyAndTrain(const std::string& model, int64_t steps) {
    WriteFile(folder_.File("plan.yaml"),
              absl::StrCat("members: [a]\nmodel: ", model,
                           "\nalgorithm: {name: local}\nbatch_size: 8\n"
                           "stop: {steps: ",
                           steps, "}\n"));
    ASSERT_NO_FATAL_FAILURE(
        Do({"plan", "apply", folder_.File("plan.yaml"), "--new-run"}));
    ASSERT_NO_FATAL_FAILURE(Do({"train", "start"}));
    ASSERT_TRUE(AllAre("finished"));
  }
};

TEST_F(ModelFiles, CnnLeavesAndComesBackAsSafetensors) {
  // 40 images of 28 x 28 in ten classes.
  const auto big_endian = [](uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>((value >> shift) & 0xff);
    }
    return bytes;
  };
  std::string images =
      big_endian(0x803) + big_endian(40) + big_endian(28) + big_endian(28);
  std::string labels = big_endian(0x801) + big_endian(40);
  for (int i = 0; i < 40; ++i) {
    images.append(28 * 28, static_cast<char>(6 * i));
    labels += static_cast<char>(i % 10);
  }
  WriteFile(folder_.File("images"), images);
  WriteFile(folder_.File("labels"), labels);
  ASSERT_NO_FATAL_FAILURE(StartNodes(
      {"a"}, {"--data.format=idx", "--data.classes=10",
              absl::StrCat("--data.train.paths=", folder_.File("images"), ",",
                           folder_.File("labels")),
              "--data.test.paths="}));
  const Outcome early = Dflctl({"model", "export", folder_.File("early")});
  EXPECT_EQ(early.exit_code, kFailed);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("early")));
  ASSERT_NO_FATAL_FAILURE(ApplyAndTrain("{kind: cnn, classes: 10}", 3));

  ASSERT_NO_FATAL_FAILURE(
      Do({"model", "export", folder_.File("out.safetensors")}));
  const TensorFile out = TensorFile::Read(folder_.File("out.safetensors"));
  const std::map<std::string, std::vector<int64_t>> shapes = {
      {"conv1.weight", {16, 1, 3, 3}},  {"conv1.bias", {16}},
      {"conv2.weight", {32, 16, 3, 3}}, {"conv2.bias", {32}},
      {"fc1.weight", {128, 2048}},      {"fc1.bias", {128}},
      {"fc2.weight", {10, 128}},        {"fc2.bias", {10}}};
  EXPECT_EQ(out.shapes, shapes);
  EXPECT_EQ(out.metadata.at("step"), "3");
  EXPECT_EQ(out.metadata.at("model"), "cnn");

  // One value changed in the file comes back changed; the rest as it was.
  std::string bytes = ReadFile(folder_.File("out.safetensors"));
  const float changed = 0.625F;
  std::memcpy(bytes.data() + bytes.size() - 4, &changed, 4);
  WriteFile(folder_.File("in.safetensors"), bytes);
  ASSERT_NO_FATAL_FAILURE(
      Do({"model", "import", folder_.File("in.safetensors")}));
  ASSERT_NO_FATAL_FAILURE(
      Do({"model", "export", folder_.File("back.safetensors")}));
  EXPECT_EQ(ReadFile(folder_.File("back.safetensors")), bytes);
}

TEST_F(ModelFiles, TorchScriptLeavesUpdated) {
  const std::string net = folder_.File("net.pt");
  ASSERT_EQ(RunCommand({Program("make_torchscript"), net, "4", "3"}).exit_code,
            0);
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}));
  ASSERT_NO_FATAL_FAILURE(ApplyAndTrain(
      absl::StrCat("{kind: torchscript, classes: 3, path: \"", net, "\"}"),
      20));
  EXPECT_EQ(nodes_[0]->Status().buffer_count, 8);

  const std::string updated = folder_.File("updated.pt");
  ASSERT_NO_FATAL_FAILURE(Do({"model", "export", updated}));
  ASSERT_NO_FATAL_FAILURE(
      Do({"model", "export", folder_.File("out.safetensors")}));
  const TensorFile out = TensorFile::Read(folder_.File("out.safetensors"));
  EXPECT_EQ(out.shapes.at("first"), (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(out.shapes.at("last"), (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(out.shapes.at("mean"), (std::vector<int64_t>{8}));
  // Both files hold the same model, which is not the one it began with.
  const auto values_of = [](const std::string& path) {
    std::map<std::string, std::vector<float>> values;
    const Outcome printed =
        RunCommand({Program("make_torchscript"), "--values", path});
    EXPECT_EQ(printed.exit_code, 0) << printed.err;
    std::istringstream lines(printed.out);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      float value = 0;
      while (words >> value) values[name].push_back(value);
    }
    return values;
  };
  EXPECT_EQ(values_of(updated), out.values);
  EXPECT_NE(values_of(net), out.values);
  // It is a model that a run can begin from.
  ASSERT_NO_FATAL_FAILURE(ApplyAndTrain(
      absl::StrCat("{kind: torchscript, classes: 3, path: \"", updated, "\"}"),
      5));
  // Other models have no such form.
  ASSERT_NO_FATAL_FAILURE(ApplyAndTrain("{kind: logistic, classes: 3}", 5));
  const Outcome refused = Dflctl({"model", "export", updated});
  EXPECT_EQ(refused.exit_code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("no TorchScript form"));
  EXPECT_EQ(values_of(updated), values_of(updated))
      << "the file is still there";
}

// ---------------------------------------------------------- peers, config ----

TEST_F(Steering, PeersAreAddedAndRemoved) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}));
  DaemonProcess::Options options;
  options.name = "b";
  options.folder = folder_.path();
  options.train_csv = folder_.File("train.csv");
  DaemonProcess b(options);
  ASSERT_TRUE(b.Start()) << b.log();
  const auto addresses = [&] {
    return Ask({"peer", "list"})[0].at("addresses");
  };
  EXPECT_EQ(addresses().size(), 0);
  ASSERT_NO_FATAL_FAILURE(Do({"peer", "add", b.peer_address()}));
  EXPECT_TRUE(Eventually(absl::Seconds(20), [&] {
    const json list = addresses();
    return list.size() == 1 && list[0].at("linked") == true;
  }));
  const json entry = addresses()[0];
  EXPECT_EQ(entry.at("address"), b.peer_address());
  EXPECT_EQ(entry.at("node"), "b");
  EXPECT_EQ(entry.at("origin"), "control");
  const Outcome again = Dflctl({"peer", "add", b.peer_address()});
  EXPECT_EQ(again.exit_code, kOk);
  EXPECT_THAT(again.out, HasSubstr("already"));

  // It outlives the daemon, one that is killed too.
  nodes_[0]->Kill();
  ASSERT_TRUE(nodes_[0]->Start()) << nodes_[0]->log();
  EXPECT_TRUE(Eventually(absl::Seconds(20), [&] {
    const json list = addresses();
    return list.size() == 1 && list[0].at("linked") == true;
  }));
  EXPECT_EQ(addresses()[0].at("origin"), "control");

  ASSERT_NO_FATAL_FAILURE(Do({"peer", "remove", b.peer_address()}));
  EXPECT_EQ(addresses().size(), 0);
  // Whoever is a member stays one: the address was but a way to it.
  const auto linked = [](const client::NodeStatus& status) {
    return std::any_of(status.peers.begin(), status.peers.end(),
                       [](const auto& peer) { return peer.linked; });
  };
  EXPECT_TRUE(nodes_[0]->StatusBecomes(absl::Seconds(10), linked));
  EXPECT_TRUE(b.StatusBecomes(absl::Seconds(10), linked)) << b.log();
  EXPECT_EQ(Dflctl({"peer", "remove", b.peer_address()}).exit_code, kFailed);
}

TEST_F(Steering, SettingsAreShownWithTheirOrigin) {
  ASSERT_NO_FATAL_FAILURE(StartNodes({"a"}, {"--log.level=debug"}));
  const json entry = Ask({"config", "show", "--effective", "--origin"})[0];
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const json& setting : entry.at("settings")) {
    settings[setting.at("key")] = {setting.at("value"), setting.at("origin")};
  }
  EXPECT_EQ(settings.at("name").first, "a");
  EXPECT_EQ(settings.at("name").second, folder_.File("a.yaml:1"));
  EXPECT_EQ(settings.at("log.level").first, "debug");
  EXPECT_EQ(settings.at("log.level").second, "flag --log.level");
  EXPECT_EQ(settings.at("data.max_bytes").second, "default");
  const Outcome table = Dflctl({"config", "show", "--origin"});
  EXPECT_THAT(table.out, HasSubstr("flag --log.level"));
  EXPECT_THAT(table.out, Not(HasSubstr("data.max_bytes"))) << "a default";
  const Outcome file =
      Dflctl({"config", "show", folder_.File("a.yaml"), "--origin"}, {});
  EXPECT_EQ(file.exit_code, kOk) << file.err;
  EXPECT_THAT(file.out, HasSubstr(folder_.File("a.yaml:1")));
  EXPECT_EQ(
      Dflctl({"config", "validate", folder_.File("a.yaml")}, {}).exit_code,
      kOk);
}

TEST_F(Steering, CompletionWorksInBash) {
  const Outcome script = Dflctl({"completion", "bash"}, {});
  ASSERT_EQ(script.exit_code, kOk) << script.err;
  WriteFile(folder_.File("completion"), script.out);
  // `word` is what readline takes for the last word.
  const auto complete = [&](const std::string& typed, const std::string& word) {
    const std::string line = absl::StrCat(Program("dflctl"), " ", typed);
    const Outcome outcome = RunCommand(
        {"bash", "-euc",
         absl::StrCat("source ", folder_.File("completion"),
                      "; complete -p dflctl > /dev/null; COMP_LINE='", line,
                      "'; COMP_POINT=", line.size(), "; COMP_WORDS=('", word,
                      "'); COMP_CWORD=0",
                      "; _dflctl; echo \"${COMPREPLY[*]}\"")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  };
  EXPECT_EQ(complete("tra", "tra"), "train\n");
  EXPECT_EQ(complete("train re", "re"), "resume\n");
  EXPECT_EQ(complete("plan apply --dr", "--dr"), "--dry-run\n");
  // Readline splits at "=".
  EXPECT_EQ(complete("status --output=y", "y"), "yaml\n");
  EXPECT_EQ(complete("topology set --weights=", "="),
            "metropolis laplacian uniform explicit\n");
}

}  // namespace
}  // namespace dfl::testing_support
