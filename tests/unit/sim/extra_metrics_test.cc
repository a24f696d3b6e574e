// network.metrics: what may be asked for, and what is measured then.
#include "daemon/sim/extra_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/sim/tasks/data_task.h"
#include "daemon/simports/problems.h"
#include "tests/unit/sim/fake_data.h"
#include "tests/unit/sim/play.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAll[] =
    "  metrics: [gradient_error, proximal_gradient, consensus_error_y, "
    "consensus_error_nu]\n";

// All rows in every gradient, whole messages.
std::string Exact(absl::string_view network, absl::string_view algorithm) {
  return absl::StrReplaceAll(SmallScenario(network, algorithm),
                             {{"coordinates: random", "coordinates: dense"},
                              {"batch_size: 10", "batch_size: 30"}});
}

// ------------------------------------------------------------ what may be ----

std::vector<std::string> MetricsOf(const std::string& text,
                                   absl::string_view variant = "") {
  const auto scenario = ParseScenario(text, "s.yaml", 0, variant);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? scenario->metrics : std::vector<std::string>();
}

std::string ErrorOf(const std::string& text) {
  return std::string(ParseScenario(text, "s.yaml").status().message());
}

TEST(ExtraMetrics, AreThoseOfTheAlgorithm) {
  EXPECT_THAT(MetricsOf(Exact(kAll, "{name: depositum}")),
              ElementsAre("gradient_error", "proximal_gradient",
                          "consensus_error_y", "consensus_error_nu"));
  EXPECT_THAT(MetricsOf(SmallScenario("  metrics: [proximal_gradient]\n")),
              ElementsAre("proximal_gradient"));
  EXPECT_TRUE(MetricsOf(SmallScenario()).empty());
}

TEST(ExtraMetrics, WhatTheAlgorithmDoesNotHaveIsRefusedWithItsLine) {
  EXPECT_EQ(ErrorOf(Exact("  metrics:\n    - proximal_gradient\n"
                          "    - consensus_error_z\n",
                          "{name: depositum}")),
            "s.yaml:13: network.metrics[1]: found \"consensus_error_z\"; "
            "allowed: proximal_gradient, gradient_error, consensus_error_y, "
            "consensus_error_nu, which is what depositum has");
  // k-gt's c corrects gradients and estimates none.
  EXPECT_THAT(ErrorOf(Exact("  metrics: [gradient_error]\n", "{name: k-gt}")),
              HasSubstr("s.yaml:11: network.metrics[0]: found "
                        "\"gradient_error\"; allowed: proximal_gradient, "
                        "consensus_error_c, which is what k-gt has"));
  EXPECT_THAT(
      ErrorOf(SmallScenario("  metrics: [proximal_gradient, "
                            "proximal_gradient]\n")),
      HasSubstr("network.metrics[1]: found \"proximal_gradient\" twice"));
  EXPECT_THAT(ErrorOf(SmallScenario("  metrics: loss\n")),
              HasSubstr("network.metrics: found \"loss\"; allowed: a list"));
  EXPECT_THAT(ErrorOf(SmallScenario("  metrics: [[a]]\n")),
              HasSubstr("s.yaml:11: network.metrics[0]: "));
}

// The runs of a file, and the times of a run, are measured alike.
TEST(ExtraMetrics, AreThoseOfVariantsAndOfChangesToo) {
  const std::string text =
      absl::StrCat(Exact("  metrics: [consensus_error_v]\n", "{name: d-psgd}"),
                   "variants:\n  plain: {}\n  beer: {algorithm: {name: beer}}\n"
                   "  without: {network: {metrics: }}\n");
  for (const char* variant : {"plain", "beer"}) {
    EXPECT_THAT(MetricsOf(text, variant), ElementsAre("consensus_error_v"));
  }
  EXPECT_TRUE(MetricsOf(text, "without").empty());
  EXPECT_THAT(MetricsOf(Exact(
                  "  metrics: [consensus_error_v]\n"
                  "  events: [{at: 1s, change: {algorithm: {name: beer}}}]\n",
                  "{name: d-psgd}")),
              ElementsAre("consensus_error_v"));
}

// ---------------------------------------------------------- what there is ----

