// Every algorithm of the catalogue under random faults: whole networks of
// runtime::Node in dflsim's simulation, with frames and links that are lost,
// cuts, black holes, partitions, crashes with a restart, joins and slow nodes, all
// of which end at two thirds of the run. Each schedule is played without its
// faults first, and must then show
//
//   no hang      the run ends by its stop rule, and no node that trained took
//                longer for a step than four times the longest without faults,
//                four deadlines, and the time in which a model must move
//   no NaN       every parameter of every node is finite
//   advances     every node that is up at the end has finished all steps
//   exchanges    models and parcels taken for each step and each neighbour that
//                was in the run and not cut off by an event
//                (Result::reachable): at least half of what that is without faults
//   converges    f(mean w) - f* <= 2 x the same without faults + 1e-3; the mean
//                over the last tenth of the run, f* from optimum.h
//
// DFL_CAMPAIGN_RUNS schedules an algorithm (3); DFL_CAMPAIGN_SEED is the first
// one's seed (1). A failure prints the `dflsim run` that plays it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm.h"
#include "daemon/core/problems.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "gtest/gtest.h"
#include "tests/sim/campaign.h"
#include "tests/sim/fault_knobs.h"
#include "tests/sim/fault_schedule.h"
#include "tests/sim/optimum.h"

namespace dfl::sim {
namespace {

// The share of a run in which there are no faults any more, at its end. Links come
// back some steps into it, and the gap is a mean over the last tenth; so a scenario
// must have converged, without faults, within
constexpr double kTail = 1.0 / 3;
constexpr double kConverged = 0.2;
constexpr int64_t kMostDraws = 50;
// NodeOptions::join_stall, seconds: a node that began anew and then hears of one
// that is ahead stands still for its model, which may be lost without a word.
constexpr double kJoinStall = 10;

// ------------------------------------------------------------------- runs ----

struct Outcome {
  Result result;
  bool finite = true;  // all parameters of all nodes
  double gap = 0;      // f(mean w) - f*, the mean over the last tenth

