// Orders of a network, without signatures, as a whole daemon but for its
// sockets obeys them.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/app/network/own_facts.h"
#include "daemon/app/network/plan_archive.h"
#include "daemon/app/orders.h"
#include "daemon/records/record_content.h"
#include "daemon/records/unsigned_record_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using ports::Condition;
using ports::Phase;
using records::RecordKind;
using runtime::DesiredPhase;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using testing_support::Eventually;

class NetworkOrdersTest : public testing::Test {
 protected:
  static std::string Made(RecordKind kind, const std::string& subject,
                          uint64_t counter, const std::string& content) {
    const auto record = records::MakeUnsignedRecord(
        kind, subject, counter, content, "", "ann", absl::Now());
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *record : "";
  }
  static std::string PlanText(uint64_t version, const std::string& p = "0.5",
                              const std::string& members = "anna, bert, carl") {
    return absl::StrCat("version: ", version, "\nrun: run-1\nseed: 3\n",
                        "members: [", members,
                        "]\n"
                        "model: {kind: linear, classes: 0}\n"
                        "algorithm: {name: pame, knobs: {p: ",
                        p, "}}\ntopology: {kind: complete}\n");
  }
  static std::string Plan(uint64_t version, const std::string& p = "0.5") {
    return Made(RecordKind::kPlan, "", version, PlanText(version, p));
  }
  static std::string PlanOf(uint64_t version, const std::string& members) {
    return Made(RecordKind::kPlan, "", version,
                PlanText(version, "0.5", members));
  }
  static std::string Want(uint64_t counter, DesiredPhase phase,
                          const std::vector<std::string>& nodes = {},
                          const std::vector<std::string>& labels = {}) {
    return Made(
        RecordKind::kPhase, "", counter,
        records::ToContent(records::PhaseOrder{phase, nodes, "run-1", labels}));
  }
  static std::string Drain(uint64_t counter, bool draining) {
    return Made(RecordKind::kDrain, "anna", counter,
                records::ToContent(records::DrainOrder{draining, ""}));
  }

  // The daemon without the orders that are on its disk.
  BackendStage& StartDeaf(bool gossips = false) {
    stage_.reset();
    BackendOptions options;
    options.files = &disk_;
    stage_ = std::make_unique<BackendStage>(disk_, learners_, options, nullptr,
                                            &records_disk_,
                                            /*insecure_records=*/true, gossips);
    return *stage_;
  }
  BackendStage& Start(bool gossips = false) {
    StartDeaf(gossips);
    (void)stage_->backend().Restore();
    stage_->backend().Connect();
    return *stage_;
  }
  // What the setup thread was given is done, and the loop knows of it.
  void FinishSetup() {
    (void)stage_->Data("");
    (void)stage_->Status();
  }
  bool HasInForce(uint64_t version) {
    return Eventually(absl::Seconds(10),
                      [&] { return stage_->Status().plan_version == version; });
  }
  bool Becomes(Phase phase) {
    return Eventually(absl::Seconds(10),
                      [&] { return stage_->Status().phase == phase; });
  }
  bool Becomes(Condition condition) {
    return Eventually(absl::Seconds(10),
                      [&] { return stage_->Facts().condition == condition; });
  }

  simports::SimFiles disk_;
  simports::SimFiles records_disk_;
  FakeLearners learners_;
  std::unique_ptr<BackendStage> stage_;
};

TEST_F(NetworkOrdersTest, PlanAndPhaseNeedNoSignature) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
  ASSERT_TRUE(stage.Put(Want(2, DesiredPhase::kStopped, {"anna"})).ok());
  EXPECT_TRUE(Becomes(Phase::kStopped));
  const auto records = stage.backend().ListRecords();
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[0].author, "insecure:ann");
  // They are on disk, and are not obeyed again.
  BackendStage& next = Start();
  EXPECT_THAT(next.backend().ListRecords(), SizeIs(3));
  EXPECT_NE(next.Status().phase, Phase::kJoining);
}

