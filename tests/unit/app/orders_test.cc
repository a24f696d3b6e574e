// The network's signed orders, as a whole daemon but for its sockets obeys
// them.
#include "daemon/app/orders.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/records/record_content.h"
#include "daemon/records/sign_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/made_credentials.h"
#include "tests/support/process.h"
#include "tests/unit/app/backend_stage.h"

namespace dfl::app {
namespace {

using ports::Phase;
using records::RecordKind;
using runtime::DesiredPhase;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing_support::Eventually;
using testing_support::TemporaryFolder;

class OrdersTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.name = "anna";
    settings_.state_dir = folder_.File("state");
    settings_.tls.folder = folder_.File("tls");
    std::filesystem::create_directories(settings_.state_dir);
    tls::WriteCredentials(settings_.tls.folder,
                          Person(tls::Role::kNode, "anna"));
  }

  tls::Credentials Person(tls::Role role, const std::string& name) {
    return *tls::MakeCredentials(authority_, {"plant-4", role, name}, {},
                                 absl::Now(), absl::Hours(24 * 365));
  }
  std::string Sign(RecordKind kind, const std::string& subject,
                   uint64_t counter, const std::string& content) {
    const auto record = records::SignRecord(kind, subject, counter, content,
                                            operator_, absl::Now());
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? *record : "";
  }
  static std::string PlanText(uint64_t version, const std::string& run,
                              const std::string& p = "0.5") {
    return absl::StrCat("version: ", version, "\nrun: ", run, "\nseed: 3\n",
                        "members: [anna, bert, carl]\n"
                        "model: {kind: linear, classes: 0}\n"
                        "algorithm: {name: pame, knobs: {p: ",
                        p, "}}\ntopology: {kind: complete}\n");
  }
  std::string Plan(uint64_t version, const std::string& run = "run-1",
                   const std::string& p = "0.5") {
    return Sign(RecordKind::kPlan, "", version, PlanText(version, run, p));
  }
  std::string PhaseRecord(uint64_t counter, DesiredPhase phase,
                          const std::vector<std::string>& nodes = {},
                          const std::string& run = "run-1") {
    return Sign(RecordKind::kPhase, "", counter,
                records::ToContent(records::PhaseOrder{phase, nodes, run}));
  }
  std::string Ban(uint64_t counter, bool banned, const std::string& subject) {
    return Sign(RecordKind::kBan, subject, counter,
                records::ToContent(records::BanOrder{banned, "stolen"}));
  }

  BackendStage& Start() {
    stage_.reset();
    stage_ = std::make_unique<BackendStage>(disk_, learners_, BackendOptions(),
                                            &settings_, &records_disk_);
    EXPECT_TRUE(stage_->backend().Restore().ok());
    stage_->backend().Connect();
    return *stage_;
  }
  bool Becomes(Phase phase) {
    return Eventually(absl::Seconds(10),
                      [&] { return stage_->Status().phase == phase; });
  }
  bool HoldsPlan(const std::string& text) {
    return Eventually(absl::Seconds(10), [&] {
      return stage_->backend().Plan().yaml.find(text) != std::string::npos;
    });
  }

  TemporaryFolder folder_;
  config::NodeSettings settings_;
  const tls::Authority authority_ = tls::MakeAuthority("plant-4", absl::Now());
  const tls::Credentials operator_ = Person(tls::Role::kOperator, "olga");
  simports::SimFiles disk_;
  simports::SimFiles records_disk_;
  FakeLearners learners_;
  std::unique_ptr<BackendStage> stage_;
};

TEST_F(OrdersTest, ASignedPlanIsTakenAndListed) {
  BackendStage& stage = Start();
  const auto applied = stage.ApplySigned(Plan(1));
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->version, 1u);
  EXPECT_EQ(applied->run_id, "run-1");
  const auto records = stage.backend().ListRecords();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].kind, "plan");
  EXPECT_EQ(records[0].author, "spiffe://plant-4/operator/olga");
  EXPECT_TRUE(records[0].current);
  // The same once more, signed anew at another time, is the same order: no
  // further record. An older one is not taken.
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(stage.ApplySigned(Plan(1)).ok());
  EXPECT_THAT(stage.backend().ListRecords(), SizeIs(1));
  ASSERT_TRUE(stage.ApplySigned(Plan(2, "run-1", "0.25")).ok());
  EXPECT_EQ(stage.ApplySigned(Plan(1)).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(stage.backend().Plan().version, 2u);
}

