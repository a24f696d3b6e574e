// Members that do not keep to the algorithm, and the rules that bear them.
#include "daemon/sim/hostile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/algorithms/catalogue.h"
#include "tests/unit/sim/play.h"

namespace dfl::sim {
namespace {

using ::testing::HasSubstr;

runtime::SnapshotPtr Model(std::vector<float> values) {
  auto model = std::make_shared<runtime::Snapshot>();
  model->parameters.assign(values.begin(), values.end());
  model->buffers = {2};
  model->step = 5;
  return model;
}

runtime::SnapshotPtr Forged(Attack attack, std::optional<double> factor = {}) {
  HostileSpec spec;
  spec.attack = attack;
  spec.factor = factor;
  return MakeForge(spec, 1)(Model({1, -3}));
}

TEST(Hostile, SendsWhatTheAttackSays) {
  EXPECT_EQ(Forged(Attack::kSignFlip)->parameters, (FlatVector{-1, 3}));
  EXPECT_EQ(Forged(Attack::kSignFlip, 2)->buffers, (FlatVector{-4}));
  EXPECT_EQ(Forged(Attack::kScale)->parameters, (FlatVector{10, -30}));
  EXPECT_EQ(Forged(Attack::kHuge)->parameters, (FlatVector{1e30F, 1e30F}));
  const auto noisy = Forged(Attack::kNoise);
  EXPECT_NE(noisy->parameters[0], 1);
  EXPECT_LT(std::abs(noisy->parameters[0]), 20);
  EXPECT_EQ(noisy->step, 5);
  HostileSpec stale;
  stale.attack = Attack::kStale;
  const runtime::Forge replay = MakeForge(stale, 1);
  const auto first = Model({1});
  EXPECT_EQ(replay(first), first);
  EXPECT_EQ(replay(Model({2})), first);
  HostileSpec labels;
  labels.attack = Attack::kLabels;
  EXPECT_EQ(MakeForge(labels, 1), nullptr);
}

TEST(Hostile, NamesAreReadAsTheyAreWritten) {
  for (const Attack attack :
       {Attack::kSignFlip, Attack::kScale, Attack::kHuge, Attack::kNoise,
        Attack::kStale, Attack::kLabels}) {
    EXPECT_EQ(ParseAttack(AttackName(attack)), attack);
  }
  EXPECT_EQ(AttackNames(), "sign-flip, scale, huge, noise, stale or labels");
}

// Eight nodes of a problem of classes on the complete graph.
std::string ScenarioOf(const std::string& algorithm, const std::string& rule,
                       const std::string& attack) {
  const std::string hostile =
      attack.empty()
          ? ""
          : absl::StrCat("  hostile: {nodes: [n7], attack: ", attack, "}\n");
  return absl::StrCat(
      "seed: 4\nbatch_size: 10\nalgorithm: ", algorithm,
      "\ntopology: {kind: complete}\n"
      "codec: {coordinates: dense, values: fp32}\n"
      "aggregation: {rule: ",
      rule,
      "}\nstop: {rounds: 80}\n"
      "evaluation: {every_steps: 0}\n"
      "network:\n  nodes: 8\n"
      "  problem: {kind: softmax, n: 10, rows: 60, classes: 4, skew: 1}\n",
      hostile);
}

double AccuracyOf(const std::string& scenario) {
  const Result result = RunOnce(scenario);
  EXPECT_EQ(result.end, End::kFinished) << scenario;
  return result.rows.back().accuracy.value_or(0);
}

// Knobs with which the algorithm learns the problem.
std::string Tuned(const core::AlgorithmInfo& info) {
  const auto has = [&info](const std::string& name) {
    return std::any_of(
        info.knobs.begin(), info.knobs.end(),
        [&](const core::KnobSpec& knob) { return knob.name == name; });
  };
  std::vector<std::string> knobs;
  if (has("eta")) knobs.push_back("eta: 0.1");
  if (has("s")) knobs.push_back("s: 5");
  if (has("nu")) knobs.push_back("nu: 1, p: 1, kappa: 2, sigma0: 2");
  if (has("form")) knobs.push_back("form: gradient");
  return absl::StrCat("{name: ", info.name, ", knobs: {",
                      absl::StrJoin(knobs, ", "), "}}");
}

std::vector<std::string> AlgorithmsWithRules() {
  std::vector<std::string> names;
  for (const core::AlgorithmInfo& info : core::BuiltInCatalogue().entries()) {
    if (info.mixes_models) names.push_back(info.name);
  }
  return names;
}

class HostileRun : public testing::TestWithParam<std::string> {};

TEST_P(HostileRun, OneOfEightCostsTheOthersLittle) {
  const std::string algorithm =
      Tuned(**core::BuiltInCatalogue().Find(GetParam()));
  const double calm = AccuracyOf(ScenarioOf(algorithm, "mean", ""));
  for (const auto& [rule, attack] :
       {std::pair("trimmed-mean", ""), std::pair("trimmed-mean", "sign-flip"),
        std::pair("median", "scale"), std::pair("median", "labels"),
        std::pair("centred-clipping", "huge"),
        std::pair("centred-clipping", "labels")}) {
    EXPECT_GT(AccuracyOf(ScenarioOf(algorithm, rule, attack)), calm - 0.06)
        << rule << " against " << attack << "; without either " << calm;
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, HostileRun,
                         testing::ValuesIn(AlgorithmsWithRules()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                             if (c == '+') c = 'P';
                           }
                           return name;
                         });

// So that the test above can fail.
TEST(HostileRun, TheMeanDoesNotBearIt) {
  const std::string algorithm = "{name: d-psgd, knobs: {eta: 0.1}}";
  const double calm = AccuracyOf(ScenarioOf(algorithm, "mean", ""));
  EXPECT_LT(AccuracyOf(ScenarioOf(algorithm, "mean", "sign-flip, factor: 4")),
            calm - 0.06);
}

TEST(HostileRun, IsTheSameRunAgain) {
  RunTwice(ScenarioOf("{name: d-psgd}", "median", "noise"));
}

TEST(HostileScenario, MistakesAreToldWithTheirLine) {
  const auto error = [](const std::string& network) {
    const auto scenario = ParseScenario(
        absl::StrCat("algorithm: {name: d-psgd}\nstop: {steps: 10}\nnetwork:\n"
                     "  nodes: 2\n  hostile: ",
                     network, "\n"),
        "s.yaml");
    EXPECT_FALSE(scenario.ok()) << network;
    return std::string(scenario.status().message());
  };
  EXPECT_THAT(error("{nodes: [n7], attack: scale}"), HasSubstr("s.yaml:5"));
  EXPECT_THAT(error("{nodes: [n0], attack: lie}"),
              HasSubstr("sign-flip, scale, huge, noise, stale or labels"));
  EXPECT_THAT(error("{nodes: [n0, n1], attack: scale}"),
              HasSubstr("every node is hostile"));
  EXPECT_THAT(error("{nodes: [n0], attack: labels}"),
              HasSubstr("softmax or data"));
  EXPECT_THAT(error("{nodes: [n0], attack: scale, factor: 0}"),
              HasSubstr("factor"));
}

}  // namespace
}  // namespace dfl::sim