// A box that was away gets the plan and the order from its neighbours.
TEST_F(NetworkOrdersTest, WhoComesLateTrainsWhenTheNetworkDoes) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Put(Want(4, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(stage.Put(Plan(7)).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
  EXPECT_EQ(stage.backend().Plan().version, 7u);
}

TEST_F(NetworkOrdersTest, ADocumentBecomesARecordThatIsPassedOn) {
  BackendStage& stage = Start();
  control::ApplyPlanOptions options;
  options.yaml = kPlanYaml;
  options.caller.name = "uid 0";
  const auto applied = stage.ApplyAs(options);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->version, 1u);
  auto records = stage.backend().ListRecords();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].kind, "plan");
  EXPECT_EQ(records[0].counter, 1u);
  EXPECT_EQ(records[0].author, "insecure:uid 0");
  // The same once more is the same plan, and no further record.
  const auto again = stage.Apply(stage.backend().Plan().yaml);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->unchanged);
  EXPECT_THAT(stage.backend().ListRecords(), SizeIs(1));
  // A dry run makes none.
  ASSERT_TRUE(stage.Apply(PlanText(9, "0.25"), std::nullopt, true).ok());
  EXPECT_THAT(stage.backend().ListRecords(), SizeIs(1));
}

// It ended after the plan was on its disk, and before the record was.
TEST_F(NetworkOrdersTest, APlanThatIsNoRecordYetBecomesOneAtTheNextStart) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(PlanText(1)).ok());
  const simports::SimFiles before = records_disk_;
  ASSERT_TRUE(stage.Apply(PlanText(2, "0.25")).ok());
  stage_.reset();
  records_disk_ = before;
  for (int start = 0; start < 2; ++start) {
    Start();
    FinishSetup();
    EXPECT_EQ(stage_->backend().Plan().version, 2u);
    EXPECT_EQ(stage_->Status().plan_version, 2u);
    const auto records = stage_->backend().ListRecords();
    ASSERT_THAT(records, SizeIs(2));
    EXPECT_FALSE(records[0].current);
    EXPECT_EQ(records[1].counter, 2u);
    EXPECT_TRUE(records[1].current);
  }
}

// Another one came meanwhile, and counts.
TEST_F(NetworkOrdersTest, AStoredPlanGivesWayToANewerRecord) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Apply(PlanText(1)).ok());
  ASSERT_TRUE(stage.Put(Plan(2, "0.25")).ok());
  FinishSetup();
  const simports::SimFiles after = records_disk_;
  stage_.reset();
  disk_ = simports::SimFiles();
  records_disk_ = simports::SimFiles();
  ASSERT_TRUE(Start().Apply(PlanText(1)).ok());
  stage_.reset();
  records_disk_ = after;
  Start();
  EXPECT_TRUE(HasInForce(2));
  EXPECT_EQ(stage_->backend().Plan().version, 2u);
}

TEST_F(NetworkOrdersTest, APlanForWhoseRecordTheDiskHasNoRoomHolds) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  records_disk_.set_capacity(10);
  const auto applied = stage.ApplySigned(Plan(2, "0.25"));
  ASSERT_TRUE(applied.ok()) << applied.status();
  Start();
  FinishSetup();
  EXPECT_EQ(stage_->backend().Plan().version, 2u);
  EXPECT_EQ(stage_->Status().plan_version, 2u);
  const auto records = stage_->backend().ListRecords();
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[1].counter, 2u);
  EXPECT_TRUE(records[1].current);
}

