// One plan and one wanted phase for a network: given to one daemon, they reach
// all, in an insecure network as in a secured one (secured_test). What one node
// cannot take keeps nobody else from it.
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using client::NodeStatus;
using client::Phase;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr int kOk = 0;
constexpr int kConflict = 7;

constexpr char kPlan[] =
    "members: [a, b, c]\n"
    "model: {kind: mlp, classes: 3, hidden: [8]}\n"
    "algorithm: {name: d-psgd}\n"
    "topology: {kind: complete}\n"
    "batch_size: 8\n"
    "deadline: {exchange: 500ms}\n";

class NetworkOrders : public testing::Test {
 protected:
  void SetUp() override {
    WriteBlobs(folder_.File("train.csv"), 60, 4, 3, 1);
    WriteFile(folder_.File("plan.yaml"), kPlan);
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& [name, node] : nodes_) {
      std::cerr << "---- log of " << name << "\n" << node->log();
    }
  }

  // It dials those that run, and works in a folder of its own.
  void Start(const std::string& name) {
    DaemonProcess::Options options;
    options.name = name;
    options.folder = folder_.path();
    options.train_csv = folder_.File("train.csv");
    for (const auto& [other, node] : nodes_) {
      options.peers.push_back(node->peer_address());
    }
    std::filesystem::create_directories(Box(name));
    options.wrapper = {"/usr/bin/env", "--chdir=" + Box(name)};
    nodes_[name] = std::make_unique<DaemonProcess>(options);
    ASSERT_TRUE(nodes_[name]->Start()) << nodes_[name]->log();
  }
  std::string Box(const std::string& name) const {
    return folder_.File(name + ".box");
  }
  DaemonProcess& node(const std::string& name) { return *nodes_.at(name); }

  // dflctl with one daemon as its target.
  Outcome DflctlAt(const std::string& name,
                   std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), Program("dflctl"));
    arguments.insert(arguments.end(), {"--target", nodes_.at(name)->target()});
    return RunCommand(arguments, {{"USER", "alice"}}, absl::Seconds(60));
  }
  void DoAt(const std::string& name,
            const std::vector<std::string>& arguments) const {
    const Outcome outcome = DflctlAt(name, arguments);
    ASSERT_EQ(outcome.exit_code, kOk)
        << absl::StrJoin(arguments, " ") << ": " << outcome.err;
  }
  bool Becomes(const std::string& name, Phase phase) {
    return node(name).StatusBecomes(
        absl::Seconds(30),
        [&](const NodeStatus& status) { return status.phase == phase; });
  }
  bool Learns(const std::string& name) {
    const int64_t step = node(name).Status().step;
    return node(name).StatusBecomes(
        absl::Seconds(30), [&](const NodeStatus& status) {
          return status.step >= step + 5 && status.models_received > 0;
        });
  }
  bool HoldsVersion(const std::string& name, uint64_t version) {
    return node(name).StatusBecomes(absl::Seconds(30),
                                    [&](const NodeStatus& status) {
                                      return status.plan_version == version;
                                    });
  }
  std::string PlanOf(const std::string& name) {
    const auto plan = node(name).client().Plan();
    return plan.ok() ? plan->yaml : "";
  }

  TemporaryFolder folder_;
  std::map<std::string, std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(NetworkOrders, APlanGivenToOneReachesAllAndStartsThem) {
  for (const char* name : {"a", "b"}) ASSERT_NO_FATAL_FAILURE(Start(name));
  DoAt("a", {"plan", "apply", folder_.File("plan.yaml"), "--start"});
  for (const char* name : {"a", "b"}) EXPECT_TRUE(Learns(name)) << name;
  EXPECT_EQ(PlanOf("a"), PlanOf("b"));

  // The same, given to another one, is the same plan and the same run.
  const Outcome again =
      DflctlAt("b", {"plan", "apply", folder_.File("plan.yaml")});
  EXPECT_EQ(again.exit_code, kOk) << again.err;
  EXPECT_THAT(again.err, HasSubstr("nothing changes"));
  EXPECT_EQ(node("b").Status().plan_version, 1u);

  // Who joins late trains when the network does.
  ASSERT_NO_FATAL_FAILURE(Start("c"));
  EXPECT_TRUE(Learns("c"));
  EXPECT_EQ(PlanOf("a"), PlanOf("c"));

  // Of one node alone, through another.
  DoAt("c", {"train", "pause", "--node", "b"});
  EXPECT_TRUE(Becomes("b", Phase::kPaused));
  EXPECT_EQ(node("a").Status().phase, Phase::kTraining);
  // The next order must have a higher counter than this one.
  ASSERT_TRUE(Eventually(absl::Seconds(30), [&] {
    const auto records = node("a").client().ListRecords();
    return records.ok() && records->size() == 3;
  })) << DflctlAt("a", {"record", "list"}).out;
  DoAt("a", {"train", "stop", "--network"});
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_TRUE(Becomes(name, Phase::kStopped)) << name;
  }
  const json records =
      json::parse(DflctlAt("c", {"record", "list", "-o", "json"}).out);
  EXPECT_EQ(records["targets"][0]["records"][0]["author"], "insecure:alice");
}

