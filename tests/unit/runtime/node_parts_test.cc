// What a node does by itself, part by part: phases, presence, training,
// evaluations, the first model, the algorithm's lives and the adoption of
// plans.
#include "tests/unit/runtime/node_parts.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using testing::ElementsAre;
using testing::HasSubstr;

// ----------------------------------------------------------------- phases ----

TEST(Phases, AreReportedWhenTheyChangeAndOnlyThen) {
  NodeParts p;
  const int before = p.phase_changes;
  p.own.phases.Set(Phase::kTraining, "go");
  p.own.phases.Set(Phase::kTraining, "go on");
  EXPECT_EQ(p.phase_changes, before + 1);
  EXPECT_EQ(p.own.phases.reason(), "go on");
  const auto reported = p.log.Of<ports::PhaseChanged>();
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].from, Phase::kIdle);
  EXPECT_EQ(reported[0].to, Phase::kTraining);
}

TEST(Phases, TheClockOfTrainingRunsWhileTheNodeRuns) {
  NodeParts p;
  p.Pass();
  p.own.phases.Set(Phase::kTraining, "");
  p.Pass();
  p.own.phases.Set(Phase::kDegraded, "");
  EXPECT_TRUE(p.own.phases.Running());
  p.Pass();
  p.own.phases.Set(Phase::kPaused, "");
  EXPECT_FALSE(p.own.phases.Running());
  p.Pass();
  EXPECT_EQ(p.own.progress.TrainingTime(p.loop.Now()), absl::Milliseconds(200));
}

TEST(Phases, AnOrderWaitsUntilItIsObeyedOrWithdrawn) {
  NodeParts p;
  p.own.phases.Set(Phase::kTraining, "");
  p.own.phases.Want(Phase::kPaused);
  EXPECT_TRUE(p.own.phases.wants());
  EXPECT_EQ(p.own.phases.now(), Phase::kTraining);
  p.own.phases.Want(Phase::kIdle);
  EXPECT_FALSE(p.own.phases.wants());
  p.own.phases.Want(Phase::kStopped);
  p.own.phases.Obey();
  EXPECT_EQ(p.own.phases.now(), Phase::kStopped);
  EXPECT_EQ(p.own.phases.reason(), "stopped by hand");
  EXPECT_FALSE(p.own.phases.wants());
}

// --------------------------------------------------------------- presence ----

TEST(Presence, TellsRunModelStepAndPhase) {
  NodeParts p;
  p.Keep().JumpTo(7);
  p.own.phases.Set(Phase::kPaused, "");
  p.b.Forget();
  p.c.Forget();
  p.presence.TellTo(p.kB);
  p.Pass();
  const auto heard = p.b.Heard<ports::StateFrame>();
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].run_id, "run");
  EXPECT_EQ(heard[0].algorithm, "decefl");
  EXPECT_EQ(heard[0].contract, core::DigestOf(p.learner.model().contract));
  EXPECT_EQ(heard[0].step, 7);
  EXPECT_EQ(heard[0].phase, Phase::kPaused);
  EXPECT_EQ(heard[0].tracker_epoch, 0U) << "decefl gives no mass";
  EXPECT_TRUE(p.c.Heard<ports::StateFrame>().empty());
  p.presence.Tell();
  p.Pass();
  EXPECT_EQ(p.c.Heard<ports::StateFrame>().size(), 1U);
}

TEST(Presence, TellsTheAlgorithmWhoTakesPartAndOnce) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  p.presence.RefreshAll();
  p.presence.RefreshAll();
  ASSERT_EQ(p.Events<core::PeerUp>().size(), 1U);
  EXPECT_EQ(p.Events<core::PeerUp>()[0]->peer, p.kB);
  p.SayState(p.b, Phase::kPaused);
  p.presence.Refresh(p.kB);
  ASSERT_EQ(p.Events<core::PeerDown>().size(), 1U);
}

TEST(Presence, WhoLeavesAheadOfTheRoundIsGoneAtTheBoundary) {
  NodeParts p;
  p.Keep().JumpTo(3);
  p.own.phases.Set(Phase::kTraining, "");
  p.SayState(p.b, Phase::kTraining, 3);
  p.presence.Refresh(p.kB);
  p.own.LeaveBoundary();
  p.SayState(p.b, Phase::kPaused, 4);
  p.presence.Refresh(p.kB);
  EXPECT_TRUE(p.Events<core::PeerDown>().empty()) << "it has sent round 3";
  p.own.boundary.Reach();
  p.presence.RefreshLeaving();
  EXPECT_EQ(p.Events<core::PeerDown>().size(), 1U);
}

