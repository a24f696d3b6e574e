// Checkpoints on whole nodes: one that is started again goes on as if nothing
// had happened, and what was exchanged is neither lost nor counted twice.
#include "daemon/runtime/resumption.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/least_squares.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using ports::Phase;
using testing::HasSubstr;

// ------------------------------------------------------------------- when ----

TEST(CheckpointClock, StridesArePowersOfTwoAndLongEnough) {
  CheckpointClock clock;
  absl::Time now = absl::UnixEpoch();
  clock.Begin(0, now);
  std::vector<int64_t> due;
  for (int64_t step = 1; step <= 1000; ++step) {
    now += absl::Milliseconds(100);
    if (clock.Due(step, now, absl::Seconds(3))) due.push_back(step);
  }
  ASSERT_GT(due.size(), 10U);
  for (const int64_t step : due) EXPECT_EQ(step % 32, 0) << step;
  EXPECT_EQ(due[1] - due[0], 32);
}

TEST(CheckpointClock, NothingIsDueWhenARunBegins) {
  CheckpointClock clock;
  const absl::Time now = absl::UnixEpoch() + absl::Hours(400000);
  EXPECT_FALSE(clock.Due(1, now, absl::Seconds(30)));
  EXPECT_FALSE(clock.Due(2, now + absl::Seconds(1), absl::Seconds(30)));
  // Another run, which begins with its first step.
  EXPECT_TRUE(clock.Due(64, now + absl::Seconds(60), absl::Seconds(30)));
  EXPECT_FALSE(clock.Due(1, now + absl::Hours(2), absl::Seconds(30)));
}

TEST(CheckpointClock, SlowStepsAreAllDue) {
  CheckpointClock clock;
  absl::Time now = absl::UnixEpoch();
  clock.Begin(0, now);
  for (int64_t step = 1; step <= 5; ++step) {
    now += absl::Minutes(10);
    EXPECT_TRUE(clock.Due(step, now, absl::Seconds(30))) << step;
    EXPECT_FALSE(clock.Due(step, now, absl::Seconds(30))) << "the same again";
  }
}

// A stall makes the stride shorter; what is due is a multiple all the same.
TEST(CheckpointClock, AStallChangesNoMultiple) {
  CheckpointClock clock;
  absl::Time now = absl::UnixEpoch();
  clock.Begin(4096, now);
  std::vector<int64_t> due;
  for (int64_t step = 4097; step <= 20000; ++step) {
    now += step == 6597 ? absl::Seconds(60) : absl::Milliseconds(10);
    if (clock.Due(step, now, absl::Seconds(30))) due.push_back(step);
  }
  ASSERT_FALSE(due.empty());
  for (const int64_t step : due) EXPECT_EQ(step % 1024, 0) << step;
}

TEST(CheckpointClock, AJumpLandsOnOneAndZeroIsNever) {
  CheckpointClock clock;
  clock.Begin(0, absl::UnixEpoch());
  const absl::Time then = absl::UnixEpoch() + absl::Seconds(10);
  EXPECT_FALSE(clock.Due(1000, then, absl::ZeroDuration()));
  EXPECT_TRUE(clock.Due(1001, then, absl::Seconds(1)));
}

// --------------------------------------------------------------- going on ----