// What is not kept with a plan must be on disk by itself.
TEST_F(NetworkOrdersTest, WithAFullDiskAnOrderWithoutAPlanIsRefused) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  records_disk_.set_capacity(10);
  EXPECT_EQ(stage.Put(Want(1, DesiredPhase::kTraining)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stage.Put(Plan(2, "0.25")).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
  EXPECT_EQ(stage.backend().Plan().version, 1u);
}

TEST_F(NetworkOrdersTest, ANodeThatCannotTakeThePlanIsDegradedUntilItCan) {
  learners_.failure = absl::NotFoundError("model.pt is not in /var/lib/models");
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Put(Plan(1)).ok());
  ASSERT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(Becomes(Condition::kDegraded));
  const ports::MemberFacts facts = stage.Facts();
  EXPECT_THAT(facts.reason, HasSubstr("plan version 1 of insecure:ann"));
  EXPECT_THAT(facts.reason, HasSubstr("model.pt is not in /var/lib/models"));
  EXPECT_EQ(facts.plan_version, 0u);
  EXPECT_THAT(stage.backend().Status().warnings,
              Contains(HasSubstr("model.pt is not in")));
  // It is passed on all the same.
  EXPECT_THAT(stage.backend().ListRecords(), SizeIs(2));
  stage_.reset();

  // The file appears while it runs.
  Start();
  ASSERT_TRUE(Becomes(Condition::kDegraded));
  learners_.Mend();
  EXPECT_TRUE(Becomes(Phase::kJoining)) << "it trains as it was ordered to";
  EXPECT_EQ(stage_->Facts().reason, "");
  EXPECT_EQ(stage_->Facts().plan_version, 1u);
  EXPECT_EQ(stage_->Facts().condition, Condition::kJoining);
}

TEST_F(NetworkOrdersTest, FactsNameThePlanInForceByItsDocument) {
  BackendStage& stage = Start();
  EXPECT_EQ(stage.Facts().plan_hash, 0u);
  EXPECT_EQ(stage.Facts().condition, Condition::kWell);
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  const ports::MemberFacts first = stage.Facts();
  EXPECT_EQ(first.plan_version, 1u);
  EXPECT_EQ(first.plan_hash, records::PlanMark(stage.backend().Plan().yaml));
  ASSERT_TRUE(stage.ApplySigned(Plan(2, "0.25")).ok());
  EXPECT_EQ(stage.Facts().plan_version, 2u);
  EXPECT_NE(stage.Facts().plan_hash, first.plan_hash);
}

TEST_F(NetworkOrdersTest, ANodeThatDrainsHaltsUntilItTakesPartAgain) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(Becomes(Phase::kJoining));
  ASSERT_TRUE(stage.Put(Drain(1, true)).ok());
  EXPECT_TRUE(Becomes(Phase::kStopped)) << "it has no model to pause with";
  EXPECT_EQ(stage.Facts().condition, Condition::kDraining);
  EXPECT_THAT(stage.backend().Status().warnings,
              Contains(HasSubstr("dflctl node undrain anna")));
  // An order to train is for the time after.
  ASSERT_TRUE(stage.Put(Want(2, DesiredPhase::kTraining)).ok());
  EXPECT_EQ(stage.Status().phase, Phase::kStopped);
  const absl::Status refused =
      stage.Train(control::TrainAction::kStart).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("undrain anna"));
  // It drains after a restart, too.
  FinishSetup();  // the order to train is kept
  Start();
  EXPECT_TRUE(Becomes(Condition::kDraining));
  EXPECT_TRUE(Becomes(Phase::kStopped));
  ASSERT_TRUE(stage_->Put(Drain(2, false)).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
  EXPECT_EQ(stage_->Facts().condition, Condition::kJoining);
}

// The node is in the midst of its first step when both orders come.
TEST_F(NetworkOrdersTest, AnOrderToTrainTakesBackAHaltThatWaits) {
  struct Case {
    std::string halt;
    std::string go_on;
  };
  for (const Case& c :
       {Case{Want(2, DesiredPhase::kPaused), Want(3, DesiredPhase::kTraining)},
        Case{Want(2, DesiredPhase::kStopped), Want(3, DesiredPhase::kTraining)},
        Case{Drain(1, true), Drain(2, false)}}) {
    stage_.reset();
    disk_ = simports::SimFiles();
    records_disk_ = simports::SimFiles();
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
    EXPECT_TRUE(stage
                    .ApplySigned(Made(RecordKind::kPlan, "", 1,
                                      "version: 1\nrun: run-1\nseed: 3\n"
                                      "members: [anna]\n"
                                      "model: {kind: linear, classes: 0}\n"
                                      "algorithm: {name: local}\n"))
                    .ok());
    EXPECT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
    ASSERT_TRUE(gate->begun.WaitForNotificationWithTimeout(absl::Seconds(20)));
    FinishSetup();
    EXPECT_TRUE(stage.Put(c.halt).ok());
    EXPECT_TRUE(stage.Put(c.go_on).ok());
    FinishSetup();
    EXPECT_EQ(stage.Status().phase, Phase::kTraining);
    gate->go_on.Notify();
    EXPECT_TRUE(Eventually(absl::Seconds(10),
                           [&] { return stage.Status().step >= 10; }));
  }
}

