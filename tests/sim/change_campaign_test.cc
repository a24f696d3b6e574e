// Changes of the plan in the midst of a run, under random faults: whole
// networks of runtime::Node in dflsim's simulation go from one algorithm of the
// catalogue to another, or to another graph, period or participation, each node
// at its own moment, while links are lost and cut and nodes crash and come
// back. Each schedule is played without its faults first, and must then show
//
//   no hang      the run ends by its stop rule, and no node that trained took
//                longer for a step than LongestStep
//   no NaN       every parameter of every node is finite
//   changed      every node is up at the end, runs the new plan, and has met
//                its stop rule
//   conserves    what the new algorithm conserves, it has
//   converges    f(mean w) - f* <= 2 x the same without faults + 1e-3; the mean
//                over the last tenth of the run, f* from optimum.h
//
// DFL_CAMPAIGN_RUNS schedules for each algorithm that is changed to (2);
// DFL_CAMPAIGN_SEED is the first one's seed (1). A failure prints the
// `dflsim run` that plays it.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
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

// Where the change comes, as a share of the run before it is changed; from then
// on a scenario must have converged, without faults, within kConverged of its
// steps.
constexpr double kEarliest = 0.15;
constexpr double kLatest = 0.45;
constexpr double kConverged = 0.2;
constexpr int64_t kMostDraws = 50;
// Rounding of a few hundred float32 transfers.
constexpr double kMostDrift = 1e-3;

enum class Kind { kAlgorithm, kTopology, kKnobs };

// A scenario whose plan changes, without faults.
struct Calm {
  CampaignNetwork network;  // its graph is the first one, its edges are both's
  std::string from;         // "d-psgd", ...
  std::string algorithm;
  std::string change;  // an event
  std::string text;
  double least_loss = 0;
  double change_share = 0;  // of the steps
  Outcome outcome;
};

std::string Written(const core::AlgorithmInfo& info, KnobDraw& draw) {
  return absl::StrCat("{name: ", info.name, ", knobs: {",
                      FindDrawing(info.name)->knobs(draw), "}}");
}

Kind DrawKind(Rng& rng, const core::AlgorithmInfo& to) {
  const double drawn = rng.Uniform();
  if (drawn < 0.7) return Kind::kAlgorithm;
  const bool one_graph = to.complete_graph || to.star_graph;
  return drawn < 0.85 && !one_graph ? Kind::kTopology : Kind::kKnobs;
}

struct Change {
  std::vector<std::string> sections;  // of the plan
  CampaignNetwork after;              // its graph and codec are the new ones
};

// What the plan is changed to; the network's graph stays, its edges are added
// to.
Change DrawChange(Rng& rng, const core::AlgorithmInfo& to, Kind kind,
                  const std::string& algorithm, CampaignNetwork& network) {
  CampaignNetwork after = network;
  std::vector<std::string> sections;
  if (kind != Kind::kTopology) {
    sections.push_back(absl::StrCat("algorithm: ", algorithm));
  }
  if (kind != Kind::kKnobs) {
    DrawExchange(rng, to, after);
    sections.push_back(absl::StrCat("topology: ", after.graph));
    sections.push_back(absl::StrCat("codec: ", after.codec));
    network.edges.insert(network.edges.end(), after.edges.begin(),
                         after.edges.end());
    std::sort(network.edges.begin(), network.edges.end());
    network.edges.erase(std::unique(network.edges.begin(), network.edges.end()),
                        network.edges.end());
  }
  return {std::move(sections), std::move(after)};
}

// The step at which the network was when the change was given out.
double ShareAt(double time_s, const std::vector<MetricsRow>& rows) {
  for (const MetricsRow& row : rows) {
    if (row.time_s >= time_s) {
      return static_cast<double>(row.step) /
             static_cast<double>(rows.back().step);
    }
  }
  return 1;
}

