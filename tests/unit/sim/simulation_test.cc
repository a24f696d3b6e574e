#include "daemon/sim/simulation.h"
#include "daemon/core/algorithms/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/sim/results.h"
#include "daemon/simports/problems.h"
#include "tests/unit/sim/fake_data.h"
#include "tests/unit/sim/play.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Who waits for all that a round needs learns the same, however fast nodes and
// links are.
TEST(Simulation, SpeedsChangeNothingOfRoundsInStep) {
  for (const char* algorithm :
       {"{name: d-psgd}", "{name: depositum, knobs: {T0: 5}}", "{name: k-gt}",
        "{name: push-pull}", "{name: beer}"}) {
    std::vector<std::vector<float>> ends;
    for (const char* speeds :
         {"  compute: {time: 10ms}\n",
          "  links: {delay: 4ms, jitter: 9ms}\n"
          "  compute: {time: 1ms, extra: 7ms, factor: {n2: 6}}\n"}) {
      auto scenario = ParseScenario(
          absl::StrReplaceAll(SmallScenario(speeds, algorithm),
                              {{"coordinates: random", "coordinates: dense"},
                               {"stop:", "deadline: {exchange: 10s}\nstop:"}}),
          "s.yaml");
      ASSERT_TRUE(scenario.ok()) << scenario.status();
      auto simulation = Simulation::Create(*scenario);
      ASSERT_TRUE(simulation.ok()) << simulation.status();
      const Result result =
          (*simulation)->Run([](const Progress&) { return true; });
      EXPECT_EQ(result.end, End::kFinished) << result.why;
      EXPECT_EQ(result.neighbours_missed, 0);
      std::vector<float> all;
      for (int64_t i = 0; i < (*simulation)->size(); ++i) {
        const absl::Span<const float> w = (*simulation)->parameters(i);
        all.insert(all.end(), w.begin(), w.end());
      }
      ends.push_back(std::move(all));
    }
    EXPECT_EQ(ends[0], ends[1]) << algorithm;
  }
}

TEST(Simulation, LearnsAndMeasures) {
  const Result result = RunTwice(SmallScenario());
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_FALSE(result.failed);
  EXPECT_EQ(result.edges, 8);
  EXPECT_EQ(result.steps, 8 * 120);
  ASSERT_GE(result.rows.size(), 7);
  const MetricsRow& first = result.rows.front();
  const MetricsRow& last = result.rows.back();
  EXPECT_EQ(first.step, 0);
  EXPECT_EQ(first.time_s, 0);
  EXPECT_EQ(first.consensus_error, 0);
  EXPECT_EQ(first.loss_mean_model, first.mean_loss);
  EXPECT_EQ(result.rows[1].step, 20);
  EXPECT_EQ(last.step, 120);
  EXPECT_EQ(last.nodes, 8);
  EXPECT_EQ(last.lowest_step, 120);
  // A step takes 10 ms, and now and then an answer's way.
  EXPECT_GE(last.time_s, 1.2);
  EXPECT_LT(last.time_s, 1.5);
  EXPECT_LT(last.loss_mean_model, 0.3 * first.loss_mean_model);
  EXPECT_GT(last.consensus_error, 0);
  for (size_t i = 1; i < result.rows.size(); ++i) {
    EXPECT_GT(result.rows[i].bytes_sent, result.rows[i - 1].bytes_sent);
    EXPECT_GT(result.rows[i].time_s, result.rows[i - 1].time_s);
  }
}

