// What the daemon does with plans, orders and addresses, and what of it is
// there after a restart.
#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using control::TrainAction;
using ports::Phase;
using runtime::DesiredPhase;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kAlone[] =
    "members: [anna]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: local}\n";

class BackendTest : public testing::Test {
 protected:
  // The daemon goes, and the next one begins on the same disk.
  BackendStage& Start(BackendOptions options = {}) {
    stage_.reset();
    stage_ =
        std::make_unique<BackendStage>(disk_, learners_, std::move(options));
    restored_ = stage_->backend().Restore();
    return *stage_;
  }
  // What the disk holds.
  runtime::RunState OnDisk() {
    const store::NodeStateCodec codec;
    const auto loaded = runtime::StateFiles(disk_, codec).Load();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? loaded->state : runtime::RunState();
  }
  // The plan that the backend holds, changed.
  std::string Changed(const std::string& from, const std::string& to) {
    std::string yaml = stage_->backend().Plan().yaml;
    const uint64_t version = stage_->backend().Plan().version;
    EXPECT_THAT(yaml, HasSubstr(from));
    return absl::StrReplaceAll(
        yaml, {{from, to},
               {absl::StrCat("version: ", version, "\n"),
                absl::StrCat("version: ", version + 1, "\n")}});
  }

  simports::SimFiles disk_;
  FakeLearners learners_;
  std::unique_ptr<BackendStage> stage_;
  absl::Status restored_;
};

TEST_F(BackendTest, AFirstPlanGetsVersionRunAndSeed) {
  BackendStage& stage = Start();
  ASSERT_TRUE(restored_.ok()) << restored_;
  const auto applied = stage.Apply(kPlanYaml, 0);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->version, 1u);
  EXPECT_THAT(applied->run_id, testing::EndsWith("-1"));
  const control::PlanDocument plan = stage.backend().Plan();
  EXPECT_EQ(plan.version, 1u);
  EXPECT_EQ(plan.version_in_force, 1u);
  EXPECT_THAT(plan.yaml, HasSubstr("seed: "));
  EXPECT_EQ(OnDisk().plan->text, plan.yaml);
}

TEST_F(BackendTest, TheSameDocumentChangesNothing) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  const auto again = stage.Apply(stage.backend().Plan().yaml, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->unchanged);
  // Also as its author wrote it, without version, run and seed.
  const auto as_written = stage.Apply(kPlanYaml);
  ASSERT_TRUE(as_written.ok()) << as_written.status();
  EXPECT_TRUE(as_written->unchanged);
  EXPECT_EQ(as_written->version, 1u);
  EXPECT_EQ(stage.backend().Plan().version, 1u);
}

TEST_F(BackendTest, AChangeKeepsTheLearnerUnlessTheModelIsAnother) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  ASSERT_TRUE(stage.Apply(Changed("p: 0.5", "p: 0.25"), 1).ok());
  EXPECT_EQ(learners_.built, 1);
  ASSERT_TRUE(
      stage.Apply(Changed("classes: 0\n", "classes: 0\n  l2: 0.1\n"), 2).ok());
  EXPECT_EQ(learners_.built, 2);
}

TEST_F(BackendTest, AStaleChangeIsRefused) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  const auto stale = stage.Apply(Changed("p: 0.5", "p: 0.25"), 7);
  EXPECT_EQ(stale.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(stage.backend().Plan().version, 1u);
}