// Where it has no model yet there is nothing to pause.
TEST_F(NetworkOrdersTest, AnOrderToPauseWaitsForTheModelOfANodeThatJoins) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(Becomes(Phase::kJoining));
  ASSERT_TRUE(stage.Put(Want(2, DesiredPhase::kPaused)).ok());
  EXPECT_EQ(stage.Status().phase, Phase::kJoining);
  EXPECT_TRUE(Becomes(Phase::kPaused));
}

TEST_F(NetworkOrdersTest, AnOrderToPauseEndsTheWaitToTakePart) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Put(PlanOf(1, "bert, carl")).ok());
  ASSERT_TRUE(HasInForce(1));
  ASSERT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
  EXPECT_THAT(stage.Status().phase_reason, HasSubstr("takes no part"));
  ASSERT_TRUE(stage.Put(Want(2, DesiredPhase::kPaused)).ok());
  ASSERT_TRUE(stage.Put(PlanOf(2, "anna, bert, carl")).ok());
  ASSERT_TRUE(HasInForce(2));
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
  // It would have gone on, had it only waited.
  ASSERT_TRUE(stage.Put(PlanOf(3, "bert, carl")).ok());
  ASSERT_TRUE(HasInForce(3));
  ASSERT_TRUE(stage.Put(Want(3, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(stage.Put(PlanOf(4, "anna, bert, carl")).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
}

// Its disk says that it was to train, and its plan cannot be taken up yet.
TEST_F(NetworkOrdersTest, APlanThatIsTakenUpLateStartsNoNodeThatDrains) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(stage.Put(Want(1, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(Becomes(Phase::kJoining));
  ASSERT_TRUE(stage.Put(Drain(1, true)).ok());
  FinishSetup();
  stage_.reset();
  learners_.failure = absl::NotFoundError("model.pt is not in /var/lib/models");
  Start();
  ASSERT_TRUE(Becomes(Condition::kDraining));
  EXPECT_EQ(stage_->Status().plan_version, 0u);
  learners_.Mend();
  ASSERT_TRUE(HasInForce(1));
  EXPECT_EQ(stage_->Status().phase, Phase::kIdle);
  ASSERT_TRUE(stage_->Put(Drain(2, false)).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining)) << "it was wanted all the time";
}

TEST_F(NetworkOrdersTest, WhatOrdersMadeOfANodeIsSaidFromTheStart) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage
                  .Put(Made(RecordKind::kLabels, "anna", 1,
                            records::ToContent(records::LabelsOrder{
                                {{"site", "north"}}, false})))
                  .ok());
  ASSERT_TRUE(stage
                  .Put(Made(RecordKind::kDrain, "anna", 1,
                            records::ToContent(
                                records::DrainOrder{true, "a new disk"})))
                  .ok());
  const ports::MemberFacts facts = StartDeaf().Facts();
  EXPECT_EQ(facts.condition, Condition::kDraining);
  EXPECT_EQ(facts.reason, "a new disk");
  EXPECT_EQ(facts.labels,
            (std::map<std::string, std::string>{{"site", "north"}}));
}

TEST_F(NetworkOrdersTest, AGraphThatCannotFollowIsToldOf) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  const ports::MemberFacts facts =
      stage.FactsWhile(absl::InvalidArgumentError("bert tells no rows"));
  EXPECT_EQ(facts.condition, Condition::kDegraded);
  EXPECT_THAT(facts.reason, HasSubstr("bert tells no rows"));
  EXPECT_THAT(stage.backend().Status().warnings,
              Contains(HasSubstr("bert tells no rows")));
  EXPECT_EQ(stage.FactsWhile(absl::OkStatus()).condition, Condition::kWell);
  EXPECT_EQ(stage.Facts().reason, "");
  EXPECT_THAT(stage.backend().Status().warnings,
              Not(Contains(HasSubstr("bert tells no rows"))));
}

// The weighting needs the rows of every member.
TEST_F(NetworkOrdersTest, ANodeIsDegradedWhileItsGraphCannotFollow) {
  BackendStage& stage = Start(/*gossips=*/true);
  const auto applied = stage.Apply(
      "participants: all\n"
      "model: {kind: linear, classes: 0}\n"
      "algorithm: {name: decefl, knobs: {sample_weighting: true}}\n");
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(stage.Facts().condition, Condition::kWell);
  stage.SayMember("bert", /*rows=*/0);
  ASSERT_TRUE(Becomes(Condition::kDegraded));
  EXPECT_THAT(stage.Facts().reason, HasSubstr("the graph stays as it is"));
  EXPECT_THAT(stage.backend().Status().warnings,
              Contains(HasSubstr("rows of every member")));
  stage.SayMember("bert", /*rows=*/100, /*statement=*/2);
  EXPECT_TRUE(Becomes(Condition::kWell));
  EXPECT_EQ(stage.Facts().reason, "");
  EXPECT_THAT(stage.backend().Status().warnings,
              Not(Contains(HasSubstr("rows of every member"))));
}

TEST_F(NetworkOrdersTest, WhoIsNoneOfASetWatchesWhereOneOfItIsThere) {
  BackendStage& stage = Start(/*gossips=*/true);
  const std::string plan =
      "members: [bert, carl]\n"
      "model: {kind: linear, classes: 0}\n"
      "algorithm: {name: pame, knobs: {p: 0.5}}\n"
      "topology: {kind: complete}\n";
  // Nobody of it is there.
  stage.SayMember("dora", 100);
  EXPECT_EQ(stage.Apply(plan).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(stage.Status().plan_version, 0u);
  stage.SayMember("bert", 100);
  const auto applied = stage.Apply(plan);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_THAT(applied->warnings,
              Contains(HasSubstr("anna is none of the set: it passes the plan "
                                 "on and watches")));
  EXPECT_EQ(stage.Status().plan_version, 1u);
  EXPECT_THAT(stage.backend().ListRecords(), SizeIs(1));
  ASSERT_TRUE(stage.Train(control::TrainAction::kStart).ok());
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
}

TEST_F(NetworkOrdersTest, AnOrderToALabelConcernsWhoHasIt) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(
      stage.Put(Want(1, DesiredPhase::kTraining, {"bert"}, {"site=north"}))
          .ok());
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
  ASSERT_TRUE(stage
                  .Put(Made(RecordKind::kLabels, "anna", 1,
                            records::ToContent(records::LabelsOrder{
                                {{"site", "north"}}, false})))
                  .ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
  EXPECT_EQ(stage.Facts().labels,
            (std::map<std::string, std::string>{{"site", "north"}}));
}

// Two people changed the plan at once, each on another node.
TEST_F(NetworkOrdersTest, WhoseEditHasLostIsTold) {
  const std::string a = Plan(1, "0.25");
  const std::string b = Plan(1, "0.125");
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Put(a).ok());
  const bool b_wins = stage.Put(b).ok();
  const std::string& loser = b_wins ? a : b;
  const std::string knob = b_wins ? "p: 0.125" : "p: 0.25";
  EXPECT_EQ(stage.Put(loser).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(stage.ApplySigned(loser).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return stage.backend().Plan().yaml.find(knob) != std::string::npos;
  }));
}