// It ended after the plan was on its disk, and before the record was.
TEST_F(OrdersTest, ASignedPlanIsKeptWithItsRecord) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  const simports::SimFiles before = records_disk_;
  ASSERT_TRUE(stage.ApplySigned(Plan(2, "run-1", "0.25")).ok());
  stage_.reset();
  records_disk_ = before;
  BackendStage& next = Start();
  (void)next.Data("");  // what the setup thread was given before is done
  EXPECT_EQ(next.backend().Plan().version, 2u);
  EXPECT_EQ(next.Status().plan_version, 2u);
  const auto records = next.backend().ListRecords();
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[1].counter, 2u);
  EXPECT_EQ(records[1].author, "spiffe://plant-4/operator/olga");
  EXPECT_TRUE(records[1].current);
}

TEST_F(OrdersTest, ASignedPlanMustBeComplete) {
  BackendStage& stage = Start();
  const auto without_run =
      stage.ApplySigned(Sign(RecordKind::kPlan, "", 1, kPlanYaml));
  EXPECT_EQ(without_run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(without_run.status().message()), HasSubstr("no run"));
  const auto other_version =
      stage.ApplySigned(Sign(RecordKind::kPlan, "", 5, PlanText(4, "run-1")));
  EXPECT_EQ(other_version.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stage.backend().Plan().version, 0u);
  EXPECT_THAT(stage.backend().ListRecords(), IsEmpty());
}

// Two people changed the same plan at once: all nodes take the same one.
TEST_F(OrdersTest, OfTwoPlansOfOneVersionTheLargerHashHolds) {
  BackendStage& stage = Start();
  // PutRecord is the way of neighbours: whatever the order of their coming.
  const std::string a = Plan(1, "run-1", "0.25");
  const std::string b = Plan(1, "run-2", "0.125");
  ASSERT_TRUE(stage.Put(a).ok());
  const auto second = stage.Put(b);
  const std::string winner = second.ok() ? "run-2" : "run-1";
  EXPECT_TRUE(HoldsPlan(winner));
  EXPECT_EQ(stage.backend().ListRecords().size(), 2u)
      << "the other one is in the history";
  // The other way round, on a node that is new.
  stage_.reset();
  disk_ = simports::SimFiles();
  records_disk_ = simports::SimFiles();
  BackendStage& other = Start();
  ASSERT_TRUE(other.Put(b).ok());
  EXPECT_NE(other.Put(a).ok(), second.ok());
  EXPECT_TRUE(HoldsPlan(winner));
}

// While the node takes a plan from a person, the same plan comes from a
// neighbour, whose record may be the one that counts.
TEST_F(OrdersTest, APlanThatANeighbourHasJustBeenGivenTooIsNoConflict) {
  const std::string a = Plan(1);
  const std::string b = Sign(RecordKind::kPlan, "", 1, PlanText(1, "run-1"));
  ASSERT_NE(a, b);
  for (const auto& [given, passed_on] : {std::pair(a, b), std::pair(b, a)}) {
    stage_.reset();
    disk_ = simports::SimFiles();
    records_disk_ = simports::SimFiles();
    BackendStage& stage = Start();
    bool passed = false;
    learners_.on_build = [&, &record = passed_on] {
      if (std::exchange(passed, true)) return;
      EXPECT_TRUE(stage.Put(record).ok());
    };
    const auto applied = stage.ApplySigned(given);
    EXPECT_TRUE(applied.ok()) << applied.status();
    EXPECT_TRUE(passed);
    learners_.on_build = nullptr;
  }
}

TEST_F(OrdersTest, APhaseIsObeyedInItsRunAndByWhomItConcerns) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(
      stage.Put(PhaseRecord(1, DesiredPhase::kTraining, {"bert"})).ok());
  ASSERT_TRUE(
      stage.Put(PhaseRecord(2, DesiredPhase::kTraining, {}, "run-9")).ok());
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
  ASSERT_TRUE(stage.Put(PhaseRecord(3, DesiredPhase::kTraining)).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
  ASSERT_TRUE(stage.Put(PhaseRecord(4, DesiredPhase::kStopped, {"anna"})).ok());
  EXPECT_TRUE(Becomes(Phase::kStopped));
}