Calm DrawCalm(const core::AlgorithmInfo& to, bool gossip, Rng& rng) {
  Calm calm;
  const Kind kind = DrawKind(rng, to);
  const absl::Span<const core::AlgorithmInfo> all =
      core::BuiltInCatalogue().entries();
  const core::AlgorithmInfo& from =
      kind == Kind::kAlgorithm ? all[rng.Below(all.size())] : to;
  calm.from = from.name;
  calm.network = DrawNetwork(rng, from, to.predicts);
  if (gossip) {
    calm.network.membership = "lan";
    calm.network.plans_by_gossip = true;
  }
  const Optimum optimum = FindOptimum(MakeProblems(calm.network));
  EXPECT_LT(optimum.gradient, 1e-5) << "f* is not exact";
  calm.least_loss = optimum.loss;
  KnobDraw draw{rng, calm.network, 1 / optimum.smoothness};
  calm.algorithm = Written(from, draw);
  calm.network.stop =
      StopAfter(calm.network, calm.algorithm, calm.network.steps);
  const Outcome unchanged =
      Play(ScenarioText(calm.network, calm.algorithm, {}, absl::Hours(2)),
           calm.least_loss);
  const double time = unchanged.result.rows.back().time_s;
  const std::string after = Written(to, draw);
  Change change = DrawChange(rng, to, kind, after, calm.network);
  const double share = draw.Between(kEarliest, kLatest);
  const int64_t at = static_cast<int64_t>(1000 * time * share);
  if (kind != Kind::kTopology) {
    const auto iterations =
        static_cast<int64_t>(share * static_cast<double>(calm.network.steps));
    const core::Pace before = PaceOf(calm.network, calm.algorithm, iterations);
    change.sections.push_back(absl::StrCat(
        "stop: ", StopAfter(change.after, after,
                            calm.network.steps - iterations, before)));
  }
  const std::string changed =
      absl::StrCat("{", absl::StrJoin(change.sections, ", "), "}");
  const int64_t within = rng.Bernoulli(0.3) ? 0 : draw.From(0, 5000);
  calm.change = absl::StrFormat("{at: %dms, within: %dms, change: %s}", at,
                                within, changed);
  calm.text =
      ScenarioText(calm.network, calm.algorithm, {calm.change}, absl::Hours(2));
  calm.outcome = Play(calm.text, calm.least_loss);
  calm.change_share = ShareAt(0.001 * static_cast<double>(at + within),
                              calm.outcome.result.rows);
  return calm;
}

bool IsGood(const Calm& calm) {
  const double converged = calm.change_share + kConverged;
  return converged <= 0.7 &&
         ConvergedFrom(converged, calm.outcome, calm.least_loss);
}

struct Worst {
  double gap = 0;    // as a share of what is allowed
  double pause = 0;  // the same of a step's time
  double drift = 0;
  int64_t redrawn = 0;
  int64_t crashes = 0;
  int64_t links_lost = 0;
};

class Changes : public testing::TestWithParam<std::string> {
 protected:
  void PlaySeed(const core::AlgorithmInfo& to, uint64_t seed);
  // `most` schedules, unless the environment says how many.
  void PlayAll(int64_t most);
  // Who is there is found out, and the new plan is given to one node.
  bool gossip_ = false;
  Worst worst_;
  int64_t failed_ = 0;  // schedules
};

void ExpectChanged(const Outcome& faulty, const CampaignNetwork& network) {
  EXPECT_EQ(faulty.result.end, End::kFinished) << faulty.result.why;
  EXPECT_TRUE(faulty.finite);
  EXPECT_EQ(faulty.result.rows.back().nodes, network.nodes);
  for (const NodeScore& node : faulty.result.nodes) {
    EXPECT_EQ(node.plan_version, 2) << node.name;
  }
}