TEST_F(NetworkOrdersTest, PastPlansAreKeptOverARestart) {
  BackendStage& stage = Start();
  for (uint64_t version = 1; version <= 10; ++version) {
    ASSERT_TRUE(
        stage.ApplySigned(Plan(version, absl::StrCat("0.", version))).ok());
  }
  const auto kept = [&] { return stage_->backend().Plan().kept_versions; };
  const auto last_eight = ElementsAre(3, 4, 5, 6, 7, 8, 9, 10);
  EXPECT_TRUE(Eventually(absl::Seconds(10),
                         [&] { return testing::Value(kept(), last_eight); }));
  Start();
  EXPECT_THAT(kept(), last_eight);
  const auto past = stage_->backend().PastPlan(4);
  ASSERT_TRUE(past.ok()) << past.status();
  EXPECT_THAT(past->yaml, HasSubstr("p: 0.4"));
  EXPECT_EQ(past->version, 4u);
  EXPECT_EQ(past->run_id, "run-1");
  EXPECT_EQ(stage_->backend().PastPlan(10)->yaml,
            stage_->backend().Plan().yaml);
  const absl::Status gone = stage_->backend().PastPlan(2).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("it keeps 3, 4, 5"));
}

TEST(PlanArchive, LeavesOutWhatIsDamaged) {
  simports::SimFiles disk;
  const std::string text =
      "version: 3\nrun: run-1\nseed: 3\nmembers: [anna]\n"
      "model: {kind: linear, classes: 0}\nalgorithm: {name: local}\n";
  {
    PlanArchive archive(&disk);
    EXPECT_THAT(archive.Versions(), IsEmpty());
    ASSERT_TRUE(archive
                    .Keep(std::make_shared<const runtime::KeptPlan>(
                        runtime::KeptPlan{text, 3, "run-1"}))
                    .ok());
  }
  ASSERT_TRUE(disk.WriteAtomically("plan.4", "no: plan").ok());
  ASSERT_TRUE(disk.WriteAtomically("plan.5", text).ok()) << "of another slot";
  PlanArchive archive(&disk);
  EXPECT_THAT(archive.Versions(), ElementsAre(3));
  ASSERT_TRUE(archive.Find(3).ok());
  EXPECT_EQ(archive.Find(3).value()->text, text);
  EXPECT_EQ(archive.Find(11).status().code(), absl::StatusCode::kNotFound);
}

