// An algorithm that is in none of the program's lists runs on simulated nodes.
#include <string>

#include "absl/strings/str_replace.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/toy_algorithm.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using testing::HasSubstr;

// Eight nodes whose data differ. With half of the steps done they take smaller
// ones; alone they would stay at a consensus error of 0.4.
std::string ToyScenario() {
  return absl::StrReplaceAll(
      SmallScenario(
          "  events:\n"
          "    - {at: 600ms, change: {algorithm: {knobs: {eta: 0.01}}}}\n",
          "{name: toy, knobs: {eta: 0.05}}"),
      {{"coordinates: random", "coordinates: dense"}});
}

TEST(ToySimulation, ItsCatalogueIsTheOnlyPlaceThatKnowsIt) {
  EXPECT_THAT(
      std::string(ParseScenario(ToyScenario(), "s.yaml").status().message()),
      HasSubstr("there is no algorithm \"toy\""));
}

TEST(ToySimulation, NodesOfTheRuntimeLearnAndAgree) {
  const core::Catalogue catalogue = core::WithToy();
  auto scenario = ParseScenario(ToyScenario(), "s.yaml", 0, "", catalogue);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  auto simulation = Simulation::Create(*scenario);
  ASSERT_TRUE(simulation.ok()) << simulation.status();
  const Result result =
      (*simulation)->Run([](const Progress&) { return true; });
  EXPECT_EQ(result.end, End::kFinished);
  ASSERT_GE(result.rows.size(), 3U);
  const MetricsRow& first = result.rows.front();
  const MetricsRow& last = result.rows.back();
  EXPECT_EQ(last.step, 120);
  EXPECT_LT(last.loss_mean_model, first.loss_mean_model / 10);
  EXPECT_LT(last.consensus_error, 1e-3);
  for (const NodeScore& node : result.nodes) {
    EXPECT_EQ(node.plan_version, 2U);  // the change of its step size
  }
}

}  // namespace
}  // namespace dfl::sim