  // Of those that could have been.
  double exchanges() const {
    return static_cast<double>(result.models_received) /
           static_cast<double>(std::max<int64_t>(1, result.reachable));
  }
};

// f(mean w), the mean over the last tenth of a run's steps.
double LastTenth(const std::vector<MetricsRow>& rows) {
  if (rows.empty()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  int64_t count = 0;
  for (const MetricsRow& row : rows) {
    if (10 * row.step < 9 * rows.back().step) continue;
    sum += row.loss_mean_model;
    ++count;
  }
  return sum / static_cast<double>(count);
}

Outcome Play(const std::string& text, double least_loss) {
  Outcome outcome;
  absl::StatusOr<Scenario> scenario = ParseScenario(text, "campaign.yaml");
  EXPECT_TRUE(scenario.ok()) << scenario.status() << "\n" << text;
  if (!scenario.ok()) return outcome;
  auto made = Simulation::Create(*std::move(scenario));
  EXPECT_TRUE(made.ok()) << made.status() << "\n" << text;
  if (!made.ok()) return outcome;
  Simulation& simulation = **made;
  outcome.result = simulation.Run([](const Progress&) { return true; });
  for (int64_t i = 0; i < simulation.size(); ++i) {
    for (const float value : simulation.parameters(i)) {
      outcome.finite = outcome.finite && std::isfinite(value);
    }
  }
  outcome.gap = LastTenth(outcome.result.rows) - least_loss;
  return outcome;
}

Problems MakeProblems(const CampaignNetwork& network) {
  Problems problems;
  if (network.problem == "softmax") {
    core::SoftmaxSpec spec;
    spec.nodes = network.nodes;
    spec.features = network.n;
    spec.classes = network.classes;
    spec.rows_per_node = network.rows;
    spec.seed = network.seed;
    for (auto& node : core::SoftmaxExample(spec).nodes) {
      problems.push_back(std::move(node));
    }
    return problems;
  }
  core::ExampleSpec spec;
  spec.nodes = network.nodes;
  spec.n = network.n;
  spec.rows_per_node = network.rows;
  spec.seed = network.seed;
  core::ProblemSet set = network.problem == "linear"
                             ? core::LinearRegressionExample(spec)
                             : core::LogisticRegressionExample(spec);
  return std::move(set.nodes);
}

// Of the present test.
int FailuresSoFar() {
  return testing::UnitTest::GetInstance()
      ->current_test_info()
      ->result()
      ->total_part_count();
}

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
  Worst worst_;
  int64_t failed_ = 0;  // schedules
};

// Writes the scenario where the failure can be played from.
std::string Replay(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name, ".yaml");
  std::ofstream(path) << text;
  return path;
}

// A scenario without faults.
struct Calm {
  CampaignNetwork network;
  std::string algorithm;
  std::string text;
  double least_loss = 0;  // f*
  Outcome outcome;
};

// What the gap under faults may be.
double Allowed(double gap) { return 2 * std::max(gap, 0.0) + 1e-3; }

// From `share` of its steps on the gap was what it may be at the end.
bool ConvergedIn(double share, const Calm& calm) {
  const std::vector<MetricsRow>& rows = calm.outcome.result.rows;
  for (const MetricsRow& row : rows) {
    if (static_cast<double>(row.step) <
        share * static_cast<double>(rows.back().step)) {
      continue;
    }
    if (row.loss_mean_model - calm.least_loss > Allowed(calm.outcome.gap)) {
      return false;
    }
  }
  return true;
}

Calm DrawCalm(const core::AlgorithmInfo& info, const Drawing& drawing,
              Rng& rng) {
  Calm calm;
  calm.network = DrawNetwork(rng, info);
  const Optimum optimum = FindOptimum(MakeProblems(calm.network));
  EXPECT_LT(optimum.gradient, 1e-5) << "f* is not exact";
  calm.least_loss = optimum.loss;
  KnobDraw draw{rng, calm.network, 1 / optimum.smoothness};
  const std::string knobs = drawing.knobs(draw);
  calm.algorithm =
      absl::StrCat("{name: ", info.name, ", knobs: {", knobs, "}}");
  calm.text = ScenarioText(calm.network, calm.algorithm, {}, absl::Hours(2));
  calm.outcome = Play(calm.text, optimum.loss);
  return calm;
}

struct Schedule {
  std::string text;
  Outcome outcome;
};

// Faults that end when two thirds of the run are over. How long it takes is known
// only afterwards (a node that nobody can reach is quick), so the schedule is drawn
// again, shorter, until that holds.
Schedule DrawSchedule(const Calm& calm, Rng& rng) {
  const double calm_time = calm.outcome.result.rows.back().time_s;
  Schedule schedule;
  double time = calm_time;
  for (int i = 0; i < 4; ++i) {
    Rng same = rng;
    const double last = (1 - kTail) * time;
    schedule.text =
        ScenarioText(calm.network, calm.algorithm,
                     DrawFaults(same, calm.network, absl::Seconds(last)),
                     absl::Seconds(2 * calm_time + 120));
    schedule.outcome = Play(schedule.text, calm.least_loss);
    const double took = schedule.outcome.result.rows.back().time_s;
    if (last <= (1 - kTail) * 1.03 * took) break;
    time = took;
  }
  return schedule;
}

void Faults::PlaySeed(const core::AlgorithmInfo& info, const Drawing& drawing,
                      uint64_t seed) {
  const int failures = FailuresSoFar();
  Rng rng(DeriveSeed(seed, info.name));
  Calm drawn = DrawCalm(info, drawing, rng);
  for (int64_t i = 1; !ConvergedIn(kConverged, drawn) && i < kMostDraws; ++i) {
    ++worst_.redrawn;
    drawn = DrawCalm(info, drawing, rng);
  }
  const CampaignNetwork& network = drawn.network;
  const Outcome& calm = drawn.outcome;
  ASSERT_EQ(calm.result.end, End::kFinished) << calm.result.why << "\n"
                                             << drawn.text;
  ASSERT_TRUE(ConvergedIn(kConverged, drawn))
      << "the knobs of its line in fault_knobs.cc are too slow";
  const Schedule schedule = DrawSchedule(drawn, rng);
  const std::string& text = schedule.text;
  const Outcome& faulty = schedule.outcome;

  const double allowed = Allowed(calm.gap);
  const double exchanges = calm.result.models_received == 0
                               ? 1
                               : faulty.exchanges() / calm.exchanges();
  const double longest = kSlowestFactor * calm.result.longest_step_gap_s +
                         4 * absl::ToDoubleSeconds(network.deadline) +
                         kJoinStall;
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
  EXPECT_EQ(faulty.result.rows.back().lowest_step, network.steps);
  EXPECT_EQ(faulty.result.rows.back().nodes, network.nodes);
  EXPECT_LE(faulty.result.longest_step_gap_s, longest);
  EXPECT_GE(exchanges, 0.5);
  EXPECT_LE(faulty.gap, allowed)
      << "without faults it is " << calm.gap << ", f* is " << drawn.least_loss;
  if (FailuresSoFar() > failures) {
    ++failed_;
    const std::string name = absl::StrReplaceAll(
        absl::StrCat("fault-", info.name, "-", seed), {{"+", "plus"}});
    std::cout << "replay: DFL_CAMPAIGN_SEED=" << seed
              << " DFL_CAMPAIGN_RUNS=1, or dflsim run " << Replay(name, text)
              << " --seed " << network.seed << "\nwithout faults: dflsim run "
              << Replay(name + "-calm", drawn.text) << " --seed "
              << network.seed << "\n";
  }
}

TEST_P(Faults, EveryAlgorithmLivesThroughThem) {
  const core::AlgorithmInfo& info = **core::FindAlgorithm(GetParam());
  const Drawing* drawing = FindDrawing(info.name);
  ASSERT_NE(drawing, nullptr)
      << info.name
      << " has no line in fault_knobs.cc: say how it is drawn there";
  const int64_t runs = FromEnvironment("DFL_CAMPAIGN_RUNS", 3);
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

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const core::AlgorithmInfo& info : core::AlgorithmCatalogue()) {
    names.push_back(info.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Faults, testing::ValuesIn(Names()),
                         [](const auto& info) {
                           return absl::StrReplaceAll(
                               info.param, {{"-", "_"}, {"+", "_plus"}});
                         });

}  // namespace
}  // namespace dfl::sim