TEST_F(BackendTest, WhoIsNoMemberTakesNoPlan) {
  BackendStage& stage = Start();
  const auto applied =
      stage.Apply(absl::StrReplaceAll(kPlanYaml, {{"anna, ", ""}}));
  EXPECT_EQ(applied.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(stage.backend().Plan().version, 0u);
}

TEST_F(BackendTest, AMistakeIsToldWithItsLine) {
  BackendStage& stage = Start();
  const auto applied = stage.Apply(
      absl::StrReplaceAll(kPlanYaml, {{"kind: complete", "kind: rign"}}));
  EXPECT_EQ(applied.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(applied.status().message()), HasSubstr("plan:4: "));
}

TEST_F(BackendTest, ADryRunTellsFactsAndKeepsNothing) {
  BackendStage& stage = Start();
  const auto dry = stage.Apply(kPlanYaml, 0, /*dry_run=*/true);
  ASSERT_TRUE(dry.ok()) << dry.status();
  ASSERT_TRUE(dry->facts.has_value());
  EXPECT_EQ(dry->facts->parameter_count, 10);
  EXPECT_GT(dry->facts->memory_bytes, 0);
  EXPECT_EQ(stage.backend().Plan().version, 0u);
  EXPECT_EQ(OnDisk().plan->version, 0u);
}

TEST_F(BackendTest, TheStatusSaysWhatComputesAndOnHowManyThreads) {
  BackendStage& stage = Start();
  EXPECT_EQ(stage.backend().Status().learner, "");
  EXPECT_EQ(stage.backend().Status().threads, 0);
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  const control::DaemonStatus status = stage.backend().Status();
  EXPECT_EQ(status.learner, "fake");
  EXPECT_EQ(status.threads, 3);
  EXPECT_EQ(status.threads_reason, "fake takes three");
}

TEST_F(BackendTest, ADiskThatIsFullRefusesAPlan) {
  BackendStage& stage = Start();
  disk_.set_capacity(0);
  EXPECT_EQ(stage.Apply(kPlanYaml).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stage.backend().Plan().version, 0u);
  EXPECT_EQ(stage.Status().plan_version, 0u);
}

TEST_F(BackendTest, APlanBeyondTheMemoryIsRefusedAndAStoredOneIsTakenUp) {
  ASSERT_TRUE(Start().Apply(kPlanYaml).ok());
  BackendOptions small;
  small.limits.memory = {1000, "compute.memory_limit"};
  BackendStage& stage = Start(small);
  EXPECT_TRUE(restored_.ok()) << restored_;
  EXPECT_EQ(stage.Status().plan_version, 1u);
  // What needs no more than the plan that is held may follow.
  EXPECT_TRUE(stage.Apply(Changed("p: 0.5", "p: 0.25"), 1).ok());
  const auto more =
      stage.Apply(Changed("  fixed:\n", "  fixed:\n    - abel\n"), 2);
  EXPECT_EQ(more.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(more.status().message()),
              HasSubstr("compute.memory_limit"));
}

TEST_F(BackendTest, AModelBeyondTheLimitIsRefused) {
  BackendOptions options;
  options.limits.max_model_bytes = 39;
  const auto applied = Start(options).Apply(kPlanYaml);
  EXPECT_THAT(std::string(applied.status().message()),
              HasSubstr("takes 40 bytes; this node's limits.max_model_bytes "
                        "allows 39"));
}

TEST_F(BackendTest, ARestartTakesUpPlanAndTraining) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  ASSERT_TRUE(stage.Train(TrainAction::kStart).ok());
  EXPECT_EQ(OnDisk().desired_phase, DesiredPhase::kTraining);
  BackendStage& next = Start();
  ASSERT_TRUE(restored_.ok()) << restored_;
  EXPECT_NE(next.Status().phase, Phase::kIdle);
  EXPECT_EQ(next.Status().plan_version, 1u);
  EXPECT_EQ(OnDisk().starts, 2u);
}

TEST_F(BackendTest, ARestartKeepsAStoppedNodeStopped) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  ASSERT_TRUE(stage.Train(TrainAction::kStart).ok());
  const auto stopped = stage.Train(TrainAction::kStop);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(*stopped, Phase::kStopped);
  EXPECT_EQ(Start().Status().phase, Phase::kIdle);
  EXPECT_EQ(OnDisk().desired_phase, DesiredPhase::kStopped);
}

TEST_F(BackendTest, AnOrderThatIsNotOnDiskIsNoSuccess) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  disk_.set_capacity(0);
  const auto started = stage.Train(TrainAction::kStart);
  EXPECT_EQ(started.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(started.status().message()),
              HasSubstr("after a restart"));
  EXPECT_EQ(stage.Status().phase, Phase::kJoining);
}

