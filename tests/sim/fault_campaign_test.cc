// Every algorithm of the catalogue under random faults: whole networks of
// runtime::Node in dflsim's simulation, with frames and links that are lost,
// cuts, black holes, partitions, crashes with a restart, joins and slow nodes,
// all of which end at two thirds of the run. Each schedule is played without
// its faults first, and must then show
//
//   no hang      the run ends by its stop rule, and no node that trained took
//                longer for a step than four times the longest without faults,
//                four deadlines, and the time in which a model must move
//   no NaN       every parameter of every node is finite
//   advances     every node that is up at the end has met the stop rule, those
//                of lock-step algorithms in the same round
//   exchanges    models and parcels taken for each step and each neighbour that
//                was in the run and not cut off by an event
//                (Result::reachable): at least half of what that is without
//                faults
//   converges    f(mean w) - f* <= 2 x the same without faults + 1e-3; the mean
//                over the last tenth of the run, f* from optimum.h
//
// With membership and checkpoints on, disks tear, fill up and lose everything,
// and now and then one node is hostile. All of it is drawn from the seed and
// played as a scenario file.
//
// DFL_CAMPAIGN_RUNS schedules an algorithm (3); DFL_CAMPAIGN_SEED is the first
// one's seed (1). A failure prints the `dflsim run` that plays it.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "gtest/gtest.h"
#include "tests/sim/campaign_run.h"
#include "tests/sim/fault_knobs.h"
#include "tests/sim/fault_schedule.h"
#include "tests/sim/optimum.h"
#include "tests/support/environment.h"