TEST(OwnFacts, AReasonIsPrintableAndBounded) {
  EXPECT_EQ(ReasonFrom("a\nb"), "a?b");
  const std::string cut = ReasonFrom(std::string(1000, 'x'));
  EXPECT_EQ(cut.size(), static_cast<size_t>(ports::kMaxReasonBytes));
  EXPECT_THAT(cut, testing::EndsWith("x..."));
}

TEST(OwnFacts, ANodeWhoseTrainingFailsIsDegraded) {
  OwnFacts facts;
  runtime::NodeStatus status;
  status.phase = Phase::kDegraded;
  status.phase_reason = "the gradient is not finite";
  status.train_rows = 30;
  const auto plan = std::make_shared<const runtime::KeptPlan>();
  const ports::MemberFacts told =
      facts.Tell({}, {status, {{"site", "north"}}, std::nullopt, "", plan});
  EXPECT_EQ(told.condition, Condition::kDegraded);
  EXPECT_EQ(told.reason, "the gradient is not finite");
  EXPECT_EQ(told.rows, 30);
  EXPECT_EQ(told.labels.at("site"), "north");
  // Draining comes before all else, and what is well has no reason.
  const ports::MemberFacts draining =
      facts.Tell(told, {status, {}, "a new disk", "x", plan});
  EXPECT_EQ(draining.condition, Condition::kDraining);
  EXPECT_EQ(draining.reason, "a new disk");
  status.phase = Phase::kTraining;
  // One that trains, but not on its new data.
  status.data_error = "its new data are not taken up: b.csv: line 3";
  const ports::MemberFacts stale =
      facts.Tell(told, {status, {}, std::nullopt, "", plan});
  EXPECT_EQ(stale.condition, Condition::kDegraded);
  EXPECT_EQ(stale.reason, status.data_error);
  status.data_error.clear();
  const ports::MemberFacts well =
      facts.Tell(told, {status, {}, std::nullopt, "", plan});
  EXPECT_EQ(well.condition, Condition::kWell);
  EXPECT_EQ(well.reason, "");
}

}  // namespace
}  // namespace dfl::app