class ResumptionTest : public testing::TestWithParam<std::string> {
 protected:
  ClusterOptions Options(uint64_t seed) const {
    ClusterOptions options = LeastSquaresCluster(problems_, seed);
    options.disks = true;
    return options;
  }
  // Mini-batches of which five make a pass.
  static core::RunPlan Plan(const SimCluster& c, const std::string& name) {
    core::RunPlan plan = c.MakePlan(name);
    plan.batch_size = 8;
    plan.topology.kind = "ring";
    plan.deadline.exchange = absl::Milliseconds(500);
    plan.checkpoint.interval = absl::Milliseconds(200);
    return plan;
  }
  static std::vector<std::string> Notes(const SimCluster& c, int64_t i) {
    std::vector<std::string> texts;
    for (const auto& note : c.log(i).Of<ports::CheckpointNote>()) {
      texts.push_back(note.text);
    }
    return texts;
  }
  // Has a node write a checkpoint, which is then as good as in a file.
  static std::shared_ptr<RestoreOrder> Save(SimCluster& c, int64_t i) {
    absl::StatusOr<int64_t> saved = absl::UnknownError("");
    bool told = false;
    c.node(i).SaveCheckpoint([&](absl::StatusOr<int64_t> step) {
      saved = std::move(step);
      told = true;
    });
    EXPECT_TRUE(c.RunUntil([&] { return told; }));
    EXPECT_TRUE(saved.ok()) << saved.status();
    auto order = std::make_shared<RestoreOrder>();
    absl::StatusOr<Checkpoint> read =
        c.checkpoints(i).Read("run-1", saved.value_or(0));
    EXPECT_TRUE(read.ok()) << read.status();
    if (read.ok()) order->checkpoint = *std::move(read);
    return order;
  }
  static absl::Status SaveFails(SimCluster& c, int64_t i) {
    absl::Status status = absl::UnknownError("it is written, or waits");
    c.node(i).SaveCheckpoint(
        [&](const absl::StatusOr<int64_t>& step) { status = step.status(); });
    return status;
  }
  static absl::Status Restore(SimCluster& c, int64_t i,
                              std::shared_ptr<const RestoreOrder> order) {
    absl::Status status = absl::UnknownError("");
    bool told = false;
    c.node(i).Restore(std::move(order), [&](absl::Status restored) {
      status = std::move(restored);
      told = true;
    });
    EXPECT_TRUE(c.RunUntil([&] { return told; }));
    return status;
  }
  static void ExpectEpoch(SimCluster& c, uint64_t epoch,
                          const std::string& name) {
    for (int64_t i = 0; i < c.size(); ++i) {
      if (!c.node(i).algorithm() || c.node(0).parcels().epoch() == 0) continue;
      EXPECT_EQ(c.node(i).parcels().epoch(), epoch) << name << ", node " << i;
    }
  }
  static void ExpectWhole(SimCluster& c) {
    for (int64_t i = 0; i < c.size(); ++i) {
      const auto* rounds =
          dynamic_cast<const core::MassRounds*>(c.node(i).algorithm());
      if (rounds == nullptr) continue;
      EXPECT_LT(rounds->ledger().Imbalance(), 1e-3) << i;
    }
  }

  const Problems problems_;
};