simports::ProblemSet Problems() {
  simports::ExampleSpec spec;
  spec.nodes = 8;
  spec.n = 20;
  spec.rows_per_node = 30;
  spec.seed = DeriveSeed(3, "data");
  return simports::LinearRegressionExample(spec);
}

// The last row of a run, and its models.
struct Played {
  std::map<std::string, double> extra;
  std::vector<std::vector<float>> models;
};

Played Play(const std::string& text) {
  Played played;
  auto simulation = *Simulation::Create(*ParseScenario(text, "s.yaml"));
  const Result result = simulation->Run([](const Progress&) { return true; });
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  played.extra = result.rows.back().extra;
  for (int64_t i = 0; i < simulation->size(); ++i) {
    const absl::Span<const float> w = simulation->parameters(i);
    played.models.emplace_back(w.begin(), w.end());
  }
  return played;
}

std::vector<double> Mean(const std::vector<std::vector<float>>& vectors) {
  std::vector<double> mean(vectors[0].size(), 0.0);
  for (const auto& vector : vectors) {
    for (size_t l = 0; l < mean.size(); ++l) {
      mean[l] += vector[l] / static_cast<double>(vectors.size());
    }
  }
  return mean;
}

// Nodes that never meet, without momentum: nu = y = beta grad f_i(w_i).
TEST(ExtraMetrics, AreWhatTheirFormulasSay) {
  const Played played = Play(
      Exact(kAll, "{name: depositum, knobs: {T0: 1000, gamma: 0, beta: 0.5}}"));
  const simports::ProblemSet problems = Problems();
  std::vector<std::vector<float>> gradients(8, std::vector<float>(20));
  for (size_t i = 0; i < 8; ++i) {
    problems.nodes[i]->Gradient(played.models[i], {},
                                absl::MakeSpan(gradients[i]));
  }
  const std::vector<double> mean = Mean(gradients);
  double off = 0;
  double consensus = 0;
  for (size_t l = 0; l < 20; ++l) {
    off += std::pow(mean[l] - 0.5 * mean[l], 2);
    for (size_t i = 0; i < 8; ++i) {
      consensus += std::pow(0.5 * (gradients[i][l] - mean[l]), 2) / 8;
    }
  }
  ASSERT_GT(off, 1e-9);
  EXPECT_NEAR(played.extra.at("gradient_error") / off, 1, 1e-4);
  ASSERT_GT(consensus, 1e-9);
  EXPECT_NEAR(played.extra.at("consensus_error_y") / consensus, 1, 1e-4);
  EXPECT_EQ(played.extra.at("consensus_error_nu"),
            played.extra.at("consensus_error_y"));
}

// At the mean of the models.
TEST(ExtraMetrics, TheProximalGradientHasThePlansPenaltyAndStep) {
  for (const bool penalised : {false, true}) {
    SCOPED_TRACE(penalised);
    const Played played =
        Play(Exact("  metrics: [proximal_gradient]\n",
                   penalised ? "{name: depositum, knobs: {alpha: 0.1, prox: "
                               "l1, lambda: 0.3, beta: 0.5}}"
                             : "{name: d-psgd}"));
    const std::vector<double> mean = Mean(played.models);
    const std::vector<float> w(mean.begin(), mean.end());
    const simports::ProblemSet problems = Problems();
    std::vector<std::vector<float>> gradients(8, std::vector<float>(20));
    for (size_t i = 0; i < 8; ++i) {
      problems.nodes[i]->Gradient(w, {}, absl::MakeSpan(gradients[i]));
    }
    const std::vector<double> gradient = Mean(gradients);
    double square = 0;
    double smooth = 0;
    for (size_t l = 0; l < 20; ++l) {
      const double v = w[l] - 0.1 * gradient[l];
      const double soft =
          std::copysign(std::fmax(std::fabs(v) - 0.1 * 0.3, 0), v);
      square += std::pow((w[l] - soft) / 0.1, 2);
      smooth += gradient[l] * gradient[l];
    }
    const double want = penalised ? square : smooth;
    ASSERT_GT(std::fabs(square / smooth - 1), 0.01);
    EXPECT_NEAR(played.extra.at("proximal_gradient") / want, 1, 1e-4);
  }
}

