// Scenarios whose nodes find out by themselves who is there.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sim/play.h"

namespace dfl::sim {
namespace {

using testing::HasSubstr;

std::string Text(const std::string& algorithm, const std::string& rest,
                 const std::string& events = "", int nodes = 8) {
  return "seed: 5\nalgorithm: {name: " + algorithm +
         "}\ncodec: {coordinates: dense}\nstop: {steps: 400}\n" + rest +
         "network:\n  nodes: " + std::to_string(nodes) +
         "\n  membership: lan\n  problem: {n: 20, rows: 30}\n"
         "  compute: {time: 20ms}\n  limit: 10m\n" +
         (events.empty() ? "" : "  events:\n" + events);
}

TEST(MembershipScenario, NodesFindEachOtherAndLearnTogether) {
  const Result alike = RunTwice(Text("d-psgd", ""));
  EXPECT_EQ(alike.end, End::kFinished) << alike.why;
  EXPECT_EQ(alike.rows.back().nodes, 8);
  // Each hears its seven neighbours in most of its steps.
  EXPECT_GT(alike.models_received, 8 * 7 * 400 / 2);
}

// More than are linked in pairs by default.
TEST(MembershipScenario, ALargerNetworkHasAGraphOfHashes) {
  const Result result = RunTwice(Text("d-psgd", "", "", 24));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.rows.back().nodes, 24);
  EXPECT_GT(result.models_received, 24 * 3 * 400 / 2);
  EXPECT_LT(result.models_received, 24 * 5 * 400);
}

TEST(MembershipScenario, NobodyIsWaitedForWhoHasGoneAndComersTakePart) {
  for (const char* algorithm : {"d-psgd", "decefl", "push-pull", "pame"}) {
    const std::string rest = std::string(algorithm) == "pame"
                                 ? "codec: {coordinates: random}\n"
                                 : "";
    std::string text = Text(algorithm, "",
                            "    - {at: 1s, crash: n3, for: 2s}\n"
                            "    - {at: 2s, leave: n5}\n"
                            "    - {at: 2500ms, join: n7}\n");
    if (!rest.empty()) {
      text.replace(text.find("codec: {coordinates: dense}\n"),
                   std::string("codec: {coordinates: dense}\n").size(), rest);
    }
    const Result result = RunTwice(text);
    EXPECT_EQ(result.end, End::kFinished) << algorithm << ": " << result.why;
    EXPECT_EQ(result.rows.back().nodes, 7) << algorithm;
    EXPECT_LT(result.longest_step_gap_s, 6) << algorithm;
  }
}

// A change of the plan reaches nodes whose members are not all the same.
TEST(MembershipScenario, AChangeOfThePlanKeepsTheMembersThatAreThere) {
  const Result result = RunTwice(Text(
      "d-psgd", "",
      "    - {at: 2s, leave: n5}\n"
      "    - {at: 3s, change: {topology: {kind: ring}}, within: 500ms}\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_EQ(result.changes.size(), 1u);
  EXPECT_TRUE(result.changes[0].in_force_s.has_value());
}

TEST(MembershipScenario, ItsPaceIsOneOfThree) {
  std::string text = Text("d-psgd", "");
  text.replace(text.find("membership: lan"), 15, "membership: moon");
  const absl::StatusOr<Scenario> scenario = ParseScenario(text, "s.yaml");
  EXPECT_THAT(std::string(scenario.status().message()),
              HasSubstr("network.membership: found \"moon\"; allowed: lan, "
                        "wan or cellular"));
}

// Without membership all are there from the start, whoever is named.
TEST(MembershipScenario, AllMayAlsoBeNamedWhereNobodyHasToBeFound) {
  std::string text = Text("d-psgd", "participants: all\n");
  text.replace(text.find("  membership: lan\n"), 18, "");
  const absl::StatusOr<Scenario> scenario = ParseScenario(text, "s.yaml");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->plan.members.size(), 8u);
  EXPECT_EQ(RunOnce(text).end, End::kFinished);
}

}  // namespace
}  // namespace dfl::sim
