// A node's checkpoint is kept in a file, its machine is lost, and another one
// with its name goes on from the file, while its neighbours have gone on.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/daemon_process.h"

namespace dfl::testing_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Seconds(60);

class RestoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(
        folder_.File("scenario.yaml"),
        PlanText() + "network:\n  problem: {kind: linear, n: 16, rows: 20}\n");
    std::vector<std::string> addresses;
    for (const std::string& name : names_) {
      DaemonProcess::Options options;
      options.program = "analytic_dfld";
      options.environment = {{"DFL_SCENARIO", folder_.File("scenario.yaml")}};
      options.name = name;
      options.folder = folder_.path();
      options.train_csv = "unread.csv";
      options.peers = addresses;
      nodes_.push_back(std::make_unique<DaemonProcess>(options));
      ASSERT_TRUE(nodes_.back()->Start()) << nodes_.back()->log();
      addresses.push_back(nodes_.back()->peer_address());
    }
    for (const auto& node : nodes_) Apply(*node);
    for (const auto& node : nodes_) {
      ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
    }
  }

  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& node : nodes_) {
      std::cerr << "---- log\n" << node->log();
    }
  }

  std::string PlanText() const {
    return absl::StrCat(
        "run: kept\n"
        "seed: 11\n"
        "version: 1\n"
        "members: [",
        absl::StrJoin(names_, ", "),
        "]\n"
        "model: {kind: linear, classes: 0}\n"
        "batch_size: 4\n"
        "deadline: {exchange: 1s}\n"
        "checkpoint: {interval: 500ms, keep: 3}\n"
        "evaluation: {every_steps: 0}\n"
        "topology: {kind: ring}\n"
        "stop: {steps: 1000000}\n"
        "algorithm: {name: k-gt}\n");
  }

  void Apply(DaemonProcess& node) {
    client::ApplyPlanOptions apply;
    apply.yaml = PlanText();
    const auto applied = node.client().ApplyPlan(apply);
    ASSERT_TRUE(applied.ok()) << applied.status();
  }
  static bool Reaches(DaemonProcess& node, int64_t step) {
    return node.StatusBecomes(kPatience,
                              [step](const client::NodeStatus& status) {
                                return status.step >= step;
                              });
  }
  static bool Becomes(DaemonProcess& node, client::Phase phase) {
    return node.StatusBecomes(kPatience,
                              [phase](const client::NodeStatus& status) {
                                return status.phase == phase;
                              });
  }
  static void Pause(DaemonProcess& node) {
    ASSERT_TRUE(node.client().Train(client::TrainAction::kPause).ok());
    ASSERT_TRUE(Becomes(node, client::Phase::kPaused)) << node.log();
  }
  static Outcome Ctl(const DaemonProcess& node,
                     std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), Program("dflctl"));
    arguments.insert(arguments.end(), {"-t", node.target()});
    return RunCommand(arguments);
  }
  // Of the file that is exported.
  static std::string Model(DaemonProcess& node) {
    std::string bytes;
    const auto exported = node.client().ExportModel(
        client::ModelFormat::kSafetensors,
        [&](absl::string_view data, int64_t /*total*/) {
          bytes.append(data.data(), data.size());
          return absl::OkStatus();
        });
    EXPECT_TRUE(exported.ok()) << exported.status();
    return bytes;
  }
  // Names in the state directory that begin so.
  std::vector<std::string> StateFiles(const std::string& node,
                                      const std::string& begin) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(
             folder_.File(absl::StrCat(node, ".state")))) {
      const std::string name = entry.path().filename();
      if (absl::StartsWith(name, begin)) found.push_back(name);
    }
    return found;
  }
  void Lose(DaemonProcess& node) {
    node.Kill();
    std::filesystem::remove_all(
        folder_.File(absl::StrCat(node.name(), ".state")));
    ASSERT_TRUE(node.Start()) << node.log();
  }
  // What the two ends of an edge see differently, but for rounding.
  static double LostMass(const client::NodeStatus& status) {
    const auto it = status.gauges.find("mass_imbalance");
    return it == status.gauges.end() || it->second < 1e-3 ? 0 : it->second;
  }

  const std::vector<std::string> names_ = {"a", "b", "c", "d"};
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<DaemonProcess>> nodes_;
};