// A box that joins gets the plan and the order in any order.
TEST_F(OrdersTest, APhaseThatCameBeforeThePlanIsObeyedWithIt) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Put(PhaseRecord(1, DesiredPhase::kTraining)).ok());
  EXPECT_EQ(stage.Status().phase, Phase::kIdle);
  ASSERT_TRUE(stage.Put(Plan(1)).ok());
  EXPECT_TRUE(HoldsPlan("run-1"));
  EXPECT_TRUE(Becomes(Phase::kJoining));
}

TEST_F(OrdersTest, AnOrderIsObeyedOnceAlsoOverARestart) {
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  ASSERT_TRUE(stage.Put(PhaseRecord(1, DesiredPhase::kTraining)).ok());
  ASSERT_TRUE(Becomes(Phase::kJoining));
  // A later order of this node alone.
  ASSERT_TRUE(stage.Train(control::TrainAction::kStop).ok());
  ASSERT_TRUE(Becomes(Phase::kStopped));
  Start();
  EXPECT_EQ(stage_->backend().ListRecords().size(), 2u);
  EXPECT_EQ(stage_->backend().Plan().version, 1u);
  EXPECT_EQ(stage_->Status().phase, Phase::kIdle);
  // The next order of the network counts again.
  ASSERT_TRUE(stage_->Put(PhaseRecord(2, DesiredPhase::kTraining)).ok());
  EXPECT_TRUE(Becomes(Phase::kJoining));
}

TEST_F(OrdersTest, ABanHoldsFromTheStartAndUntilItIsLifted) {
  const std::string bert = "spiffe://plant-4/node/bert";
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.Put(Ban(1, true, bert)).ok());
  EXPECT_TRUE(stage.security().network().IsBanned(*tls::ParseIdentity(bert)));
  EXPECT_THAT(stage.backend().Status().banned, ElementsAre(bert));
  BackendStage& next = Start();
  EXPECT_TRUE(next.security().network().IsBanned(*tls::ParseIdentity(bert)));
  EXPECT_EQ(next.Put(Ban(1, true, "spiffe://plant-4/node/carl")).status(),
            absl::OkStatus());
  ASSERT_TRUE(next.Put(Ban(2, false, bert)).ok());
  EXPECT_FALSE(next.security().network().IsBanned(*tls::ParseIdentity(bert)));
  EXPECT_THAT(next.backend().Status().banned,
              ElementsAre("spiffe://plant-4/node/carl"));
}

TEST_F(OrdersTest, AnAuthorWhoIsBannedGivesNoMoreOrders) {
  const tls::Credentials admin = Person(tls::Role::kAdmin, "ada");
  BackendStage& stage = Start();
  ASSERT_TRUE(stage.ApplySigned(Plan(1)).ok());
  const auto ban = records::SignRecord(
      RecordKind::kBan, "spiffe://plant-4/operator/olga", 1,
      records::ToContent(records::BanOrder{true, ""}), admin, absl::Now());
  ASSERT_TRUE(ban.ok()) << ban.status();
  ASSERT_TRUE(stage.Put(*ban).ok());
  EXPECT_EQ(stage.ApplySigned(Plan(2)).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(stage.Put(PhaseRecord(1, DesiredPhase::kTraining)).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(stage.backend().Plan().version, 1u) << "what is in force stays";
}

// Others may be able to: it is passed on, and this node says what is wrong.
TEST_F(OrdersTest, APlanThatThisNodeCannotTakeIsToldOf) {
  BackendStage& stage = Start();
  learners_.failure = absl::InvalidArgumentError("the model is too large");
  ASSERT_TRUE(stage.Put(Plan(1)).ok());
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return !stage.backend().Status().warnings.empty();
  }));
  EXPECT_THAT(stage.backend().Status().warnings,
              Contains(HasSubstr("the model is too large")));
  EXPECT_EQ(stage.Facts().condition, ports::Condition::kDegraded);
  learners_.Mend();
  ASSERT_TRUE(stage.Put(Plan(2)).ok());
  EXPECT_TRUE(HoldsPlan("run-1"));
  EXPECT_TRUE(Eventually(absl::Seconds(10), [&] {
    return stage.backend().Status().warnings.empty();
  }));
}

TEST_F(OrdersTest, ARecordIsNoPlanAndAPlanNoRecordOfItsOwn) {
  BackendStage& stage = Start();
  EXPECT_EQ(stage.ApplySigned(PhaseRecord(1, DesiredPhase::kTraining))
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stage.Put("garbage").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(stage.backend().ListRecords(), IsEmpty());
}

}  // namespace
}  // namespace dfl::app