namespace dfl::sim {
namespace {

// A scenario must have converged, without faults, within this share of its
// steps.
constexpr double kConverged = 0.2;
constexpr int64_t kMostDraws = 50;

// The worst that was seen of one algorithm.
struct Worst {
  double exchanges = 1;
  double gap = 0;    // as a share of what is allowed
  double pause = 0;  // the same of a step's time
  double time = 0;   // against the run without faults
  int64_t redrawn = 0;
  int64_t missed = 0;
  int64_t crashes = 0;
  int64_t links_lost = 0;
};

class Faults : public testing::TestWithParam<std::string> {
 protected:
  void PlaySeed(const core::AlgorithmInfo& info, const Drawing& drawing,
                uint64_t seed);
  // `most` schedules, unless the environment says how many.
  void PlayAll(int64_t most);
  CampaignNetwork network_;  // what of it is not drawn
  Worst worst_;
  int64_t failed_ = 0;  // schedules
};

// A scenario without faults.
struct Calm {
  CampaignNetwork network;
  std::string algorithm;
  std::string text;
  double least_loss = 0;  // f*
  Outcome outcome;
};

Calm DrawCalm(const core::AlgorithmInfo& info, const Drawing& drawing,
              const CampaignNetwork& fixed, Rng& rng) {
  Calm calm;
  calm.network = DrawNetwork(rng, info);
  calm.network.membership = fixed.membership;
  calm.network.checkpoints = fixed.checkpoints;
  if (fixed.checkpoints) DrawBadPeer(rng, info, calm.network);
  const Optimum optimum = FindOptimum(MakeProblems(calm.network));
  EXPECT_LT(optimum.gradient, 1e-5) << "f* is not exact";
  calm.least_loss = optimum.loss;
  KnobDraw draw{rng, calm.network, 1 / optimum.smoothness};
  const std::string knobs = drawing.knobs(draw);
  calm.algorithm =
      absl::StrCat("{name: ", info.name, ", knobs: {", knobs, "}}");
  calm.network.stop =
      StopAfter(calm.network, calm.algorithm, calm.network.steps);
  calm.text = ScenarioText(calm.network, calm.algorithm, {}, absl::Hours(2));
  calm.outcome = Play(calm.text, optimum.loss);
  return calm;
}

void Faults::PlaySeed(const core::AlgorithmInfo& info, const Drawing& drawing,
                      uint64_t seed) {
  const int failures = FailuresSoFar();
  Rng rng(DeriveSeed(seed, info.name));
  Calm drawn = DrawCalm(info, drawing, network_, rng);
  for (int64_t i = 1;
       !ConvergedFrom(kConverged, drawn.outcome, drawn.least_loss) &&
       i < kMostDraws;
       ++i) {
    ++worst_.redrawn;
    drawn = DrawCalm(info, drawing, network_, rng);
  }
  const CampaignNetwork& network = drawn.network;
  const Outcome& calm = drawn.outcome;
  ASSERT_EQ(calm.result.end, End::kFinished) << calm.result.why << "\n"
                                             << drawn.text;
  ASSERT_TRUE(ConvergedFrom(kConverged, drawn.outcome, drawn.least_loss))
      << "the knobs of its line in fault_knobs.cc are too slow";
  const Schedule schedule = DrawSchedule(
      {drawn.network, drawn.algorithm, {}, drawn.least_loss, drawn.outcome},
      rng);
  const std::string& text = schedule.text;
  const Outcome& faulty = schedule.outcome;

  const double allowed = Allowed(calm.gap);
  const double exchanges = calm.result.models_received == 0
                               ? 1
                               : faulty.exchanges() / calm.exchanges();
  const double longest = LongestStep(calm, network);
  worst_.exchanges = std::min(worst_.exchanges, exchanges);
  worst_.gap = std::max(worst_.gap, faulty.gap / allowed);
  worst_.pause =
      std::max(worst_.pause, faulty.result.longest_step_gap_s / longest);
  worst_.time = std::max(worst_.time, faulty.result.rows.back().time_s /
                                          calm.result.rows.back().time_s);
  worst_.missed += faulty.result.neighbours_missed;
  worst_.crashes += faulty.result.crashes;
  worst_.links_lost += faulty.result.links_lost;

  EXPECT_EQ(faulty.result.end, End::kFinished) << faulty.result.why;
  EXPECT_TRUE(faulty.finite);
  if (info.lock_step && StopsByRounds(info)) {
    for (const NodeScore& node : faulty.result.nodes) {
      EXPECT_EQ(node.round, network.steps) << node.name;
    }
  }
  EXPECT_EQ(faulty.result.rows.back().nodes, network.nodes);
  EXPECT_LE(faulty.result.longest_step_gap_s, longest);
  EXPECT_GE(exchanges, 0.5);
  EXPECT_LE(faulty.gap, allowed)
      << "without faults it is " << calm.gap << ", f* is " << drawn.least_loss;
  if (FailuresSoFar() > failures) {
    ++failed_;
    const std::string name = absl::StrReplaceAll(
        absl::StrCat("fault-", network_.membership,
                     network_.checkpoints ? "kept-" : "", info.name, "-", seed),
        {{"+", "plus"}});
    std::cout << "replay: DFL_CAMPAIGN_SEED=" << seed
              << " DFL_CAMPAIGN_RUNS=1, or dflsim run "
              << WriteScenario(name, text) << " --seed " << network.seed
              << "\nwithout faults: dflsim run "
              << WriteScenario(name + "-calm", drawn.text) << " --seed "
              << network.seed << "\n";
  }
}

void Faults::PlayAll(int64_t most) {
  const core::AlgorithmInfo& info = **core::BuiltInCatalogue().Find(GetParam());
  const Drawing* drawing = FindDrawing(info.name);
  ASSERT_NE(drawing, nullptr)
      << info.name
      << " has no line in fault_knobs.cc: say how it is drawn there";
  const int64_t runs = FromEnvironment("DFL_CAMPAIGN_RUNS", most);
  const int64_t first = FromEnvironment("DFL_CAMPAIGN_SEED", 1);
  for (int64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE(absl::StrCat("DFL_CAMPAIGN_SEED=", seed));
    PlaySeed(info, *drawing, static_cast<uint64_t>(seed));
  }
  std::cout << absl::StrFormat(
      "%s: seeds %d to %d; least exchanges %.2f, largest gap %.3f and pause "
      "%.2f of what is allowed, time x %.2f; %d missed, %d links lost, %d "
      "crashes; %d redrawn, %d failed\n",
      info.name, first, first + runs - 1, worst_.exchanges, worst_.gap,
      worst_.pause, worst_.time, worst_.missed, worst_.links_lost,
      worst_.crashes, worst_.redrawn, failed_);
}

TEST_P(Faults, EveryAlgorithmLivesThroughThem) { PlayAll(3); }

// The same bars where nodes have to find out who is there and who is not, and
// go on from checkpoints on disks that fail.
TEST_P(Faults, EveryAlgorithmLivesThroughThemWithMembershipAndCheckpoints) {
  network_.membership = "lan";
  network_.checkpoints = true;
  PlayAll(1);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Faults, testing::ValuesIn(CatalogueNames()),
                         CatalogueTestName);

}  // namespace
}  // namespace dfl::sim