// All are shut down at one moment and started again: the rest of the run has
// the same bits as without that.
TEST_P(ResumptionTest, ARunThatWasInterruptedEndsWithTheSameBits) {
  std::vector<std::vector<float>> ends[2];
  for (const bool interrupted : {false, true}) {
    SimCluster c(Options(11));
    core::RunPlan plan = Plan(c, GetParam());
    (GetParam() == "local" ? plan.stop.steps : plan.stop.rounds) = 60;
    c.Run(plan);
    if (interrupted) {
      c.RunFor(absl::Milliseconds(300));
      c.ShutdownAll();
      c.RunFor(absl::Seconds(5));
      for (int64_t i = 0; i < c.size(); ++i) c.RestartFromDisk(i);
      c.StartAll();
    }
    ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
    for (int64_t i = 0; i < c.size(); ++i) {
      ends[interrupted ? 1 : 0].push_back(c.parameters(i));
    }
    ExpectWhole(c);
  }
  for (size_t i = 0; i < ends[0].size(); ++i) {
    EXPECT_EQ(ends[0][i], ends[1][i]) << "node " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ResumptionTest,
                         testing::Values("local", "d-psgd", "dfedavgm", "k-gt",
                                         "decefl", "nids", "anq-nids", "beer",
                                         "choco-sgd", "sgp", "depositum"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

using Resuming = ResumptionTest;

// The power goes out: nodes have written checkpoints of different steps, and go
// on from one that all have.
TEST_F(Resuming, AllGoOnFromTheLastStepThatTheyHaveInCommon) {
  RunTwice(Options(12), [&](SimCluster& c) {
    c.Run(Plan(c, "d-psgd"));
    c.RunFor(absl::Seconds(3));
    // One has not written its last one.
    c.disk(2).set_capacity(0);
    c.RunFor(absl::Milliseconds(300));
    c.disk(2).set_capacity(-1);
    for (int64_t i = 0; i < c.size(); ++i) c.Crash(i);
    for (int64_t i = 0; i < c.size(); ++i) c.RestartFromDisk(i);
    c.StartAll();
    ASSERT_TRUE(c.RunUntil(
        [&] {
          for (int64_t i = 0; i < c.size(); ++i) {
            if (c.node(i).phase() != Phase::kTraining) return false;
          }
          return true;
        },
        absl::Seconds(3)));
    std::vector<std::string> last;
    for (int64_t i = 0; i < c.size(); ++i) last.push_back(Notes(c, i).back());
    for (const std::string& note : last) EXPECT_EQ(note, last[0]);
    EXPECT_THAT(last[0], HasSubstr("goes on from the checkpoint of step"));
  });
}

// One node is killed while the others train on: it has its model and its place
// in the data back and is in step again, and no trackers are trusted of which
// a part is lost.
TEST_F(Resuming, AKilledNodeIsBackWithItsModelWithinThreeSeconds) {
  for (const std::string name : {"d-psgd", "k-gt", "beer"}) {
    RunTwice(Options(13), [&](SimCluster& c) {
      c.Run(Plan(c, name));
      c.RunFor(absl::Seconds(3));
      const int64_t before = c.step(1);
      c.Crash(1);
      c.RunFor(absl::Seconds(1));
      const absl::Time back = c.Now();
      c.RestartFromDisk(1);
      EXPECT_GT(c.step(1), before / 2) << name;
      ASSERT_TRUE(c.node(1).Start().ok());
      ASSERT_TRUE(c.RunUntil(
          [&] {
            return c.node(1).phase() == Phase::kTraining &&
                   c.step(1) + 2 >= c.step(0);
          },
          absl::Seconds(10)))
          << name;
      EXPECT_LE(c.Now() - back, absl::Seconds(3)) << name;
      c.RunFor(absl::Seconds(5));
      EXPECT_TRUE(Notes(c, 1).size() == 1U) << name;
      if (name != "d-psgd") {
        EXPECT_EQ(c.node(0).parcels().epoch(), 2U) << name;
      }
      ExpectWhole(c);
    });
  }
}

// A node that ends in order takes its mass with it, and brings it back.
TEST_F(Resuming, ANodeThatWasShutDownBringsItsMassBack) {
  for (const std::string name : {"k-gt", "nids", "choco-sgd"}) {
    RunTwice(Options(14), [&](SimCluster& c) {
      c.Run(Plan(c, name));
      c.RunFor(absl::Seconds(4));
      c.Shutdown(1);
      c.RunFor(absl::Seconds(1));
      c.RestartFromDisk(1);
      ASSERT_TRUE(c.node(1).Start().ok());
      c.RunFor(absl::Seconds(5));
      for (int64_t i = 0; i < c.size(); ++i) {
        EXPECT_EQ(c.node(i).parcels().epoch(), 1U) << name << ", node " << i;
        EXPECT_EQ(c.node(i).phase(), Phase::kTraining) << name;
      }
      EXPECT_GE(c.step(1) + 2, c.step(0)) << name;
      ExpectWhole(c);
    });
  }
}

// ------------------------------------------------------------------ disks ----

TEST_F(Resuming, AFullDiskIsToldAndMendsItself) {
  RunTwice(Options(15), [&](SimCluster& c) {
    c.Run(Plan(c, "d-psgd"));
    c.RunFor(absl::Seconds(2));
    EXPECT_EQ(c.node(0).Status().checkpoint_error, "");
    EXPECT_GT(c.node(0).Status().checkpoint_step, 0);
    c.disk(0).set_capacity(0);
    c.RunFor(absl::Seconds(2));
    EXPECT_THAT(c.node(0).Status().checkpoint_error,
                HasSubstr("no space left on the disk"));
    EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
    EXPECT_EQ(Notes(c, 0).size(), 1U) << "told once";
    c.disk(0).set_capacity(-1);
    c.RunFor(absl::Seconds(2));
    EXPECT_EQ(c.node(0).Status().checkpoint_error, "");
    EXPECT_EQ(Notes(c, 0).back(), "checkpoints are written again");
  });
}

TEST_F(Resuming, ABrokenFileLeavesTheOtherOne) {
  RunTwice(Options(16), [&](SimCluster& c) {
    c.Run(Plan(c, "d-psgd"));
    c.RunFor(absl::Seconds(3));
    c.Crash(0);
    c.disk(0).TearLastWrite();
    c.RestartFromDisk(0);
    const std::vector<std::string> notes = Notes(c, 0);
    ASSERT_EQ(notes.size(), 2U);
    EXPECT_THAT(notes[0], HasSubstr("it is kept as checkpoint."));
    EXPECT_THAT(notes[1], HasSubstr("goes on from"));
    EXPECT_GT(c.step(0), 0);
  });
}

// ------------------------------------------------------------ other plans ----

TEST_F(Resuming, OfAnotherVersionOfThePlanTheModelIsTaken) {
  RunTwice(Options(17), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c, "k-gt");
    c.Run(plan);
    c.RunFor(absl::Seconds(3));
    c.Shutdown(0);
    plan.version = 2;
    c.SetPlanEverywhere(plan);
    c.Restart(0);
    ASSERT_TRUE(c.SetPlan(0, plan).ok());
    ASSERT_TRUE(c.node(0).TakeUpCheckpoint(Phase::kIdle));
    EXPECT_THAT(Notes(c, 0).front(),
                HasSubstr("its model is taken, and the algorithm begins anew"));
    ASSERT_TRUE(c.node(0).Start().ok());
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.node(1).parcels().epoch(), 2U);
    ExpectWhole(c);
  });
}

