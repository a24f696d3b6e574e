// Checkpoints out of a daemon and into one, through control's backend: on the
// machine that wrote them, and on another.
#include "daemon/app/models/checkpoint_transfers.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "daemon/store/checkpoint_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kAlone[] =
    "run: alone\n"
    "seed: 5\n"
    "members: [anna]\n"
    "model: {kind: linear, classes: 0}\n"
    "algorithm: {name: local}\n"
    "evaluation: {every_steps: 0}\n"
    "checkpoint: {interval: 1h}\n"
    "stop: {steps: 50}\n";

class CheckpointTransfersTest : public testing::Test {
 protected:
  // A daemon on new disks, with `plan` if it has a text.
  BackendStage& Start(const std::string& plan = kAlone) {
    stage_.reset();
    disk_ = simports::SimFiles();
    kept_ = simports::SimFiles();
    return StartAgain(plan);
  }
  BackendStage& StartAgain(const std::string& plan = "") {
    stage_.reset();
    stage_ = std::make_unique<BackendStage>(
        disk_, learners_, BackendOptions(), nullptr, nullptr,
        /*insecure_records=*/false, /*gossips=*/false, &kept_);
    EXPECT_TRUE(stage_->backend().Restore().ok());
    if (plan.empty()) return *stage_;
    const auto applied = stage_->Apply(plan);
    EXPECT_TRUE(applied.ok()) << applied.status();
    return *stage_;
  }
  void Train() {
    ASSERT_TRUE(stage_->Train(control::TrainAction::kStart).ok());
    while (stage_->Status().phase != ports::Phase::kFinished) {
    }
  }
  // The file of a node that has finished.
  std::string FinishedFile() {
    Start();
    Train();
    EXPECT_TRUE(stage_->SaveCheckpoint().ok());
    const auto bytes = stage_->ExportCheckpoint();
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }
  // `file`, changed.
  template <typename Change>
  static std::string With(const std::string& file, Change change) {
    simports::SimFiles files;
    EXPECT_TRUE(files.WriteAtomically("file", file).ok());
    auto read = store::ReadCheckpoint(files, "file");
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) return "";
    change(*read);
    const std::atomic<bool> go{false};
    EXPECT_TRUE(store::WriteCheckpoint(files, "file", 1, *read, go).ok());
    return *files.Read("file");
  }
  // The node's model.
  std::string Model() {
    const auto source = stage_->Export(control::ModelFileFormat::kSafetensors);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *(*source)->Read(0, (*source)->total_bytes()) : "";
  }
  std::string Refusal(const std::string& file, bool other_version = false) {
    const auto restored = stage_->RestoreCheckpoint(file, other_version);
    EXPECT_FALSE(restored.ok());
    return std::string(restored.status().message());
  }

  simports::SimFiles disk_;
  simports::SimFiles kept_;
  FakeLearners learners_;
  std::unique_ptr<BackendStage> stage_;
};

TEST_F(CheckpointTransfersTest, WhatIsSavedIsListed) {
  Start();
  EXPECT_THAT(stage_->Checkpoints()->checkpoints, IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(stage_->ExportCheckpoint().status()));
  const auto nothing = stage_->SaveCheckpoint();
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing.status()));
  EXPECT_THAT(std::string(nothing.status().message()),
              HasSubstr("dflctl train start"));
  Train();
  const auto saved = stage_->SaveCheckpoint();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->node, "anna");
  EXPECT_EQ(saved->run_id, "alone");
  EXPECT_EQ(saved->plan_version, 1u);
  EXPECT_EQ(saved->algorithm, "local");
  EXPECT_EQ(saved->iteration, 50);
  EXPECT_EQ(saved->steps, 50);
  EXPECT_GT(saved->written, absl::UnixEpoch());
  const auto list = stage_->Checkpoints();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->checkpoints.size(), 1u);
  EXPECT_EQ(list->checkpoints[0].file, saved->file);
  EXPECT_EQ(list->checkpoints[0].bytes, saved->bytes);
  EXPECT_EQ(stage_->ExportCheckpoint()->size(),
            static_cast<size_t>(saved->bytes));
}