// Sum y = sum grad f_i where all gradients are of all rows; before anything is
// computed y is 0.
TEST(ExtraMetrics, WhatTracksTheMeanGradientIsNotOff) {
  for (const char* name : {"push-pull", "beer"}) {
    SCOPED_TRACE(name);
    const Result result =
        RunTwice(Exact("  metrics: [gradient_error, proximal_gradient]\n",
                       absl::StrCat("{name: ", name, "}")));
    const MetricsRow& first = result.rows.front();
    EXPECT_NEAR(
        first.extra.at("gradient_error") / first.extra.at("proximal_gradient"),
        1, 1e-12);
    for (size_t i = 1; i < result.rows.size(); ++i) {
      EXPECT_LT(result.rows[i].extra.at("gradient_error"),
                1e-9 * first.extra.at("gradient_error"));
    }
  }
}

// On the complete graph an exchange makes all trackers one.
TEST(ExtraMetrics, ExchangesBringTrackersTogether) {
  const auto error = [](const char* period) {
    return Play(absl::StrReplaceAll(
                    Exact(kAll, absl::StrCat("{name: depositum, knobs: {T0: ",
                                             period, "}}")),
                    {{"kind: ring", "kind: complete"}}))
        .extra.at("consensus_error_y");
  };
  EXPECT_LT(error("1"), 1e-10);
  EXPECT_GT(error("50"), 1e-4);
}

TEST(ExtraMetrics, ChangeNothingOfTheRun) {
  const std::string algorithm = "{name: depositum}";
  const Result with = RunTwice(Exact(kAll, algorithm));
  const Result without = RunTwice(Exact("", algorithm));
  EXPECT_EQ(with.digest, without.digest);
  EXPECT_EQ(ToCsv(with.rows), ToCsv(without.rows));
  EXPECT_EQ(with.rows.back().extra.size(), 4);
  EXPECT_TRUE(without.rows.back().extra.empty());
}

TEST(ExtraMetrics, AreLeftOutWhileANodeRunsAnotherAlgorithm) {
  const Result result = RunTwice(Exact(
      absl::StrCat(kAll,
                   "  events: [{at: 500ms, within: 100ms, change: {algorithm: "
                   "{name: depositum}}}]\n"),
      "{name: d-psgd}"));
  const MetricsRow& first = result.rows.front();
  EXPECT_EQ(first.extra.size(), 1);
  EXPECT_EQ(first.extra.count("proximal_gradient"), 1);
  EXPECT_EQ(result.rows.back().extra.size(), 4);
}

// ------------------------------------------------------ gradients of data ----

// Over all rows, of which the last batch has fewer.
TEST(DataGradient, IsThatOfAllRowsOfTheNode) {
  static constexpr int64_t kRows = 620;
  const Scenario scenario = *ParseScenario(DataScenario(), "s.yaml");
  const FakeDataLearners same(8, kRows);
  const auto task = *MakeDataTask(
      scenario.problem, scenario.plan, [](const config::DataSettings&) {
        return std::make_unique<FakeDataLearners>(8, kRows);
      });
  std::vector<float> w(18, 0.25F);
  for (const int64_t i : {0, 3, 0}) {
    w[static_cast<size_t>(i)] = 1;
    std::vector<float> want(18);
    same.problem(i).Gradient(w, {}, absl::MakeSpan(want));
    const auto got = task->Gradient(i, {w, {}});
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t l = 0; l < want.size(); ++l) {
      EXPECT_NEAR((*got)[l], want[l], 1e-6) << i;
    }
  }
}

TEST(DataGradient, IsMeasuredInARun) {
  auto made = Simulation::Create(
      *ParseScenario(DataScenario("  metrics: [proximal_gradient]\n"),
                     "s.yaml"),
      OpenFake);
  ASSERT_TRUE(made.ok()) << made.status();
  const Result result = (*made)->Run([](const Progress&) { return true; });
  const double first = result.rows.front().extra.at("proximal_gradient");
  EXPECT_LT(result.rows.back().extra.at("proximal_gradient"), 0.1 * first);
}

}  // namespace
}  // namespace dfl::sim