// The measured values against the nodes' own models, naively.
TEST(Simulation, TheLastRowIsOfTheModelsThereAre) {
  auto made = Simulation::Create(*ParseScenario(SmallScenario(), "s.yaml"));
  ASSERT_TRUE(made.ok());
  Simulation& simulation = **made;
  const Result result = simulation.Run([](const Progress&) { return true; });
  simports::ExampleSpec spec;
  spec.nodes = 8;
  spec.n = 20;
  spec.rows_per_node = 30;
  spec.seed = DeriveSeed(3, "data");
  const simports::ProblemSet problems = simports::LinearRegressionExample(spec);
  double mean_loss = 0;
  double consensus = 0;
  for (int64_t i = 0; i < 8; ++i) {
    mean_loss += problems.nodes[i]->Loss(simulation.parameters(i)) / 8;
    for (int64_t l = 0; l < 20; ++l) {
      double mean = 0;
      for (int64_t j = 0; j < 8; ++j) mean += simulation.parameters(j)[l] / 8.0;
      const double off = simulation.parameters(i)[l] - mean;
      consensus += off * off / 8;
    }
  }
  EXPECT_NEAR(result.rows.back().mean_loss, mean_loss, 1e-12);
  EXPECT_NEAR(result.rows.back().consensus_error, consensus, 1e-12);
}

TEST(Simulation, AnotherSeedIsAnotherRun) {
  EXPECT_NE(RunOnce(SmallScenario(), 1).digest,
            RunOnce(SmallScenario(), 2).digest);
}

TEST(Simulation, TheDataMayHaveASeedOfItsOwn) {
  const std::string text =
      absl::StrReplaceAll(SmallScenario(), {{"rows: 30", "rows: 30, seed: 5"}});
  EXPECT_EQ(RunOnce(text, 1).rows[0].loss_mean_model,
            RunOnce(text, 2).rows[0].loss_mean_model);
}

TEST(Simulation, LearnsLogisticRegression) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario(), {{"kind: linear", "kind: logistic"}}));
  EXPECT_EQ(result.end, End::kFinished);
  // ln 2 at zero parameters.
  EXPECT_NEAR(result.rows.front().loss_mean_model, 0.6931, 1e-4);
  EXPECT_LT(result.rows.back().loss_mean_model, 0.55);
}

// What `algorithm` needs of a graph.
std::string GraphFor(const core::AlgorithmInfo& algorithm) {
  if (algorithm.complete_graph) return "kind: complete";
  return algorithm.star_graph ? "kind: star" : "kind: ring";
}

// Eight nodes with labels of their own mixture.
std::string SoftmaxScenario(absl::string_view network,
                            absl::string_view algorithm) {
  return absl::StrReplaceAll(
      SmallScenario(network, algorithm),
      {{"{kind: linear, n: 20, rows: 30}",
        "{kind: softmax, n: 10, rows: 60, classes: 4, skew: 0.3, test_rows: "
        "300}"}});
}