TEST_F(CheckpointTransfersTest, AnOrderThatNobodyWaitsForIsNotCarriedOut) {
  Start();
  Train();
  EXPECT_TRUE(
      absl::IsCancelled(stage_->SaveCheckpoint([] { return false; }).status()));
  EXPECT_THAT(stage_->Checkpoints()->checkpoints, IsEmpty());
}

TEST_F(CheckpointTransfersTest, AnotherMachineGoesOnFromTheFile) {
  const std::string file = FinishedFile();
  const std::string model = Model();
  Start();  // on an empty disk
  EXPECT_EQ(stage_->Status().step, 0);
  const auto restored = stage_->RestoreCheckpoint(file);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->checkpoint.iteration, 50);
  EXPECT_EQ(restored->checkpoint.file, "checkpoint.0");
  EXPECT_EQ(restored->phase, ports::Phase::kIdle);
  EXPECT_EQ(stage_->Status().step, 50);
  EXPECT_EQ(Model(), model);
  // It is the node's from here on, over restarts, too.
  EXPECT_THAT(kept_.names(), ElementsAre("checkpoint.0"));
  StartAgain();
  EXPECT_EQ(stage_->Status().step, 50);
  EXPECT_EQ(Model(), model);
}

TEST_F(CheckpointTransfersTest, ARunThatHasEndedIsPausedWithWhatIsRestored) {
  const std::string file = FinishedFile();
  const auto restored = stage_->RestoreCheckpoint(file);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->phase, ports::Phase::kPaused);
  EXPECT_THAT(stage_->Status().phase_reason,
              HasSubstr("restored from the checkpoint of step 50"));
}

TEST_F(CheckpointTransfersTest, OnlyAsManyStayAsThePlanSays) {
  const std::string file = FinishedFile();
  for (int64_t step = 49; step > 45; --step) {
    const auto restored = stage_->RestoreCheckpoint(
        With(file, [&](runtime::Checkpoint& x) { x.head.step = step; }));
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_THAT(restored->checkpoint.file,
                testing::AnyOf("checkpoint.0", "checkpoint.1"));
    EXPECT_EQ(stage_->Checkpoints()->checkpoints[0].iteration, step);
  }
  EXPECT_THAT(kept_.names(), ElementsAre("checkpoint.0", "checkpoint.1"));
}

TEST_F(CheckpointTransfersTest, WhatIsRefusedNamesBothSidesAndChangesNothing) {
  const std::string file = FinishedFile();
  const std::string model = Model();
  using Checkpoint = runtime::Checkpoint;
  EXPECT_THAT(Refusal(With(file, [](Checkpoint& x) { x.head.node = "bert"; })),
              AllOf(HasSubstr("of node bert, and this node is anna"),
                    HasSubstr("dflctl model import")));
  EXPECT_THAT(Refusal(With(file, [](Checkpoint& x) { x.head.run_id = "b"; })),
              HasSubstr("is of run b, version 1 of its plan, and run alone, "
                        "version 1, is in force here"));
  EXPECT_THAT(
      Refusal(With(file, [](Checkpoint& x) { x.head.plan_version = 9; })),
      HasSubstr("bring version 9 into force first"));
  EXPECT_THAT(
      Refusal(With(file, [](Checkpoint& x) { x.head.contract[6] ^= 1; }), true),
      HasSubstr("model is "));
  EXPECT_THAT(Refusal(With(file,
                           [](Checkpoint& x) {
                             auto longer =
                                 std::make_shared<runtime::Snapshot>(*x.model);
                             longer->parameters.push_back(1);
                             x.model = longer;
                             x.gradient.push_back(1);
                           })),
              HasSubstr("has 11 parameters and 0 buffer values, and the model "
                        "here has 10 and 0"));
  // These show only once all of it is there.
  EXPECT_THAT(Refusal(With(file,
                           [](Checkpoint& x) {
                             x.gradient[3] = 0.0F;
                             x.algorithm.fields.clear();
                           })),
              testing::Not(IsEmpty()));
  std::string damaged = file;
  damaged[damaged.size() - 5] ^= 1;
  EXPECT_THAT(Refusal(damaged), HasSubstr("cannot be used"));
  EXPECT_THAT(Refusal(file.substr(0, file.size() - 1)), HasSubstr("torn"));
  EXPECT_THAT(Refusal(std::string(100, 'x')),
              HasSubstr("no checkpoint of dfld's"));
  EXPECT_EQ(Model(), model);
  EXPECT_EQ(stage_->Status().phase, ports::Phase::kFinished);
  EXPECT_THAT(kept_.names(), ElementsAre("checkpoint.0"));
}