TEST(Presence, ANewAlgorithmIsToldOfAll) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  p.presence.RefreshAll();
  p.presence.Introduce();
  EXPECT_EQ(p.Events<core::PeerUp>().size(), 2U);
}

// --------------------------------------------------------------- training ----

TEST(Training, AGradientReachesTheAlgorithmWithItsLoss) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.training.Do(core::ComputeGradient{});
  p.Pass();
  ASSERT_EQ(p.Events<core::GradientReady>().size(), 1U);
  EXPECT_GT(p.Events<core::GradientReady>()[0]->rows, 0);
  EXPECT_EQ(p.training.learner().gradients(), 1);
}

TEST(Training, DegradesOnAFailureSaysItOnceAndRecovers) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.trainer->FailWith(absl::InternalError("no memory"));
  p.training.Do(core::ComputeGradient{});
  p.scheduler.RunFor(absl::Seconds(2));
  EXPECT_EQ(p.own.phases.now(), Phase::kDegraded);
  EXPECT_EQ(p.training.last_error(), "no memory");
  ASSERT_EQ(p.Events<core::GradientReady>().size(), 1U) << "a zero gradient";
  EXPECT_THAT(p.own.model.gradient(), testing::Each(0.0F));
  p.training.Do(core::ComputeGradient{});
  p.scheduler.RunFor(absl::Seconds(2));
  EXPECT_EQ(p.log.Count<ports::LearnerFailed>(), 1) << "the same once more";

  p.trainer->FailWith(absl::OkStatus());
  p.training.Do(core::ComputeGradient{});
  p.Pass();
  EXPECT_EQ(p.own.phases.now(), Phase::kTraining);
  EXPECT_EQ(p.training.last_error(), "");
}

TEST(Training, AFailureWhilePausedDegradesNobody) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.trainer->FailWith(absl::InternalError("no memory"));
  p.training.Do(core::ComputeGradient{});
  p.own.phases.Set(Phase::kPaused, "");
  p.Pass();
  EXPECT_EQ(p.own.phases.now(), Phase::kPaused);
  EXPECT_EQ(p.Events<core::GradientReady>().size(), 1U);
}

TEST(Training, AStepEndsAtTheBoundary) {
  NodeParts p;
  p.Keep().JumpTo(4);
  p.own.LeaveBoundary();
  const int visits = p.boundary_visits;
  p.training.Do(core::StepDone{});
  EXPECT_TRUE(p.own.boundary.here());
  p.Pass();
  EXPECT_EQ(p.boundary_visits, visits + 1);
  const auto steps = p.log.Of<ports::StepFinished>();
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].step, 4);
}

TEST(Training, ANewRunForgetsErrorsAndMiniBatches) {
  NodeParts p;
  p.Keep();
  p.training.Do(core::ComputeGradient{});
  p.Pass();
  p.training.Fail(absl::InternalError("x"));
  p.training.BeginRun();
  EXPECT_EQ(p.training.last_error(), "");
  EXPECT_EQ(p.training.learner().gradients(), 0);
}

// ------------------------------------------------------------ evaluations ----

core::DerivedPlan WithStop(const core::StopRule& stop, int64_t every = 0) {
  core::RunPlan plan = NodeParts::Plan("decefl", 2).plan();
  plan.stop = stop;
  plan.evaluation.every_steps = every;
  return NodeParts::Derive(std::move(plan));
}

TEST(Evaluations, EachStopRuleEndsTheRunWithItsReason) {
  NodeParts p;
  core::StopRule stop;
  stop.steps = 5;
  ASSERT_TRUE(p.plans.Set(WithStop(stop), nullptr).ok());
  EXPECT_EQ(p.evaluations.StopRule(), std::nullopt) << "no algorithm runs";
  p.Keep().JumpTo(4);
  EXPECT_EQ(p.evaluations.StopRule(), std::nullopt);
  p.keeper->JumpTo(5);
  EXPECT_EQ(p.evaluations.StopRule(), "5 steps are done");

  stop = core::StopRule();
  stop.time = absl::Milliseconds(150);
  ASSERT_TRUE(p.plans.Set(WithStop(stop), nullptr).ok());
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.Pass();
  EXPECT_EQ(p.evaluations.StopRule(), std::nullopt);
  p.Pass();
  EXPECT_EQ(p.evaluations.StopRule(), "it trained for 150ms");
}