TEST(Simulation, LearnsClassesAndTellsTheAccuracy) {
  const Result result =
      RunTwice(SoftmaxScenario("", "{name: d-psgd, knobs: {eta: 0.3}}"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.parameters, 4 * 11);
  const MetricsRow& first = result.rows.front();
  const MetricsRow& last = result.rows.back();
  // ln 4 at zero parameters, where one class is predicted.
  EXPECT_NEAR(first.loss_mean_model, 1.3863, 1e-4);
  EXPECT_NEAR(first.accuracy.value(), 0.25, 0.1);
  EXPECT_GT(last.accuracy.value(), 0.7);
  EXPECT_GT(last.accuracy_mean_model.value(), 0.7);
  EXPECT_LT(last.accuracy_mean_model.value(), 1);
}

// On every machine, with every compiler and library. A digest is of the models
// and of all that nodes said to each other; one that changed on purpose is
// written here anew.
TEST(Simulation, DigestsAreTheSameEverywhere) {
  const std::string rough =
      "  links: {delay: 3ms, jitter: 2ms, loss: 0.001}\n"
      "  compute: {time: 8ms, extra: 4ms}\n"
      "  events: [{at: 500ms, crash: n3, for: 300ms}]\n";
  EXPECT_EQ(DigestText(RunOnce(SmallScenario(rough)).digest),
            "c7c3154f4cf22671");
  EXPECT_EQ(
      DigestText(RunOnce(absl::StrReplaceAll(
                             SmallScenario(rough, "{name: depositum}"),
                             {{"kind: linear", "kind: logistic"},
                              {"random, values: fp32", "dense, values: int8"}}))
                     .digest),
      "f540da6574b5fc6c");
  EXPECT_EQ(
      DigestText(RunOnce(absl::StrReplaceAll(
                             SoftmaxScenario(rough, "{name: draco}"),
                             {{"random, values: fp32", "dense, values: fp16"}}))
                     .digest),
      "cfdabf55e01525d9");
}

// Regression has none, and nothing is conserved by pushing models.
TEST(Simulation, WhatIsNotThereIsNotMeasured) {
  const Result result = RunTwice(SmallScenario("", "{name: d-psgd}"));
  EXPECT_FALSE(result.rows.back().accuracy.has_value());
  EXPECT_FALSE(result.rows.back().accuracy_mean_model.has_value());
  EXPECT_FALSE(result.rows.back().mass_drift.has_value());
  EXPECT_THAT(ToCsv(result.rows), HasSubstr(",,,\n"));
}

// Through lost links, all the time with parcels in flight. What a node holds is
// missing while it is down; when it is back, all trackers begin anew.
TEST(Simulation, WhatIsConservedDoesNotDrift) {
  for (const char* name : {"spod-gt", "beer", "sgp", "nids", "k-gt"}) {
    SCOPED_TRACE(name);
    const Result result = RunTwice(absl::StrReplaceAll(
        SmallScenario("  links: {delay: 3ms, jitter: 2ms, loss: 0.0005}\n"
                      "  events: [{at: 500ms, crash: n3, for: 300ms}]\n",
                      absl::StrCat("{name: ", name, "}")),
        {{"coordinates: random", "coordinates: dense"},
         {"steps: 120", "steps: 150"}}));
    EXPECT_EQ(result.end, End::kFinished) << result.why;
    EXPECT_EQ(result.crashes, 1);
    for (const MetricsRow& row : result.rows) {
      ASSERT_TRUE(row.mass_drift.has_value()) << row.step;
      if (row.time_s >= 0.5 && row.time_s < 1.5) continue;
      EXPECT_LE(*row.mass_drift, 1e-4)
          << row.step << ", " << row.time_s << " s";
    }
    EXPECT_GT(result.rows.back().time_s, 1.5);
  }
}

// However many steps a round has.
TEST(Simulation, ARunOfRoundsHasAHundredRowsOfMetrics) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario("", "{name: dfedavgm, knobs: {K: 10}}"),
      {{"  metrics_every: 20\n", ""}, {"steps: 120", "rounds: 200"}}));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_GT(result.rows.size(), 95U);
  EXPECT_LT(result.rows.size(), 106U);
}

// A node that goes takes along what it holds.
TEST(Simulation, WhatACrashTakesAlongIsSeen) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario("  metrics_every: 2\n"
                    "  events: [{at: 500ms, crash: n3, for: 5s}]\n",
                    "{name: spod-gt}"),
      {{"  metrics_every: 20\n", ""},
       {"coordinates: random", "coordinates: dense"}}));
  double largest = 0;
  for (const MetricsRow& row : result.rows) {
    if (row.nodes == 7) largest = std::max(largest, row.mass_drift.value());
  }
  EXPECT_GT(largest, 1e-3);
}

// ------------------------------------------------------------------- data ----