TEST_F(Resuming, AnotherRunIsNotGoneOnFrom) {
  SimCluster c(Options(18));
  core::RunPlan plan = Plan(c, "d-psgd");
  c.Run(plan);
  c.RunFor(absl::Seconds(3));
  c.Crash(0);
  c.Restart(0);
  plan.version = 2;
  plan.run_id = "run-2";
  ASSERT_TRUE(c.SetPlan(0, plan).ok());
  EXPECT_FALSE(c.node(0).TakeUpCheckpoint(Phase::kIdle));
  EXPECT_EQ(c.step(0), 0);
}

// An order that changes the algorithm while it is agreed from which step all go
// on leaves nobody waiting.
TEST_F(Resuming, AnotherAlgorithmInTheMidstOfItTrains) {
  SimCluster c(Options(21));
  core::RunPlan plan = Plan(c, "d-psgd");
  c.Run(plan);
  c.RunFor(absl::Seconds(2));
  for (int64_t i = 0; i < c.size(); ++i) c.Crash(i);
  c.RestartFromDisk(0);
  ASSERT_TRUE(c.node(0).Start().ok());
  ASSERT_EQ(c.node(0).phase(), Phase::kJoining);
  const int64_t step = c.step(0);
  plan.version = 2;
  plan.algorithm.name = "dfedavgm";
  ASSERT_TRUE(c.SetPlan(0, plan).ok());
  c.RunFor(absl::Seconds(6));
  EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
  EXPECT_GT(c.step(0), step);
}

TEST_F(Resuming, WithoutAnIntervalNothingIsWrittenOrGoneOnFrom) {
  SimCluster c(Options(22));
  core::RunPlan plan = Plan(c, "d-psgd");
  c.Run(plan);
  c.RunFor(absl::Seconds(2));
  plan.version = 2;
  plan.checkpoint.interval = absl::ZeroDuration();
  c.SetPlanEverywhere(plan);
  c.RunFor(absl::Seconds(1));
  const int64_t writes = c.disk(0).writes();
  c.RunFor(absl::Seconds(1));
  c.Shutdown(0);
  EXPECT_EQ(c.disk(0).writes(), writes);
  c.Restart(0);
  EXPECT_FALSE(c.node(0).TakeUpCheckpoint(Phase::kIdle));
}