TEST_F(RestoreTest, AnotherMachineHasTheSameModelAndIteration) {
  DaemonProcess& d = *nodes_[3];
  // So long that the others are not twice as far when it is back.
  absl::SleepFor(absl::Seconds(6));
  ASSERT_TRUE(Reaches(d, 400)) << d.log();
  Pause(d);
  const std::string file = folder_.File("d.ckpt");
  const Outcome saved = Ctl(d, {"checkpoint", "save", "--to", file});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  const client::NodeStatus before = d.Status();
  const std::string model = Model(d);
  EXPECT_THAT(saved.out, HasSubstr(absl::StrCat("(", before.step, " steps, ",
                                                before.round, " rounds)")));
  // As many as the plan says, and no more.
  const auto list = d.client().Checkpoints();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_FALSE(list->checkpoints.empty());
  EXPECT_LE(list->checkpoints.size(), 3U);
  EXPECT_EQ(list->checkpoints[0].steps, before.step);
  const uint64_t epoch = list->checkpoints[0].tracker_epoch;
  EXPECT_GT(epoch, 0U);

  // All go on, so that mass crosses its edges which the file knows nothing of,
  // though not for so long that its model is worth nothing.
  ASSERT_TRUE(d.client().Train(client::TrainAction::kStart).ok());
  ASSERT_TRUE(Reaches(d, before.step + 50));
  const int64_t further = nodes_[0]->Status().step + 50;
  ASSERT_TRUE(Reaches(*nodes_[0], further));
  for (int i = 0; i < 3; ++i) Pause(*nodes_[static_cast<size_t>(i)]);

  Lose(d);
  EXPECT_THAT(d.client().Checkpoints()->checkpoints, IsEmpty());
  // It is given the plan, if its neighbours were not faster.
  Apply(d);
  ASSERT_TRUE(d.StatusBecomes(kPatience, [](const client::NodeStatus& status) {
    return status.plan_version == 1;
  })) << d.log();
  const Outcome restored = Ctl(d, {"checkpoint", "restore", file});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("; it is idle, and goes on from there"));
  EXPECT_EQ(d.Status().step, before.step);
  EXPECT_EQ(d.Status().round, before.round);
  EXPECT_EQ(Model(d), model);

  // It is of no other node, and the others say so.
  const Outcome refused =
      Ctl(*nodes_[0], {"checkpoint", "restore", file, "-o", "json"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("of node d, and this node is a"),
                                 HasSubstr("dflctl model import")));

  for (const auto& node : nodes_) {
    ASSERT_TRUE(node->client().Train(client::TrainAction::kStart).ok());
  }
  const int64_t goal = nodes_[0]->Status().step + 300;
  for (const auto& node : nodes_) {
    EXPECT_TRUE(Reaches(*node, goal)) << node->name() << "\n" << node->log();
    EXPECT_EQ(LostMass(node->Status()), 0) << node->name();
  }
  EXPECT_THAT(d.log(),
              HasSubstr(absl::StrCat("goes on from the checkpoint of step ",
                                     before.step)));
  EXPECT_THAT(d.log(), Not(HasSubstr("took the model of")));
  // Its old sums are in nobody's books: all are in a later epoch.
  for (const auto& node : nodes_) {
    const auto now = node->client().SaveCheckpoint();
    ASSERT_TRUE(now.ok()) << now.status();
    EXPECT_GT(now->tracker_epoch, epoch) << node->name();
  }
}

// On the machine that trained on, back to what was saved.
TEST_F(RestoreTest, ANodeGoesBackWhileItsNeighboursTrain) {
  DaemonProcess& d = *nodes_[3];
  ASSERT_TRUE(Reaches(d, 400)) << d.log();
  const std::string file = folder_.File("d.ckpt");
  const Outcome saved =
      Ctl(d, {"checkpoint", "save", "--to", file, "-o", "json"});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  const auto said = nlohmann::json::parse(saved.out)["targets"][0];
  const auto steps = said["checkpoint"]["steps"].get<int64_t>();
  const auto epoch = said["checkpoint"]["tracker_epoch"].get<uint64_t>();
  const Outcome trains = Ctl(d, {"checkpoint", "restore", file});
  EXPECT_EQ(trains.exit_code, 1);
  EXPECT_THAT(trains.err, HasSubstr("dflctl train pause"));
  ASSERT_TRUE(Reaches(d, steps + 20));
  Pause(d);
  const Outcome restored = Ctl(d, {"checkpoint", "restore", file});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(d.Status().step, steps);
  EXPECT_EQ(d.Status().phase, client::Phase::kPaused);
  ASSERT_TRUE(d.client().Train(client::TrainAction::kResume).ok());
  const int64_t goal = nodes_[0]->Status().step + 300;
  for (const auto& node : nodes_) {
    EXPECT_TRUE(Reaches(*node, goal)) << node->name() << "\n" << node->log();
    EXPECT_EQ(LostMass(node->Status()), 0) << node->name();
    const auto now = node->client().SaveCheckpoint();
    ASSERT_TRUE(now.ok()) << now.status();
    EXPECT_GT(now->tracker_epoch, epoch) << node->name();
  }
}

// The daemon is killed in the midst of an upload.
TEST_F(RestoreTest, AKilledUploadLeavesNothing) {
  DaemonProcess& d = *nodes_[3];
  ASSERT_TRUE(Reaches(d, 100)) << d.log();
  Pause(d);
  const std::string file = folder_.File("d.ckpt");
  ASSERT_EQ(Ctl(d, {"checkpoint", "save", "--to", file}).exit_code, 0);
  const std::string bytes = ReadFile(file);
  int parts = 0;
  const auto cut = d.client().RestoreCheckpoint(
      static_cast<int64_t>(bytes.size()),
      [&](int64_t offset, int64_t max_bytes) -> absl::StatusOr<std::string> {
        if (++parts == 2) {
          EXPECT_THAT(StateFiles("d", ".writing-checkpoint"), Not(IsEmpty()));
          d.Kill();
          return absl::AbortedError("killed");
        }
        return bytes.substr(static_cast<size_t>(offset),
                            static_cast<size_t>(max_bytes) / 2);
      },
      {});
  EXPECT_EQ(cut.status(), absl::AbortedError("killed"));
  ASSERT_TRUE(d.Start()) << d.log();
  EXPECT_THAT(StateFiles("d", ".writing-"), IsEmpty());
  EXPECT_THAT(StateFiles("d", "checkpoint.incoming"), IsEmpty());
  EXPECT_EQ(Ctl(d, {"checkpoint", "restore", file}).exit_code, 0);
}

}  // namespace
}  // namespace dfl::testing_support