void Changes::PlaySeed(const core::AlgorithmInfo& to, uint64_t seed) {
  const int failures = FailuresSoFar();
  Rng rng(DeriveSeed(DeriveSeed(seed, to.name), "change"));
  Calm calm = DrawCalm(to, gossip_, rng);
  for (int64_t i = 1; !IsGood(calm) && i < kMostDraws; ++i) {
    ++worst_.redrawn;
    calm = DrawCalm(to, gossip_, rng);
  }
  ASSERT_EQ(calm.outcome.result.end, End::kFinished)
      << calm.outcome.result.why << "\n"
      << calm.text;
  ASSERT_TRUE(IsGood(calm)) << "the knobs in fault_knobs.cc are too slow";
  ExpectChanged(calm.outcome, calm.network);
  const Schedule schedule = DrawSchedule({calm.network,
                                          calm.algorithm,
                                          {calm.change},
                                          calm.least_loss,
                                          calm.outcome},
                                         rng);
  const Outcome& faulty = schedule.outcome;
  const double allowed = Allowed(calm.outcome.gap);
  const double longest = LongestStep(calm.outcome, calm.network);
  const double drift = faulty.result.rows.back().mass_drift.value_or(0);
  worst_.gap = std::max(worst_.gap, faulty.gap / allowed);
  worst_.pause =
      std::max(worst_.pause, faulty.result.longest_step_gap_s / longest);
  worst_.drift = std::max(worst_.drift, drift);
  worst_.crashes += faulty.result.crashes;
  worst_.links_lost += faulty.result.links_lost;

  ExpectChanged(faulty, calm.network);
  EXPECT_LE(faulty.result.longest_step_gap_s, longest);
  EXPECT_EQ(faulty.result.rows.back().mass_drift.has_value(),
            calm.outcome.result.rows.back().mass_drift.has_value());
  EXPECT_LE(drift, kMostDrift);
  EXPECT_LE(faulty.gap, allowed) << "without faults it is " << calm.outcome.gap
                                 << ", f* is " << calm.least_loss;
  if (FailuresSoFar() > failures) {
    ++failed_;
    const std::string name =
        absl::StrReplaceAll(absl::StrCat(gossip_ ? "gossip-" : "change-",
                                         calm.from, "-", to.name, "-", seed),
                            {{"+", "plus"}});
    std::cout << "replay: DFL_CAMPAIGN_SEED=" << seed
              << " DFL_CAMPAIGN_RUNS=1, or dflsim run "
              << WriteScenario(name, schedule.text) << " --seed "
              << calm.network.seed << "\nwithout faults: dflsim run "
              << WriteScenario(name + "-calm", calm.text) << " --seed "
              << calm.network.seed << "\n";
  }
}

void Changes::PlayAll(int64_t most) {
  const core::AlgorithmInfo& to = **core::BuiltInCatalogue().Find(GetParam());
  ASSERT_NE(FindDrawing(to.name), nullptr)
      << to.name << " has no line in fault_knobs.cc: say how it is drawn there";
  const int64_t runs = FromEnvironment("DFL_CAMPAIGN_RUNS", most);
  const int64_t first = FromEnvironment("DFL_CAMPAIGN_SEED", 1);
  for (int64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE(absl::StrCat("DFL_CAMPAIGN_SEED=", seed));
    PlaySeed(to, static_cast<uint64_t>(seed));
  }
  std::cout << absl::StrFormat(
      "to %s: seeds %d to %d; largest gap %.3f and pause %.2f of what is "
      "allowed, drift %.1e; %d links lost, %d crashes; %d redrawn, %d failed\n",
      to.name, first, first + runs - 1, worst_.gap, worst_.pause, worst_.drift,
      worst_.links_lost, worst_.crashes, worst_.redrawn, failed_);
}

TEST_P(Changes, EveryNodeMovesOverCleanly) { PlayAll(2); }

TEST_P(Changes, EveryNodeMovesOverCleanlyByGossip) {
  gossip_ = true;
  PlayAll(1);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Changes,
                         testing::ValuesIn(CatalogueNames()),
                         CatalogueTestName);

}  // namespace
}  // namespace dfl::sim