// A week behind the others, its own model is worth less than theirs.
TEST_F(Resuming, OneThatIsFarBehindTakesANeighboursModel) {
  RunTwice(Options(23), [&](SimCluster& c) {
    c.Run(Plan(c, "d-psgd"));
    c.RunFor(absl::Seconds(1));
    c.Shutdown(1);
    c.RunFor(absl::Seconds(30));
    c.RestartFromDisk(1);
    ASSERT_TRUE(c.node(1).Start().ok());
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 1);
    EXPECT_GE(c.step(1) + 2, c.step(0));
  });
}

// A model that has blown up is not what the next start begins with.
TEST_F(Resuming, ADivergedModelIsNotWritten) {
  ClusterOptions options = Options(24);
  options.nodes = 1;
  SimCluster c(options);
  core::RunPlan plan = Plan(c, "local");
  plan.algorithm.knobs = {{"eta", 1e6}};
  plan.checkpoint.interval = absl::Hours(1);
  c.Run(plan);
  ASSERT_TRUE(c.RunUntil([&] { return c.node(0).phase() == Phase::kFailed; }));
  c.Shutdown(0);
  EXPECT_TRUE(c.disk(0).names().empty());
}

// What comes after the last checkpoint changes nothing that is in it.
TEST_F(Resuming, ASuspendedNodeHandlesNothingMore) {
  SimCluster c(Options(25));
  c.Run(Plan(c, "k-gt"));
  c.RunFor(absl::Seconds(1));
  bool over = false;
  c.node(0).Suspend([&](const absl::Status&) { over = true; });
  ASSERT_TRUE(c.RunUntil([&] { return over; }));
  const int64_t step = c.step(0);
  const std::vector<float> model = c.parameters(0);
  const core::EdgeBooks books = c.node(0).algorithm()->BooksWith(c.id(1));
  c.RunFor(absl::Seconds(3));
  EXPECT_EQ(c.step(0), step);
  EXPECT_EQ(c.parameters(0), model);
  EXPECT_EQ(c.node(0).algorithm()->BooksWith(c.id(1)), books);
}

// A node that was paused is so again, and goes on from there.
TEST_F(Resuming, APausedNodeStaysPaused) {
  SimCluster c(Options(19));
  c.Run(Plan(c, "d-psgd"));
  c.RunFor(absl::Seconds(2));
  ASSERT_TRUE(c.node(0).Pause().ok());
  c.RunFor(absl::Seconds(1));
  const int64_t step = c.step(0);
  const std::vector<float> model = c.parameters(0);
  c.Shutdown(0);
  c.Restart(0);
  ASSERT_TRUE(c.node(0).TakeUpCheckpoint(Phase::kPaused));
  EXPECT_EQ(c.node(0).phase(), Phase::kPaused);
  EXPECT_EQ(c.step(0), step);
  EXPECT_EQ(c.parameters(0), model);
  ASSERT_TRUE(c.node(0).Resume().ok());
  c.RunFor(absl::Seconds(2));
  EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
  EXPECT_GT(c.step(0), step);
}

// ------------------------------------------------------ saved and restored --

// Between two that are due, at the next boundary; of a node that stands still,
// at once.
TEST_F(Resuming, OneThatAPersonWantsIsWrittenAtTheNextBoundary) {
  RunTwice(Options(30), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c, "k-gt");
    plan.checkpoint.interval = absl::Hours(1);
    c.Run(plan);
    c.RunFor(absl::Seconds(1));
    // Two who want one before the boundary get one.
    const int64_t step = c.step(0);
    int told = 0;
    for (int i = 0; i < 2; ++i) {
      c.node(0).SaveCheckpoint([&](const absl::StatusOr<int64_t>& at) {
        ASSERT_TRUE(at.ok()) << at.status();
        EXPECT_GE(*at, step);
        EXPECT_LE(*at, step + 2);
        ++told;
      });
    }
    ASSERT_TRUE(c.RunUntil([&] { return told == 2; }));
    EXPECT_EQ(c.disk(0).writes(), 1);
    const auto saved = Save(c, 0);
    EXPECT_GT(saved->checkpoint.head.step, step);
    EXPECT_LE(saved->checkpoint.head.written, c.Now());
    EXPECT_GE(saved->checkpoint.head.written, c.Now() - absl::Seconds(1));
    ASSERT_TRUE(c.node(0).Pause().ok());
    c.RunFor(absl::Seconds(1));
    const auto paused = Save(c, 0);
    EXPECT_EQ(paused->checkpoint.head.step, c.step(0));
    const auto& model = paused->checkpoint.model->parameters;
    EXPECT_EQ(std::vector<float>(model.begin(), model.end()), c.parameters(0));
  });
}