TEST(DataProblem, IsLearnedByTheLearnersThatAreBrought) {
  std::string csv;
  for (int again = 0; again < 2; ++again) {
    auto made = Simulation::Create(
        *ParseScenario(
            DataScenario("  events: [{at: 300ms, crash: n3, for: 300ms}]\n"),
            "s.yaml"),
        OpenFake);
    ASSERT_TRUE(made.ok()) << made.status();
    const Result result = (*made)->Run([](const Progress&) { return true; });
    EXPECT_EQ(result.end, End::kFinished) << result.why;
    EXPECT_EQ(result.parameters, 3 * 6);
    EXPECT_EQ(result.crashes, 1);
    // How many rows each has is known once they are read.
    EXPECT_EQ((*made)->scenario().plan.members[7].rows, 40);
    const MetricsRow& last = result.rows.back();
    EXPECT_GT(last.accuracy.value(), 0.7);
    EXPECT_LT(last.loss_mean_model, result.rows.front().loss_mean_model);
    // Of 100 rows.
    const double hits = 100 * last.accuracy_mean_model.value();
    EXPECT_NEAR(hits, std::round(hits), 1e-9);
    if (again == 1) {
      EXPECT_EQ(ToCsv(result.rows), csv);
    }
    csv = ToCsv(result.rows);
  }
}

TEST(DataProblem, IsRefusedWhereNothingLearnsIt) {
  const auto made =
      Simulation::Create(*ParseScenario(DataScenario(), "s.yaml"));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(made.status().message(),
              HasSubstr("network.problem.kind: found data, and this program "
                        "brings no learners"));
}

TEST(DataProblem, AModelThatDoesNotFitIsToldBeforeAnythingRuns) {
  const auto made = Simulation::Create(
      *ParseScenario(DataScenario("", "mlp"), "s.yaml"), OpenFake);
  EXPECT_THAT(made.status().message(), HasSubstr("model.kind: allowed: svm"));
}

// Everything the catalogue has, each on a graph and with messages it takes.
TEST(Simulation, RunsEveryAlgorithm) {
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    SCOPED_TRACE(info.name);
    constexpr char kCompute[] = "  compute: {time: 8ms, extra: 4ms}\n";
    const std::string algorithm = absl::StrCat("{name: ", info.name, "}");
    const std::string text = info.predicts
                                 ? SoftmaxScenario(kCompute, algorithm)
                                 : SmallScenario(kCompute, algorithm);
    const bool by_rounds =
        info.round_is_iteration && info.exchange != core::Exchange::kNone;
    const Result result = RunTwice(absl::StrReplaceAll(
        text,
        {{"kind: ring", GraphFor(info)},
         {"steps: 120", by_rounds ? "rounds: 120" : "steps: 120"},
         {"coordinates: random",
          info.dense_only ? "coordinates: dense" : "coordinates: random"}}));
    EXPECT_EQ(result.end, End::kFinished) << result.why;
    if (by_rounds) {
      for (const NodeScore& node : result.nodes) EXPECT_EQ(node.round, 120);
    } else {
      EXPECT_GE(result.rows.back().lowest_step, 120);
    }
    EXPECT_EQ(result.messages_rejected, 0);
    EXPECT_LT(result.rows.back().mean_loss, result.rows.front().mean_loss);
  }
}

// Nodes in pairs, other ones in the next round.
constexpr char kPairs[] =
    "{kind: time-varying, edge_sets: ["
    "[[n0, n1], [n2, n3], [n4, n5], [n6, n7]], "
    "[[n1, n2], [n3, n4], [n5, n6], [n7, n0]]]}";

TEST(Simulation, FollowsAGraphThatChanges) {
  for (const char* topology :
       {kPairs, "{kind: erdos-renyi, edge_probability: 0.4, every: 3}"}) {
    for (const char* name : {"d-psgd", "dfedavgm", "async-dsgd", "pame"}) {
      SCOPED_TRACE(absl::StrCat(topology, " ", name));
      const Result result = RunTwice(absl::StrReplaceAll(
          SmallScenario("", absl::StrCat("{name: ", name, "}")),
          {{"{kind: ring}", topology},
           {"steps: 120",
            name == std::string("pame") ? "steps: 120" : "rounds: 120"},
           {"coordinates: random", "coordinates: dense"}}));
      EXPECT_EQ(result.end, End::kFinished) << result.why;
      EXPECT_EQ(result.steps,
                8 * 120 * (name == std::string("dfedavgm") ? 5 : 1));
      EXPECT_EQ(result.messages_rejected, 0);
      EXPECT_EQ(result.neighbours_missed, 0);
      EXPECT_LT(result.rows.back().mean_loss, result.rows.front().mean_loss);
    }
  }
}