TEST_F(BackendTest, AnOrderWithoutAPlanIsRefused) {
  EXPECT_EQ(Start().Train(TrainAction::kStart).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// The document is known, and no longer in the way when the data is there again.
TEST_F(BackendTest, AStoredPlanThatDoesNotFitCanBeGivenAgain) {
  ASSERT_TRUE(Start().Apply(kPlanYaml).ok());
  learners_.failure = absl::NotFoundError("no such data");
  BackendStage& stage = Start();
  EXPECT_EQ(restored_, learners_.failure);
  EXPECT_EQ(stage.backend().Plan().version, 1u);
  EXPECT_EQ(stage.backend().Plan().version_in_force, 0u);
  EXPECT_EQ(OnDisk().plan->version, 1u);
  learners_.failure = absl::OkStatus();
  const auto again = stage.Apply(stage.backend().Plan().yaml, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->unchanged);
  EXPECT_EQ(stage.Status().plan_version, 1u);
}

TEST_F(BackendTest, TrainingGoesOnOnceTheStoredPlanIsTakenUpAfterAll) {
  ASSERT_TRUE(Start().Apply(kPlanYaml).ok());
  ASSERT_TRUE(stage_->Train(TrainAction::kStart).ok());
  learners_.failure = absl::NotFoundError("no such model");
  BackendStage& stage = Start();
  ASSERT_FALSE(restored_.ok());
  EXPECT_THAT(stage.backend().Status().warnings,
              Contains(AllOf(HasSubstr("stored plan is not taken up"),
                             HasSubstr("no such model"))));
  learners_.failure = absl::OkStatus();
  ASSERT_TRUE(stage.Apply(stage.backend().Plan().yaml).ok());
  EXPECT_EQ(stage.Status().phase, Phase::kJoining);
  EXPECT_THAT(stage.backend().Status().warnings,
              Not(Contains(HasSubstr("stored plan"))));
  // What was stopped meanwhile would stay so: the order is on disk.
  EXPECT_EQ(OnDisk().desired_phase, DesiredPhase::kTraining);
}

// ------------------------------------------------------- orders and the end --

TEST_F(BackendTest, AnOrderThatNobodyWaitsForIsNotCarriedOut) {
  BackendStage& stage = Start();
  control::ApplyPlanOptions options;
  options.yaml = kPlanYaml;
  options.begin = [] { return false; };
  EXPECT_EQ(stage.ApplyAs(options).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(stage.Status().plan_version, 0u);
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  EXPECT_EQ(
      stage.Train(TrainAction::kStart, [] { return false; }).status().code(),
      absl::StatusCode::kCancelled);
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
}

TEST_F(BackendTest, OnlySoManyPlansWaitForTheirTurn) {
  absl::Notification building;
  absl::Notification go_on;
  learners_.on_build = [&] {
    if (building.HasBeenNotified()) return;
    building.Notify();
    go_on.WaitForNotification();
  };
  BackendStage& stage = Start();
  std::atomic<int> answered = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 50; ++i) {
    control::ApplyPlanOptions options;
    options.yaml = kPlanYaml;
    stage.backend().ApplyPlan(options, [&](const auto& result) {
      ++answered;
      if (absl::IsResourceExhausted(result.status())) ++refused;
    });
    if (i == 0) building.WaitForNotification();
  }
  EXPECT_EQ(refused, 42);
  go_on.Notify();
  // The last one is through when this is.
  while (answered < 50) stage.Status();
  EXPECT_TRUE(stage.Apply(kPlanYaml).ok());
}

TEST_F(BackendTest, AnExportThatWaitsForTheTrainerOutlivesTheBackend) {
  // The trainer's thread looks at them until the stage has ended.
  struct Gate {
    absl::Notification begun;
    absl::Notification go_on;
  };
  const auto gate = std::make_shared<Gate>();
  learners_.on_gradient = [gate] {
    if (gate->begun.HasBeenNotified()) return;
    gate->begun.Notify();
    gate->go_on.WaitForNotification();
  };
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(kAlone).ok());
  ASSERT_TRUE(stage.Train(TrainAction::kStart).ok());
  gate->begun.WaitForNotification();
  absl::Notification answered;
  absl::Status answer;
  stage.backend().BeginExport(
      control::ModelFileFormat::kTorchScript,
      [&](const absl::StatusOr<std::unique_ptr<control::ModelSource>>& file) {
        answer = file.status();
        answered.Notify();
      });
  stage.Status();  // the export has been posted, and waits for the gradient
  stage.EndBackend();
  gate->go_on.Notify();
  answered.WaitForNotification();
  EXPECT_EQ(answer.message(), "there is none");
}

TEST_F(BackendTest, AddressesThatWereAddedAreDialledAfterARestart) {
  BackendOptions options;
  options.peers = {"set:1"};
  BackendStage& stage = Start(options);
  ASSERT_TRUE(stage.backend().AddPeer("hand:2").ok());
  EXPECT_EQ(stage.backend().AddPeer("hand:2").code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(stage.backend().AddPeer("nonsense").code(),
            absl::StatusCode::kInvalidArgument);
  std::vector<control::PeerAddress> peers = Start(options).backend().Peers();
  ASSERT_THAT(peers, SizeIs(2));
  EXPECT_EQ(peers[0].address, "hand:2");
  EXPECT_EQ(peers[0].origin, "control");
  EXPECT_EQ(peers[1].origin, "settings");
  ASSERT_TRUE(stage_->backend().RemovePeer("hand:2").ok());
  EXPECT_THAT(std::string(stage_->backend().RemovePeer("set:2").message()),
              HasSubstr("did you mean set:1?"));
  EXPECT_THAT(Start(options).backend().Peers(), SizeIs(1));
}

TEST_F(BackendTest, AnAddressThatCannotBeKeptIsNotAdded) {
  BackendStage& stage = Start();
  disk_.set_capacity(0);
  EXPECT_EQ(stage.backend().AddPeer("hand:2").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(stage.backend().Peers(), IsEmpty());
}

// A busy disk takes seconds to sync a file; the node obeys at once, and so the
// answer does not wait for ever.
TEST_F(BackendTest, AnOrderIsAnsweredThoughTheDiskIsSlow) {
  SlowDisk slow(disk_);
  BackendStage stage(slow, learners_);
  ASSERT_TRUE(stage.backend().Restore().ok());
  ASSERT_TRUE(stage.Apply(kPlanYaml).ok());
  slow.Hold();
  const auto started = stage.Train(TrainAction::kStart);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(stage.Status().phase, Phase::kJoining);
  // It is written down when the disk is ready again.
  slow.Release();
  ASSERT_TRUE(stage.Train(TrainAction::kStop).ok());
  EXPECT_EQ(OnDisk().desired_phase, DesiredPhase::kStopped);
}

}  // namespace
}  // namespace dfl::app