TEST_F(Resuming, WhereThereIsNothingToWriteAPersonIsToldWhy) {
  SimCluster c(Options(31));
  EXPECT_THAT(std::string(SaveFails(c, 0).message()),
              HasSubstr("dflctl plan apply FILE"));
  core::RunPlan plan = Plan(c, "d-psgd");
  c.SetPlanEverywhere(plan);
  EXPECT_THAT(std::string(SaveFails(c, 0).message()),
              HasSubstr("start it first: dflctl train start"));
  c.StartAll();
  c.RunFor(absl::Seconds(1));
  plan.version = 2;
  plan.checkpoint.interval = absl::ZeroDuration();
  c.SetPlanEverywhere(plan);
  c.RunFor(absl::Seconds(1));
  EXPECT_THAT(std::string(SaveFails(c, 0).message()),
              HasSubstr("dflctl set checkpoint.interval=30s"));
}

TEST_F(Resuming, AFullDiskIsToldToWhoSaves) {
  SimCluster c(Options(32));
  c.Run(Plan(c, "d-psgd"));
  c.RunFor(absl::Seconds(1));
  c.disk(0).set_capacity(0);
  absl::Status status;
  c.node(0).SaveCheckpoint(
      [&](const absl::StatusOr<int64_t>& step) { status = step.status(); });
  ASSERT_TRUE(c.RunUntil([&] { return !status.ok(); }));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

// Neighbours train on while a node is paused and goes back to an old
// checkpoint. Its links stay up, so nobody compares books; and what the node
// knows of theirs may be as old as the checkpoint. Nobody may go on with sums
// of which a part is lost.
TEST_F(Resuming, TheOldSumsOfARestoredNodeAgreeWithNobodys) {
  for (const std::string name :
       {"d-psgd", "k-gt", "nids", "beer", "choco-sgd", "sgp"}) {
    RunTwice(Options(33), [&](SimCluster& c) {
      c.Run(Plan(c, name));
      c.RunFor(absl::Seconds(5));
      const auto old = Save(c, 1);
      c.RunFor(absl::Seconds(1));
      ASSERT_TRUE(c.node(1).Pause().ok());
      c.RunFor(absl::Milliseconds(500));
      const uint64_t epoch = c.node(0).parcels().epoch();
      ASSERT_GT(c.step(1), old->checkpoint.head.step) << name;
      const absl::Status restored = Restore(c, 1, old);
      ASSERT_TRUE(restored.ok()) << name << ": " << restored;
      EXPECT_EQ(c.node(1).phase(), Phase::kPaused) << name;
      EXPECT_EQ(c.step(1), old->checkpoint.head.step) << name;
      const auto& model = old->checkpoint.model->parameters;
      EXPECT_EQ(std::vector<float>(model.begin(), model.end()), c.parameters(1))
          << name;
      // Before it trains again, too.
      c.RunFor(absl::Milliseconds(500));
      ExpectEpoch(c, epoch + 1, name);
      ASSERT_TRUE(c.node(1).Resume().ok());
      ASSERT_TRUE(c.RunUntil(
          [&] {
            return c.node(1).phase() == Phase::kTraining &&
                   c.step(1) + 2 >= c.step(0);
          },
          absl::Seconds(10)))
          << name;
      c.RunFor(absl::Seconds(5));
      EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 0) << name;
      ExpectEpoch(c, epoch + 1, name);
      ExpectWhole(c);
    });
  }
}