TEST(Evaluations, OneIsMadeWhenDueAndWaitsForTheLearner) {
  NodeParts p;
  ASSERT_TRUE(p.plans.Set(WithStop(core::StopRule(), 10), nullptr).ok());
  p.Keep().JumpTo(10);
  p.own.phases.Set(Phase::kTraining, "");
  p.training.Do(core::ComputeGradient{});
  EXPECT_FALSE(p.evaluations.Visit()) << "the learner is busy";
  p.Pass();
  p.keeper->JumpTo(11);  // owed still
  EXPECT_TRUE(p.evaluations.Visit());
  EXPECT_FALSE(p.own.boundary.here());
  p.Pass();
  EXPECT_TRUE(p.own.boundary.here());
  EXPECT_EQ(p.evaluations.step(), 11);
  EXPECT_TRUE(p.evaluations.last().has_value());
  EXPECT_FALSE(p.evaluations.Visit()) << "no second one of this step";
  p.evaluations.Forget();
  EXPECT_FALSE(p.evaluations.last().has_value());
}

TEST(Evaluations, TheEndOfARunEvaluatesAllRowsOnce) {
  NodeParts p;
  core::StopRule stop;
  stop.steps = 1;
  ASSERT_TRUE(p.plans.Set(WithStop(stop), nullptr).ok());
  p.Keep().JumpTo(1);
  p.own.phases.Set(Phase::kTraining, "");
  EXPECT_TRUE(p.evaluations.Visit());
  p.Pass();
  EXPECT_EQ(p.own.phases.now(), Phase::kFinished);
  EXPECT_EQ(p.own.phases.reason(), "1 steps are done");
  EXPECT_EQ(p.log.Count<ports::Evaluated>(), 1);
}

TEST(Evaluations, OneThatFailsIsReportedAndTheRunGoesOn) {
  NodeParts p;
  ASSERT_TRUE(p.plans.Set(WithStop(core::StopRule(), 10), nullptr).ok());
  p.Keep().JumpTo(10);
  p.own.phases.Set(Phase::kTraining, "");
  p.trainer->FailWith(absl::InternalError("no test rows"));
  EXPECT_TRUE(p.evaluations.Visit());
  p.Pass();
  EXPECT_FALSE(p.evaluations.last().has_value());
  EXPECT_EQ(p.training.last_error(), "no test rows");
  EXPECT_EQ(p.own.phases.now(), Phase::kTraining);
  p.trainer->FailWith(absl::OkStatus());
  p.training.Do(core::ComputeGradient{});
  p.Pass();
  EXPECT_EQ(p.training.last_error(), "no test rows") << "that is another thing";
  p.keeper->JumpTo(20);
  EXPECT_TRUE(p.evaluations.Visit());
  p.Pass();
  EXPECT_EQ(p.training.last_error(), "");
}

// ------------------------------------------------------------ first model ----

TEST(FirstModel, WithNobodyAheadANodeStartsFreshFromTheSeed) {
  NodeParts p;
  p.first.Look();
  EXPECT_EQ(p.own.phases.now(), Phase::kJoining);
  p.SayState(p.b, Phase::kJoining);
  p.SayState(p.c, Phase::kJoining);
  p.joining.Continue();
  EXPECT_EQ(p.own.phases.now(), Phase::kTraining);
  EXPECT_EQ(p.own.phases.reason(), "started fresh");
  UnitLearner other;
  const auto [parameters, buffers] = InitialModel(other, p.own.run.plan());
  EXPECT_THAT(p.own.model.parameters(), testing::ElementsAreArray(parameters));
  EXPECT_TRUE(p.joining.waits_for_others());
}