// Apart they would stay apart: of a changing graph every round's edges count.
TEST(Simulation, APartitionCutsTheEdgesOfAllRounds) {
  const std::string scenario = absl::StrReplaceAll(
      SmallScenario("  events: [{at: 1ms, partition: [[n0, n1, n2, n3]]}]\n",
                    "{name: d-psgd}"),
      {{"{kind: ring}", kPairs},
       {"coordinates: random", "coordinates: dense"}});
  const Result result = RunTwice(scenario);
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.links_lost, 4);  // n3 - n4 and n7 - n0, at both ends
}

TEST(Simulation, RunsOnADirectedGraph) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario("", "{name: local}"),
      {{"{kind: ring}",
        "{kind: explicit, directed: on, edges: [[n0, n1], [n1, n2], [n2, n3], "
        "[n3, n4], [n4, n5], [n5, n6], [n6, n7], [n7, n0], [n0, n4]]}"}}));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.edges, 9);
}

TEST(Simulation, ASlowNodeIsSlow) {
  const Result result =
      RunTwice(SmallScenario("  compute: {factor: {n3: 4}}\n"));
  EXPECT_GE(result.rows.back().time_s, 4.8);
  EXPECT_LT(result.rows[2].lowest_step, result.rows[2].highest_step / 2);
}

TEST(Simulation, SpeedsMayVary) {
  const Result result =
      RunTwice(SmallScenario("  compute: {time: 5ms, extra: 5ms}\n"));
  EXPECT_NEAR(result.rows.back().time_s, 1.2, 0.6);
  EXPECT_LT(result.rows[3].lowest_step, result.rows[3].highest_step);
}

TEST(Simulation, DelayAndRateCostTime) {
  const std::string algorithm = "{name: d-psgd}";
  const double near = RunTwice(SmallScenario("", algorithm)).rows.back().time_s;
  const double far =
      RunTwice(SmallScenario("  links: {delay: 30ms}\n", algorithm))
          .rows.back()
          .time_s;
  EXPECT_GT(far, near + 120 * 0.030);
  const double thin =
      RunTwice(SmallScenario("  links: {rate: 2kB}\n", algorithm))
          .rows.back()
          .time_s;
  EXPECT_GT(thin, 1.3 * near);
}