// What was restored is what the node has, so its books are those of the
// checkpoint also where nothing has crossed an edge since.
TEST_F(Resuming, RestoringThePresentStateIsHarmless) {
  for (const std::string name : {"k-gt", "choco-sgd"}) {
    RunTwice(Options(34), [&](SimCluster& c) {
      c.Run(Plan(c, name));
      c.RunFor(absl::Seconds(3));
      for (int64_t i = 0; i < c.size(); ++i) {
        ASSERT_TRUE(c.node(i).Pause().ok());
      }
      c.RunFor(absl::Seconds(1));
      ASSERT_TRUE(Restore(c, 1, Save(c, 1)).ok()) << name;
      for (int64_t i = 0; i < c.size(); ++i) {
        ASSERT_TRUE(c.node(i).Resume().ok());
      }
      c.RunFor(absl::Seconds(5));
      ExpectEpoch(c, 2, name);
      ExpectWhole(c);
    });
  }
}

// Its disk is lost, and with it all that it knew; it comes back on another one
// with a checkpoint that was kept elsewhere.
TEST_F(Resuming, AnotherMachineGoesOnFromAFileThatWasKept) {
  for (const std::string name : {"d-psgd", "k-gt", "beer", "sgp"}) {
    RunTwice(Options(35), [&](SimCluster& c) {
      c.Run(Plan(c, name));
      c.RunFor(absl::Seconds(5));
      const auto old = Save(c, 1);
      c.RunFor(absl::Seconds(1));
      c.Crash(1);
      c.disk(1).Empty();
      c.RunFor(absl::Seconds(1));
      c.Restart(1);
      const absl::Status restored = Restore(c, 1, old);
      ASSERT_TRUE(restored.ok()) << name << ": " << restored;
      EXPECT_EQ(c.node(1).phase(), Phase::kIdle) << name;
      EXPECT_EQ(c.step(1), old->checkpoint.head.step) << name;
      ASSERT_TRUE(c.node(1).Start().ok());
      ASSERT_TRUE(c.RunUntil(
          [&] {
            return c.node(1).phase() == Phase::kTraining &&
                   c.step(1) + 2 >= c.step(0);
          },
          absl::Seconds(10)))
          << name;
      c.RunFor(absl::Seconds(5));
      EXPECT_EQ(c.log(1).Count<ports::StateTaken>(), 0) << name;
      ExpectEpoch(c, 2, name);
      ExpectWhole(c);
    });
  }
}

TEST_F(Resuming, WhatCannotBeRestoredLeavesTheNodeAsItWas) {
  RunTwice(Options(36), [&](SimCluster& c) {
    c.Run(Plan(c, "k-gt"));
    c.RunFor(absl::Seconds(3));
    const auto saved = Save(c, 1);
    const auto with = [&](auto change) {
      auto order = std::make_shared<RestoreOrder>(*saved);
      change(order->checkpoint);
      return order;
    };
    EXPECT_THAT(std::string(Restore(c, 1, saved).message()),
                HasSubstr("the node is training; a checkpoint is restored "
                          "while it does not train: dflctl train pause"));
    ASSERT_TRUE(c.node(1).Pause().ok());
    c.RunFor(absl::Seconds(1));
    const int64_t step = c.step(1);
    const std::vector<float> model = c.parameters(1);
    const core::EdgeBooks books = c.node(1).algorithm()->BooksWith(c.id(0));
    const absl::Status refused[] = {
        Restore(c, 1, with([](Checkpoint& x) { x.head.node = "n2"; })),
        Restore(c, 1, with([](Checkpoint& x) { x.head.run_id = "run-2"; })),
        Restore(c, 1, with([](Checkpoint& x) { x.head.plan_version = 7; })),
        Restore(c, 1, with([](Checkpoint& x) { x.head.contract[1] ^= 1; })),
        Restore(c, 1, with([](Checkpoint& x) { x.gradient.pop_back(); })),
        Restore(c, 1, with([](Checkpoint& x) {
                  x.gradient[0] = std::numeric_limits<float>::infinity();
                })),
        // It is seen only when the algorithm is made of it.
        Restore(c, 1, with([](Checkpoint& x) { x.algorithm.fields.clear(); }))};
    for (const absl::Status& status : refused) {
      EXPECT_FALSE(status.ok());
      EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << status;
    }
    EXPECT_EQ(c.step(1), step);
    EXPECT_EQ(c.parameters(1), model);
    EXPECT_EQ(c.node(1).phase(), Phase::kPaused);
    EXPECT_EQ(c.node(1).algorithm()->BooksWith(c.id(0)), books);
    ASSERT_TRUE(c.node(1).Resume().ok());
    c.RunFor(absl::Seconds(15));
    EXPECT_EQ(c.node(1).phase(), Phase::kTraining);
    EXPECT_GE(c.step(1) + 2, c.step(0));
    ExpectWhole(c);
  });
}