TEST(FirstModel, ALearnerThatCannotStartFailsTheNodeWithTheReason) {
  NodeParts p;
  p.first.Look();
  p.trainer->FailWith(absl::InternalError("no weights"));
  p.first.OnNobodyToJoin();
  EXPECT_EQ(p.own.phases.now(), Phase::kFailed);
  EXPECT_EQ(p.own.phases.reason(), "no weights");
  EXPECT_FALSE(p.own.model.initialised());
}

TEST(FirstModel, AnImportedModelMustHaveTheLengthsAndIsThenTrained) {
  NodeParts p;
  std::vector<absl::Status> said;
  const auto done = [&](absl::Status s) { said.push_back(std::move(s)); };
  auto wrong = std::make_shared<Snapshot>();
  wrong->parameters.assign(3, 1.0F);
  p.first.Replace(wrong, done);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(std::string(said[0].message()),
              HasSubstr("3 parameters and 0 buffer values; this run's has 10"));

  auto model = std::make_shared<Snapshot>();
  model->parameters.assign(10, 4.0F);
  model->buffers.assign(2, 5.0F);
  p.first.Look();
  p.first.Replace(model, done);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_TRUE(said[1].ok());
  EXPECT_FALSE(p.joining.searching());
  EXPECT_EQ(p.own.phases.now(), Phase::kTraining);
  EXPECT_THAT(p.own.model.parameters(), testing::Each(4.0F));
  EXPECT_THAT(p.own.model.buffers(), testing::Each(5.0F));
}

TEST(FirstModel, AReplacementInTheMidstOfAStepWaitsForTheBoundary) {
  NodeParts p;
  p.Keep();
  p.own.LeaveBoundary();
  auto model = std::make_shared<Snapshot>();
  model->parameters.assign(10, 4.0F);
  model->buffers.assign(2, 5.0F);
  bool done = false;
  p.first.Replace(model, [&](const absl::Status& s) { done = s.ok(); });
  EXPECT_FALSE(done);
  p.own.boundary.Reach();
  p.own.boundary.DoWork();
  EXPECT_TRUE(done);
  EXPECT_THAT(p.own.model.parameters(), testing::Each(4.0F));
}

// -------------------------------------------------------- algorithm lives ----

TEST(AlgorithmLives, ARestartBeginsThePlansAlgorithmAtTheStep) {
  NodeParts p;
  p.own.model.SetInitialised(true);
  const uint64_t epoch = p.own.algorithm.epoch();
  p.lives.Restart(12);
  ASSERT_NE(p.own.algorithm.get(), nullptr);
  EXPECT_EQ(p.own.algorithm.step(), 12);
  EXPECT_EQ(p.own.algorithm.epoch(), epoch + 1);
  p.lives.End();
  EXPECT_EQ(p.own.algorithm.get(), nullptr);
  EXPECT_EQ(p.own.algorithm.step(), 0);
}

TEST(AlgorithmLives, AnAlgorithmThatGivesMassBeginsAnEpoch) {
  NodeParts p("k-gt");
  p.own.model.SetInitialised(true);
  EXPECT_EQ(p.exchange.mass().EpochToTell(), 0U);
  p.lives.Restart(0);
  EXPECT_EQ(p.exchange.mass().EpochToTell(), 1U);
  p.lives.Restart(0);
  EXPECT_EQ(p.exchange.mass().EpochToTell(), 1U) << "nothing was given";
}

TEST(AlgorithmLives, ItsAsksEndWithIt) {
  NodeParts p;
  p.Keep();
  p.SayState(p.b);
  p.exchange.asks().Do(core::Ask{1, {p.kB}});
  p.lives.End();
  p.Pass();
  EXPECT_EQ(p.b.Heard<ports::CancelAskFrame>().size(), 1U);
}

// ---------------------------------------------------------- plan adoption ----

TEST(PlanAdoption, TheFirstPlanNeedsALearner) {
  NodeParts p;
  Training none(p.own, p.loop, p.log, absl::Seconds(1));
  PlanAdoption plans(p.own, p.peers, p.exchange, p.presence, none, p.joining,
                     p.lives, p.evaluations, p.log);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      plans.Set(NodeParts::Plan("decefl", 2), nullptr)));
  EXPECT_EQ(plans.pending(), nullptr);
}