TEST_F(CheckpointTransfersTest, WithoutThePlanItSaysWhichOne) {
  const std::string file = FinishedFile();
  Start("");
  EXPECT_THAT(Refusal(file),
              AllOf(HasSubstr("is of run alone, version 1 of its plan, and no "
                              "plan is in force here"),
                    HasSubstr("dflctl plan apply FILE")));
  // Under another version, only by force.
  Start(absl::StrCat("version: 3\n", kAlone));
  EXPECT_THAT(Refusal(file), HasSubstr("and version 3 is in force here"));
  EXPECT_TRUE(stage_->RestoreCheckpoint(file, true).ok());
  EXPECT_EQ(stage_->Status().step, 50);
}

TEST_F(CheckpointTransfersTest, WhereCheckpointsAreOffItSaysSo) {
  const std::string file = FinishedFile();
  Start(absl::StrReplaceAll(kAlone, {{"interval: 1h", "interval: 0s"}}));
  EXPECT_THAT(Refusal(file), HasSubstr("dflctl set checkpoint.interval=30s"));
}

TEST_F(CheckpointTransfersTest, AFullDiskLeavesWhatWasThere) {
  const std::string file = FinishedFile();
  kept_.set_capacity(static_cast<int64_t>(file.size()) + 100);
  const auto full = stage_->RestoreCheckpoint(file);
  EXPECT_TRUE(absl::IsResourceExhausted(full.status())) << full.status();
  EXPECT_EQ(stage_->Status().phase, ports::Phase::kFinished);
  EXPECT_THAT(kept_.names(), ElementsAre("checkpoint.0"));
  kept_.set_capacity(-1);
  EXPECT_TRUE(stage_->RestoreCheckpoint(file).ok());
}

TEST_F(CheckpointTransfersTest, OneThatTrainsRefusesAndSaves) {
  const std::string file = FinishedFile();
  absl::Notification begun;
  absl::Notification go_on;
  learners_.on_gradient = [&] {
    if (begun.HasBeenNotified()) return;
    begun.Notify();
    go_on.WaitForNotification();
  };
  Start();
  ASSERT_TRUE(stage_->Train(control::TrainAction::kStart).ok());
  begun.WaitForNotification();
  EXPECT_THAT(Refusal(file), HasSubstr("dflctl train pause"));
  // It waits for the boundary.
  absl::Notification saved;
  stage_->backend().checkpoints().Save(
      nullptr, [&](const absl::StatusOr<control::CheckpointInfo>& info) {
        EXPECT_TRUE(info.ok()) << info.status();
        EXPECT_EQ(info.ok() ? info->iteration : 0, 1);
        saved.Notify();
      });
  stage_->Status();  // the order is with the node
  EXPECT_FALSE(saved.HasBeenNotified());
  go_on.Notify();
  saved.WaitForNotification();
  stage_.reset();  // before what its gradients look at
}

// An upload that is given up leaves nothing, and makes room for the next.
TEST_F(CheckpointTransfersTest, AnUploadThatEndsHalfWayLeavesNothing) {
  const std::string file = FinishedFile();
  {
    std::unique_ptr<control::CheckpointSink> sink;
    absl::Notification opened;
    stage_->backend().checkpoints().Restore(
        {static_cast<int64_t>(file.size()), false},
        [&](absl::StatusOr<std::unique_ptr<control::CheckpointSink>> answer) {
          ASSERT_TRUE(answer.ok()) << answer.status();
          sink = *std::move(answer);
          opened.Notify();
        });
    opened.WaitForNotification();
    ASSERT_TRUE(sink->Append(file.substr(0, file.size() - 1)).ok());
    EXPECT_THAT(Refusal(file), HasSubstr("another checkpoint is being"));
  }
  EXPECT_THAT(kept_.names(), ElementsAre("checkpoint.0"));
  EXPECT_TRUE(stage_->RestoreCheckpoint(file).ok());
}

}  // namespace
}  // namespace dfl::app
