#include "tests/sim/campaign_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/sim/scenario.h"
#include "daemon/simports/problems.h"

namespace dfl::sim {
namespace {

// The share of a run in which there are no faults any more, at its end. Links
// come back some steps into it, and the gap is a mean over the last tenth.
constexpr double kTail = 1.0 / 3;
// JoiningOptions::stall, seconds: a node that began anew and then hears of one
// that is ahead stands still for its model, which may be lost without a word.
constexpr double kJoinStall = 10;

// f(mean w), the mean over the last tenth of a run's steps.
double LastTenth(absl::Span<const MetricsRow> rows) {
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

// The rows from before the first node finished. In continuous time those that
// were down or slow come later, train on without the others, and move away.
absl::Span<const MetricsRow> AllTrain(absl::Span<const MetricsRow> rows) {
  const auto finished =
      std::find_if(rows.begin(), rows.end(), [&](const MetricsRow& row) {
        return row.highest_step >= rows.back().highest_step;
      });
  const auto count = static_cast<size_t>(finished - rows.begin());
  return count > 0 ? rows.first(count) : rows;
}

// Of the plan that it ends with.
bool IsContinuous(const Scenario& scenario) {
  const core::RunPlan* plan = &scenario.plan;
  for (const NetworkEvent& event : scenario.events) {
    if (event.plan != nullptr) plan = event.plan.get();
  }
  return (*core::BuiltInCatalogue().Find(plan->algorithm.name))->continuous;
}

}  // namespace

double Outcome::exchanges() const {
  return static_cast<double>(result.models_received) /
         static_cast<double>(std::max<int64_t>(1, result.reachable));
}

Outcome Play(const std::string& text, double least_loss) {
  Outcome outcome;
  absl::StatusOr<Scenario> scenario = ParseScenario(text, "campaign.yaml");
  EXPECT_TRUE(scenario.ok()) << scenario.status() << "\n" << text;
  if (!scenario.ok()) return outcome;
  const bool continuous = IsContinuous(*scenario);
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
  const absl::Span<const MetricsRow> rows = outcome.result.rows;
  outcome.gap = LastTenth(continuous ? AllTrain(rows) : rows) - least_loss;
  return outcome;
}

Problems MakeProblems(const CampaignNetwork& network) {
  Problems problems;
  if (network.problem == "softmax") {
    simports::SoftmaxSpec spec;
    spec.nodes = network.nodes;
    spec.features = network.n;
    spec.classes = network.classes;
    spec.rows_per_node = network.rows;
    spec.seed = network.seed;
    for (auto& node : simports::SoftmaxExample(spec).nodes) {
      problems.push_back(std::move(node));
    }
    return problems;
  }
  simports::ExampleSpec spec;
  spec.nodes = network.nodes;
  spec.n = network.n;
  spec.rows_per_node = network.rows;
  spec.seed = network.seed;
  simports::ProblemSet set = network.problem == "linear"
                                 ? simports::LinearRegressionExample(spec)
                                 : simports::LogisticRegressionExample(spec);
  return std::move(set.nodes);
}

double Allowed(double gap) { return 2 * std::max(gap, 0.0) + 1e-3; }

bool ConvergedFrom(double share, const Outcome& calm, double least_loss) {
  const std::vector<MetricsRow>& rows = calm.result.rows;
  return std::all_of(rows.begin(), rows.end(), [&](const MetricsRow& row) {
    return static_cast<double>(row.step) <
               share * static_cast<double>(rows.back().step) ||
           row.loss_mean_model - least_loss <= Allowed(calm.gap);
  });
}

double LongestStep(const Outcome& calm, const CampaignNetwork& network) {
  return kSlowestFactor * calm.result.longest_step_gap_s +
         4 * absl::ToDoubleSeconds(network.deadline) + kJoinStall;
}

// How long a run takes is known only afterwards (a node that nobody can reach
// is quick), so the schedule is drawn again, shorter, until that holds.
Schedule DrawSchedule(const CalmRun& calm, Rng& rng) {
  const double calm_time = calm.outcome.result.rows.back().time_s;
  Schedule schedule;
  double time = calm_time;
  for (int i = 0; i < 4; ++i) {
    Rng same = rng;
    const double last = (1 - kTail) * time;
    std::vector<std::string> events =
        DrawFaults(same, calm.network, absl::Seconds(last));
    events.insert(events.end(), calm.events.begin(), calm.events.end());
    schedule.text = ScenarioText(calm.network, calm.algorithm, events,
                                 absl::Seconds(2 * calm_time + 120));
    schedule.outcome = Play(schedule.text, calm.least_loss);
    const double took = schedule.outcome.result.rows.back().time_s;
    if (last <= (1 - kTail) * 1.03 * took) break;
    time = took;
  }
  return schedule;
}

std::string WriteScenario(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name, ".yaml");
  std::ofstream(path) << text;
  return path;
}

int FailuresSoFar() {
  return testing::UnitTest::GetInstance()
      ->current_test_info()
      ->result()
      ->total_part_count();
}

std::vector<std::string> CatalogueNames() {
  std::vector<std::string> names;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    names.push_back(info.name);
  }
  return names;
}

std::string CatalogueTestName(const testing::TestParamInfo<std::string>& info) {
  return absl::StrReplaceAll(info.param, {{"-", "_"}, {"+", "_plus"}});
}

}  // namespace dfl::sim