TEST(PlanAdoption, ARunningNodeAdoptsAtTheBoundary) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.own.LeaveBoundary();
  ASSERT_TRUE(p.plans.Set(NodeParts::Plan("decefl", 2), nullptr).ok());
  ASSERT_NE(p.plans.pending(), nullptr);
  EXPECT_EQ(p.plans.pending()->version, 2U);
  EXPECT_EQ(p.own.run.plan().version, 1U);
  p.own.boundary.Reach();
  p.plans.Adopt();
  EXPECT_EQ(p.plans.pending(), nullptr);
  EXPECT_EQ(p.own.run.plan().version, 2U);
  EXPECT_EQ(p.Events<core::PlanChanged>().size(), 1U) << "the same algorithm";
  EXPECT_EQ(p.own.phases.now(), Phase::kTraining);
}

TEST(PlanAdoption, AnotherAlgorithmTakesOverAtTheSameStep) {
  NodeParts p;
  p.Keep().JumpTo(9);
  ASSERT_TRUE(p.plans.Set(NodeParts::Plan("d-psgd", 2), nullptr).ok());
  EXPECT_EQ(p.own.algorithm.step(), 9);
  EXPECT_TRUE(p.own.model.initialised());
}

TEST(PlanAdoption, AnotherTrainerOrRunBeginsANewRun) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kPaused, "");
  ASSERT_TRUE(p.plans.Set(NodeParts::Plan("decefl", 2), p.NewTrainer()).ok());
  EXPECT_EQ(p.own.phases.now(), Phase::kIdle);
  EXPECT_EQ(p.own.phases.reason(), "a new run");
  EXPECT_EQ(p.own.algorithm.get(), nullptr);
  EXPECT_FALSE(p.own.model.initialised());

  p.Keep();
  core::RunPlan plan = NodeParts::Plan("decefl", 3).plan();
  plan.run_id = "another";
  ASSERT_TRUE(p.plans.Set(NodeParts::Derive(std::move(plan)), nullptr).ok());
  EXPECT_EQ(p.own.algorithm.get(), nullptr);
}

TEST(PlanAdoption, OtherRowsWaitForAGradientThatIsUnderWay) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kPaused, "");
  p.training.learner().ComputeGradient({});
  const ports::Trainer* const before = p.training.learner().trainer();
  auto renewed = p.NewTrainer();
  ASSERT_TRUE(p.plans.Renew(std::move(renewed)).ok());
  EXPECT_EQ(p.training.learner().trainer(), before);
  const int visits = p.boundary_visits;
  p.Pass();
  EXPECT_GT(p.boundary_visits, visits) << "the learner is free";
  p.plans.InstallRenewed();
  EXPECT_EQ(p.training.learner().trainer(), p.trainer);
  ASSERT_EQ(p.Events<core::PlanChanged>().size(), 1U);
  EXPECT_EQ(p.Events<core::PlanChanged>()[0]->batches_per_pass, 1);
  EXPECT_EQ(p.Events<core::PlanChanged>()[0]->train_rows, 1);
  EXPECT_TRUE(p.own.model.initialised());
}

TEST(PlanAdoption, OtherRowsTakeThePlaceOfThoseOfAPlanThatWaits) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.own.LeaveBoundary();
  ASSERT_TRUE(p.plans.Set(NodeParts::Plan("decefl", 2), p.NewTrainer()).ok());
  ASSERT_TRUE(p.plans.Renew(p.NewTrainer()).ok());
  p.own.boundary.Reach();
  p.plans.Adopt();
  EXPECT_EQ(p.training.learner().trainer(), p.trainer);
  EXPECT_EQ(p.own.run.plan().version, 2U);
}

// The learner of a plan that is given later is of rows that are as new.
TEST(PlanAdoption, ALaterPlansTrainerStandsInPlaceOfOtherRows) {
  NodeParts p;
  p.Keep();
  p.own.phases.Set(Phase::kTraining, "");
  p.own.LeaveBoundary();
  ASSERT_TRUE(p.plans.Renew(p.NewTrainer()).ok());
  ASSERT_TRUE(p.plans.Set(NodeParts::Plan("decefl", 2), p.NewTrainer()).ok());
  p.own.boundary.Reach();
  p.plans.Adopt();
  p.plans.InstallRenewed();
  EXPECT_EQ(p.training.learner().trainer(), p.trainer);
}

}  // namespace
}  // namespace dfl::runtime