TEST(Simulation, LostFramesHoldNobodyUp) {
  const Result result = RunTwice(SmallScenario("  links: {loss: 0.02}\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_GT(result.links_lost, 5);
  EXPECT_LT(result.rows.back().loss_mean_model,
            0.3 * result.rows.front().loss_mean_model);
}

TEST(Simulation, LinksMayBeLossyForAWhile) {
  const Result result =
      RunTwice(SmallScenario("  events: [{at: 200ms, loss: 0.1, for: 300ms}, "
                             "{at: 10s, loss: 0.9}]\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_GT(result.links_lost, 5);
  // Not throughout, nor by what comes after the end.
  EXPECT_LT(result.links_lost,
            RunTwice(SmallScenario("  links: {loss: 0.1}\n")).links_lost / 2);
}

TEST(Simulation, ANodeMayBeSlowForAWhile) {
  const Result result = RunTwice(SmallScenario(
      "  events: [{at: 100ms, slow: n3, factor: 20, for: 1s}]\n"));
  // Five steps of 200 ms in the place of 100, and as fast as ever after that.
  EXPECT_NEAR(result.rows.back().time_s, 1.2 + 1 - 0.05, 0.3);
  EXPECT_NEAR(result.longest_step_gap_s, 0.2, 0.01);
  EXPECT_LT(RunTwice(SmallScenario()).longest_step_gap_s, 0.03);
}

// On a ring with one push a neighbour and round.
TEST(Simulation, CountsWhatWasReceivedAndWhatCouldHaveBeen) {
  const std::string algorithm = "{name: d-psgd}";
  const Result calm = RunTwice(SmallScenario("", algorithm));
  EXPECT_EQ(calm.reachable, 8 * 120 * 2);
  EXPECT_GE(calm.models_received, 8 * 119 * 2);
  EXPECT_LE(calm.models_received, 8 * 120 * 2);
  // Neither end of a link that is cut could have got anything over it, nor
  // anybody from a node that is not there.
  const Result cut = RunTwice(
      SmallScenario("  events: [{at: 1ms, cut: [n0, n1]}]\n", algorithm));
  EXPECT_EQ(cut.reachable, 8 * 120 * 2 - 2 * 120);
  EXPECT_LE(cut.models_received, cut.reachable);
  const Result gone =
      RunTwice(SmallScenario("  events: [{at: 1ms, crash: n4}]\n", algorithm));
  EXPECT_EQ(gone.reachable, 7 * 120 * 2 - 2 * 120);
  // A black hole takes what could have been as well.
  const Result hole = RunTwice(SmallScenario(
      "  events: [{at: 1ms, black_hole: [n0, n1], for: 60s}]\n", algorithm));
  EXPECT_LT(hole.reachable, calm.reachable);
  EXPECT_GT(hole.longest_step_gap_s, 2);  // deadline.exchange
}

TEST(Simulation, ACutAndAPartitionHeal) {
  const Result cut = RunTwice(
      SmallScenario("  events:\n"
                    "    - {at: 200ms, cut: [n0, n1], for: 300ms}\n"
                    "    - {at: 300ms, partition: [[n0, n1, n2]], for: 1s}\n"));
  EXPECT_EQ(cut.end, End::kFinished) << cut.why;
  EXPECT_GE(cut.links_lost, 6);
  const Result hole = RunTwice(SmallScenario(
      "  events: [{at: 200ms, black_hole: [n0, n1], for: 60s}]\n"));
  EXPECT_EQ(hole.end, End::kFinished) << hole.why;
  EXPECT_GT(hole.neighbours_missed, 0);
}

TEST(Simulation, TroublesThatOverlapBothMustEnd) {
  // For good: the second never ends.
  const Result result =
      RunTwice(SmallScenario("  events:\n"
                             "    - {at: 100ms, cut: [n0, n1], for: 200ms}\n"
                             "    - {at: 150ms, cut: [n0, n1]}\n"));
  EXPECT_EQ(result.end, End::kFinished);
  EXPECT_EQ(result.links_lost, 2);  // one at each end, never up again
}

TEST(Simulation, ACrashedNodeComesBackAndFinishes) {
  const Result result = RunTwice(
      SmallScenario("  events: [{at: 400ms, crash: n5, for: 300ms}]\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.crashes, 1);
  EXPECT_EQ(result.rows.back().nodes, 8);
  EXPECT_EQ(result.rows.back().lowest_step, 120);
  // It took its steps up again where a neighbour was.
  EXPECT_LT(result.steps, 8 * 120);
}

TEST(Simulation, OneThatLeavesForGoodIsNotWaitedFor) {
  const Result result =
      RunTwice(SmallScenario("  events: [{at: 400ms, crash: n5}]\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.rows.back().nodes, 7);
}

TEST(Simulation, ALateNodeJoinsWhereTheOthersAre) {
  const Result result =
      RunTwice(SmallScenario("  events: [{at: 800ms, join: n2}]\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.rows.front().nodes, 7);
  EXPECT_EQ(result.rows.back().nodes, 8);
  EXPECT_LT(result.steps, 7 * 120 + 60);
}

TEST(Simulation, EndsWhenTheLossHasSettled) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario("  settled_below: 0.5\n"), {{"steps: 120", "steps: 0"}}));
  EXPECT_EQ(result.end, End::kSettled);
  EXPECT_FALSE(result.failed);
  EXPECT_GE(result.rows.size(), 4);
}

TEST(Simulation, ARunThatDoesNotGetThereFails) {
  const Result late = RunTwice(SmallScenario("  limit: 500ms\n"));
  EXPECT_EQ(late.end, End::kLimit);
  EXPECT_TRUE(late.failed);
  EXPECT_NEAR(late.rows.back().time_s, 0.5, 1e-9);
  const Result gone = RunTwice(
      absl::StrReplaceAll(SmallScenario("  events: [{at: 100ms, crash: n0}]\n"),
                          {{"nodes: 8", "nodes: 1"}}));
  EXPECT_EQ(gone.end, End::kStalled);
  EXPECT_TRUE(gone.failed);
}

TEST(Simulation, ALimitAloneIsAnEndAndNoFailure) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario("  limit: 500ms\n"), {{"stop: {steps: 120}\n", ""}}));
  EXPECT_EQ(result.end, End::kLimit);
  EXPECT_FALSE(result.failed);
}

TEST(Simulation, DivergenceEndsTheRun) {
  const Result result = RunTwice(SmallScenario(
      "", "{name: pame, knobs: {sigma0: 0.001, nu: 0.5, p: 0.5}}"));
  EXPECT_EQ(result.end, End::kDiverged);
  EXPECT_TRUE(result.failed);
  EXPECT_THAT(result.why, HasSubstr("the loss of a mini-batch is"));
}

TEST(Simulation, IsInterruptedByItsCaller) {
  auto made = Simulation::Create(*ParseScenario(
      absl::StrReplaceAll(SmallScenario(), {{"steps: 120", "steps: 5000"}}),
      "s.yaml"));
  ASSERT_TRUE(made.ok());
  int64_t asked = 0;
  const Result result = (*made)->Run([&](const Progress& progress) {
    EXPECT_LE(progress.share, 1);
    return ++asked < 2;
  });
  EXPECT_EQ(result.end, End::kInterrupted);
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(result.rows.empty());
}

// 100 MB over 2 Mbit/s, both a hundredth of that: 400 s for a model. Two cuts
// interrupt it, after which it goes on where it was; periods of seconds go on
// meanwhile.
TEST(Simulation, AModelThatTakesManyPeriodsArrives) {
  const Result result = RunOnce(
      "seed: 1\nbatch_size: 1\n"
      "algorithm: {name: draco, knobs: {eta: 0.0000001, P: 0}}\n"
      "topology: {kind: complete}\n"
      "codec: {coordinates: dense, values: fp32}\n"
      "stop: {time: 2000s}\ndeadline: {exchange: 2s}\n"
      "evaluation: {every_steps: 0}\n"
      "network:\n  nodes: 2\n  metrics_every: 1000\n"
      "  problem: {kind: linear, n: 250000, rows: 1}\n"
      "  links: {delay: 50ms, rate: 2500B}\n"
      "  compute: {time: 4s}\n"
      "  events:\n"
      "    - {at: 300s, cut: [n0, n1], for: 2s}\n"
      "    - {at: 700s, cut: [n0, n1], for: 2s}\n");
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  // Both directions are full nearly all the time.
  EXPECT_GE(result.models_received, 8);
  EXPECT_GE(result.rows.back().step, 400);
}

TEST(Simulation, SaysWhatHasNoEffect) {
  auto made = Simulation::Create(
      *ParseScenario(SmallScenario("  paths: [{between: [n0, n4], delay: 1s}]\n"
                                   "  events: [{at: 1s, cut: [n1, n3]}]\n"),
                     "s.yaml"));
  ASSERT_TRUE(made.ok());
  EXPECT_THAT((*made)->notes(),
              ElementsAre(HasSubstr("n0 and n4 are no neighbours"),
                          HasSubstr("n1 and n3 are no neighbours")));
}

}  // namespace
}  // namespace dfl::sim