// With the model and the counts of an older plan the algorithm begins anew.
TEST_F(Resuming, OfAnotherVersionIsRestoredWhereThatIsWanted) {
  RunTwice(Options(37), [&](SimCluster& c) {
    core::RunPlan plan = Plan(c, "k-gt");
    c.Run(plan);
    c.RunFor(absl::Seconds(3));
    const auto saved = Save(c, 1);
    plan.version = 2;
    c.SetPlanEverywhere(plan);
    c.RunFor(absl::Seconds(1));
    ASSERT_TRUE(c.node(1).Pause().ok());
    c.RunFor(absl::Milliseconds(500));
    EXPECT_THAT(std::string(Restore(c, 1, saved).message()),
                HasSubstr("is of run run-1, version 1 of its plan, and version "
                          "2 is in force here; with --force"));
    saved->other_version = true;
    ASSERT_TRUE(Restore(c, 1, saved).ok());
    EXPECT_EQ(c.step(1), saved->checkpoint.head.step);
    ASSERT_TRUE(c.node(1).Resume().ok());
    c.RunFor(absl::Seconds(5));
    EXPECT_EQ(c.node(1).phase(), Phase::kTraining);
    ExpectEpoch(c, 2, "k-gt");
    ExpectWhole(c);
  });
}

// A run that has ended is taken up again where it was, with the same bits.
TEST_F(Resuming, AFinishedRunGoesOnFromARestoredCheckpoint) {
  ClusterOptions options = Options(38);
  options.nodes = 1;
  SimCluster c(options);
  core::RunPlan plan = Plan(c, "local");
  plan.stop.steps = 200;
  c.Run(plan);
  c.RunFor(absl::Seconds(1));
  const auto saved = Save(c, 0);
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  const std::vector<float> end = c.parameters(0);
  ASSERT_TRUE(Restore(c, 0, saved).ok());
  EXPECT_EQ(c.node(0).phase(), Phase::kPaused);
  EXPECT_NE(c.parameters(0), end);
  ASSERT_TRUE(c.node(0).Resume().ok());
  ASSERT_TRUE(c.RunUntil([&] { return c.AllFinished(); }));
  EXPECT_EQ(c.parameters(0), end);
}

TEST_F(Resuming, ThePlanSaysHowManyAreKept) {
  SimCluster c(Options(39));
  core::RunPlan plan = Plan(c, "d-psgd");
  plan.checkpoint.keep = 5;
  c.Run(plan);
  c.RunFor(absl::Seconds(5));
  EXPECT_EQ(c.disk(0).names().size(), 5U);
  plan.version = 2;
  plan.checkpoint.keep = 2;
  c.SetPlanEverywhere(plan);
  c.RunFor(absl::Seconds(2));
  EXPECT_THAT(c.disk(0).names(),
              testing::ElementsAre("checkpoint.0", "checkpoint.1"));
}

// A new run while it waits for its neighbours' steps begins as any other.
TEST_F(Resuming, ANewRunInTheMidstOfItIsARun) {
  SimCluster c(Options(20));
  core::RunPlan plan = Plan(c, "d-psgd");
  c.Run(plan);
  c.RunFor(absl::Seconds(2));
  for (int64_t i = 0; i < c.size(); ++i) c.Crash(i);
  c.RestartFromDisk(0);
  ASSERT_TRUE(c.node(0).Start().ok());
  EXPECT_EQ(c.node(0).phase(), Phase::kJoining);
  plan.version = 2;
  plan.run_id = "run-2";
  ASSERT_TRUE(c.SetPlan(0, plan, /*fresh=*/true).ok());
  ASSERT_TRUE(c.node(0).Start().ok());
  c.RunFor(absl::Seconds(6));
  EXPECT_EQ(c.node(0).phase(), Phase::kTraining);
}

}  // namespace
}  // namespace dfl::runtime