TEST_F(NetworkOrders, ANodeWithoutTheModelsFileIsDegradedUntilItIsThere) {
  for (const char* name : {"a", "b"}) ASSERT_NO_FATAL_FAILURE(Start(name));
  ASSERT_EQ(
      RunCommand({Program("make_torchscript"), Box("a") + "/m.pt", "4", "3"})
          .exit_code,
      0);
  WriteFile(folder_.File("plan.yaml"),
            absl::StrReplaceAll(
                kPlan, {{"[a, b, c]", "[a, b]"},
                        {"{kind: mlp, classes: 3, hidden: [8]}",
                         "{kind: torchscript, classes: 3, path: m.pt}"}}));
  DoAt("a", {"plan", "apply", folder_.File("plan.yaml"), "--start"});
  const auto told = [&] {
    const auto status = node("b").client().Status();
    return status.ok() ? absl::StrJoin(status->warnings, "\n") : "";
  };
  ASSERT_TRUE(Eventually(absl::Seconds(30), [&] {
    return absl::StrContains(told(), "is not taken up");
  }));
  EXPECT_THAT(told(), HasSubstr("m.pt: cannot be read"));
  EXPECT_EQ(node("b").Status().plan_version, 0u);
  // It is brought there, and nothing else is done.
  std::filesystem::copy_file(Box("a") + "/m.pt", Box("b") + "/m.pt");
  EXPECT_TRUE(Learns("b"));
  EXPECT_TRUE(Learns("a"));
  EXPECT_EQ(told().find("is not taken up"), std::string::npos);
}

// Two people change the plan at once, each through another node: all nodes come
// to hold the same one.
TEST_F(NetworkOrders, OfTwoEditsAtOnceOneWinsEverywhere) {
  for (const char* name : {"a", "b", "c"}) ASSERT_NO_FATAL_FAILURE(Start(name));
  DoAt("a", {"plan", "apply", folder_.File("plan.yaml")});
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(HoldsVersion(name, 1));

  std::vector<Outcome> edits(2);
  std::vector<std::thread> people;
  const std::vector<std::string> at = {"a", "b"};
  for (size_t i = 0; i < edits.size(); ++i) {
    people.emplace_back([&, i] {
      edits[i] = DflctlAt(at[i], {"set", absl::StrCat("batch_size=", 4 + i)});
    });
  }
  for (std::thread& person : people) person.join();
  int won = 0;
  for (const Outcome& edit : edits) {
    EXPECT_TRUE(edit.exit_code == kOk || edit.exit_code == kConflict)
        << edit.err;
    won += edit.exit_code == kOk ? 1 : 0;
  }
  EXPECT_GE(won, 1);
  EXPECT_TRUE(Eventually(absl::Seconds(30),
                         [&] {
                           return PlanOf("a") == PlanOf("b") &&
                                  PlanOf("b") == PlanOf("c") &&
                                  PlanOf("a").find("batch_size: 8") ==
                                      std::string::npos;
                         }))
      << PlanOf("a") << PlanOf("b") << PlanOf("c");

  // And back again, through the third.
  const Outcome back = DflctlAt("c", {"plan", "rollback", "1"});
  ASSERT_EQ(back.exit_code, kOk) << back.err;
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_TRUE(Eventually(absl::Seconds(30), [&] {
      return absl::StrContains(PlanOf(name), "batch_size: 8");
    })) << name;
  }
}

TEST_F(NetworkOrders, ADrainedNodeHaltsAndGoesOnWhenItIsTold) {
  for (const char* name : {"a", "b", "c"}) ASSERT_NO_FATAL_FAILURE(Start(name));
  DoAt("a", {"plan", "apply", folder_.File("plan.yaml"), "--start"});
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(Learns(name)) << name;
  DoAt("a", {"node", "drain", "b", "--reason", "a new disk"});
  EXPECT_TRUE(Becomes("b", Phase::kPaused));
  const int64_t step = node("b").Status().step;
  EXPECT_TRUE(Learns("a"));
  EXPECT_TRUE(Learns("c"));
  EXPECT_EQ(node("b").Status().step, step);
  DoAt("c", {"node", "undrain", "b"});
  EXPECT_TRUE(Learns("b"));
}

}  // namespace
}  // namespace dfl::testing_support
