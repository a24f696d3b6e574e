#include "daemon/sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/cpu_seconds.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario Parse(const std::string& text, uint64_t seed = 0) {
  absl::StatusOr<Scenario> scenario = ParseScenario(text, "s.yaml", seed);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? *std::move(scenario) : Scenario();
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<Scenario> scenario = ParseScenario(text, "s.yaml");
  EXPECT_EQ(scenario.status().code(), absl::StatusCode::kInvalidArgument)
      << text;
  return std::string(scenario.status().message());
}

TEST(Scenario, IsAPlanAndANetwork) {
  const Scenario scenario = Parse(SmallScenario());
  EXPECT_EQ(scenario.plan.algorithm.name, "pame");
  EXPECT_EQ(scenario.plan.stop.steps, 120);
  EXPECT_EQ(scenario.plan.seed, 3);
  ASSERT_EQ(scenario.plan.members.size(), 8);
  EXPECT_EQ(scenario.plan.members[7].node.name(), "n7");
  EXPECT_EQ(scenario.plan.members[7].rows, 30);
  // The model is what the problem is.
  EXPECT_EQ(scenario.plan.model.kind, "linear");
  EXPECT_EQ(scenario.plan.model.classes, 0);
  EXPECT_EQ(scenario.problem.n, 20);
  EXPECT_EQ(scenario.metrics_every, 20);
  EXPECT_EQ(scenario.limit, absl::Hours(1));
}

TEST(Scenario, ReadsLinksSpeedsAndEvents) {
  const Scenario scenario = Parse(
      SmallScenario("  links: {delay: 5ms, jitter: 1ms, rate: 1MB, loss: 0.1}\n"
                    "  paths: [{between: [n1, n0], delay: 80ms}]\n"
                    "  compute: {time: 2ms, extra: 1ms, factor: {n3: 4}}\n"
                    "  events:\n"
                    "    - {at: 1s, crash: n2, for: 500ms}\n"
                    "    - {at: 2s, join: n4}\n"
                    "    - {at: 3s, cut: [n5, n6]}\n"
                    "    - {at: 3s, black_hole: [n5, n6], for: 1s}\n"
                    "    - {at: 4s, partition: [[n0, n1], [n2]], for: 1s}\n"
                    "    - {at: 5s, slow: n3, factor: 2.5, for: 1s}\n"
                    "    - {at: 6s, loss: 0.25}\n"
                    "  settled_below: 0.001\n"
                    "  limit: 10m\n"));
  EXPECT_EQ(scenario.links.delay, absl::Milliseconds(5));
  EXPECT_EQ(scenario.links.jitter, absl::Milliseconds(1));
  EXPECT_EQ(scenario.links.rate, 1e6);
  EXPECT_EQ(scenario.links.reset_probability, 0.1);
  ASSERT_EQ(scenario.paths.size(), 1);
  EXPECT_EQ(scenario.paths[0].a, 1);
  EXPECT_EQ(scenario.paths[0].b, 0);
  EXPECT_EQ(scenario.paths[0].path.delay, absl::Milliseconds(80));
  // What a path does not say it takes from `links`.
  EXPECT_EQ(scenario.paths[0].path.rate, 1e6);
  EXPECT_EQ(scenario.compute.time, absl::Milliseconds(2));
  EXPECT_EQ(scenario.compute.extra, absl::Milliseconds(1));
  EXPECT_EQ(scenario.compute.factor.at(3), 4);
  ASSERT_EQ(scenario.events.size(), 7);
  EXPECT_EQ(scenario.events[0].kind, NetworkEvent::Kind::kCrash);
  EXPECT_EQ(scenario.events[0].at, absl::Seconds(1));
  EXPECT_EQ(scenario.events[0].lasts, absl::Milliseconds(500));
  EXPECT_THAT(scenario.events[0].members, ElementsAre(2));
  EXPECT_EQ(scenario.events[1].kind, NetworkEvent::Kind::kJoin);
  EXPECT_EQ(scenario.events[2].lasts, absl::InfiniteDuration());
  EXPECT_EQ(scenario.events[3].kind, NetworkEvent::Kind::kBlackHole);
  EXPECT_THAT(scenario.events[4].group, ElementsAre(0, 0, 1, 2, 2, 2, 2, 2));
  EXPECT_EQ(scenario.events[5].kind, NetworkEvent::Kind::kSlow);
  EXPECT_THAT(scenario.events[5].members, ElementsAre(3));
  EXPECT_EQ(scenario.events[5].amount, 2.5);
  EXPECT_EQ(scenario.events[6].kind, NetworkEvent::Kind::kLoss);
  EXPECT_EQ(scenario.events[6].amount, 0.25);
  EXPECT_EQ(scenario.settled_below, 0.001);
  EXPECT_EQ(scenario.limit, absl::Minutes(10));
}

TEST(Scenario, ChangesOfThePlanBuildOnEachOtherInTheOrderOfTime) {
  const Scenario scenario = Parse(SmallScenario(
      "  events:\n"
      "    - {at: 4s, change: {stop: {steps: 200}, codec: {values: fp16}}}\n"
      "    - {at: 1s, crash: n2, for: 500ms}\n"
      "    - {at: 2s, within: 500ms,\n"
      "       change: {algorithm: {name: d-psgd, knobs: {eta: 0.1}},\n"
      "                topology: {kind: complete}}}\n"));
  ASSERT_EQ(scenario.events.size(), 3);
  const NetworkEvent& second = scenario.events[0];
  EXPECT_EQ(scenario.events[1].plan, nullptr);
  const NetworkEvent& first = scenario.events[2];
  EXPECT_EQ(first.kind, NetworkEvent::Kind::kChange);
  EXPECT_EQ(first.within, absl::Milliseconds(500));
  EXPECT_EQ(scenario.plan.version, 1);
  EXPECT_EQ(first.plan->version, 2);
  EXPECT_EQ(first.plan->algorithm.name, "d-psgd");
  EXPECT_EQ(first.plan->algorithm.knobs.size(), 1);
  EXPECT_EQ(first.plan->topology.kind, "complete");
  EXPECT_EQ(first.plan->stop.steps, 120);
  EXPECT_EQ(second.plan->version, 3);
  EXPECT_EQ(second.plan->algorithm.name, "d-psgd");
  EXPECT_EQ(second.plan->stop.steps, 200);
  EXPECT_EQ(second.plan->codec.format.coordinates, core::Coordinates::kRandom);
  EXPECT_EQ(second.plan->codec.format.values, core::ValueType::kFp16);
  // What makes it the same run stays.
  EXPECT_EQ(second.plan->seed, 3);
  EXPECT_EQ(second.plan->run_id, scenario.plan.run_id);
  EXPECT_EQ(second.plan->model, scenario.plan.model);
  EXPECT_EQ(second.plan->members.size(), 8);
  EXPECT_EQ(second.plan->members[3].rows, 30);
}

TEST(Scenario, WhoLeavesIsNoMemberUntilItJoinsAgain) {
  const std::string text = absl::StrReplaceAll(
      SmallScenario("  events:\n"
                    "    - {at: 3s, join: n2}\n"
                    "    - {at: 1s, leave: n2, within: 1s}\n"
                    "    - {at: 2s, change: {batch_size: 5}}\n"
                    "    - {at: 2s, join: n7}\n"),
      {{"topology: {kind: ring}",
        "topology: {kind: explicit, edges: [[n0, n1], [n1, n2], [n1, n3], "
        "[n3, n4], [n4, n5], [n5, n6], [n6, n7], [n2, n3]]}\n"
        "nodes: {n2: {knobs: {nu: 1}}, n3: {knobs: {nu: 1}}}"}});
  const Scenario scenario = Parse(text);
  ASSERT_EQ(scenario.events.size(), 4);
  const NetworkEvent& join = scenario.events[0];
  const NetworkEvent& leave = scenario.events[1];
  const NetworkEvent& change = scenario.events[2];
  const NetworkEvent& late = scenario.events[3];
  EXPECT_EQ(leave.kind, NetworkEvent::Kind::kLeave);
  EXPECT_EQ(leave.within, absl::Seconds(1));
  ASSERT_EQ(leave.plan->members.size(), 7);
  EXPECT_EQ(leave.plan->members[2].node.name(), "n3");
  EXPECT_EQ(leave.plan->topology.edges.size(), 6);
  EXPECT_EQ(leave.plan->nodes.size(), 1);
  EXPECT_EQ(change.plan->members.size(), 7);
  EXPECT_EQ(change.plan->batch_size, 5);
  EXPECT_FALSE(join.first);
  ASSERT_NE(join.plan, nullptr);
  EXPECT_EQ(join.plan->version, 4);
  EXPECT_EQ(join.plan->members.size(), 8);
  EXPECT_EQ(join.plan->topology.edges.size(), 8);
  EXPECT_EQ(join.plan->nodes.size(), 2);
  EXPECT_EQ(join.plan->batch_size, 5);
  EXPECT_TRUE(late.first);
  EXPECT_EQ(late.plan, nullptr);
}

TEST(Scenario, APlanThatCannotDoWithoutTheLeaverIsToldWithItsLine) {
  const std::string text =
      absl::StrReplaceAll(SmallScenario("  events: [{at: 1s, leave: n0}]\n"),
                          {{"kind: ring", "kind: random-regular, degree: 7"}});
  EXPECT_THAT(ErrorOf(text), HasSubstr("s.yaml:11: network.events[0]: the plan "
                                       "that it makes is wrong: s.yaml:4: "
                                       "topology.degree"));
}

TEST(Scenario, TakesNamesFromTheNetworkOrThePlan) {
  const std::string named = absl::StrReplaceAll(
      SmallScenario(), {{"  nodes: 8\n", "  nodes: [b, c, a]\n"}});
  EXPECT_EQ(Parse(named).plan.members[0].node.name(), "a");
  const std::string of_plan = absl::StrCat(
      "members: [x, y, z]\n",
      absl::StrReplaceAll(SmallScenario(), {{"  nodes: 8\n", ""}}));
  EXPECT_EQ(Parse(of_plan).plan.members[2].node.name(), "z");
}

TEST(Scenario, NumbersSortAsTheyCount) {
  const std::string many =
      absl::StrReplaceAll(SmallScenario(), {{"  nodes: 8\n", "  nodes: 11\n"}});
  const Scenario scenario = Parse(many);
  EXPECT_EQ(scenario.plan.members[2].node.name(), "n02");
  EXPECT_EQ(scenario.plan.members[10].node.name(), "n10");
}

TEST(Scenario, TheSeedOfTheCommandLineWins) {
  EXPECT_EQ(Parse(SmallScenario(), 9).plan.seed, 9);
  const std::string unsaid =
      absl::StrReplaceAll(SmallScenario(), {{"seed: 3\n", ""}});
  EXPECT_EQ(Parse(unsaid).plan.seed, 1);
}

TEST(Scenario, HasABoundOnNodes) {
  const auto with = [](const std::string& nodes, const std::string& more) {
    return absl::StrCat("topology: {kind: ring}\nstop: {steps: 10}\n",
                        "network:\n  nodes: ", nodes, "\n", more);
  };
  EXPECT_EQ(Parse(with("16384", "")).plan.members.size(), 16384u);
  EXPECT_THAT(ErrorOf(with("16385", "")), HasSubstr("from 1 to 16384"));
  std::string names = "[";
  for (int i = 0; i < 16385; ++i) absl::StrAppend(&names, "m", i, ",");
  EXPECT_THAT(ErrorOf(with(names + "]", "")), HasSubstr("at most 16384"));
  // Each of many names is looked up once, and those that nobody will see are
  // not compared with all others.
  std::string factors = "  compute:\n    factor:\n";
  for (int i = 0; i < 200'000; ++i) {
    absl::StrAppend(&factors, "      m", i, ": 2\n");
  }
  const double begin = CpuSeconds();
  EXPECT_THAT(ErrorOf(with("16384", factors)),
              HasSubstr("... and 199990 more"));
  EXPECT_LT(CpuSeconds() - begin, 15);
}

TEST(Scenario, ChangesOfAPlanDoNotReadAllEventsAgain) {
  std::string text =
      "topology: {kind: ring}\nstop: {steps: 10}\nnetwork:\n  nodes: 4\n"
      "  events:\n";
  for (int i = 1; i <= 3000; ++i) {
    absl::StrAppend(&text, "    - {at: ", i, "s, change: {batch_size: ", i,
                    "}}\n");
  }
  const double begin = CpuSeconds();
  const Scenario scenario = Parse(text);
  EXPECT_LT(CpuSeconds() - begin, 15);
  ASSERT_EQ(scenario.events.size(), 3000u);
  EXPECT_EQ(scenario.events.back().plan->batch_size, 3000);
}

struct Mistake {
  const char* name;
  const char* network;  // a line of the section; it is line 11
  const char* complaint;
};

class ScenarioMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(ScenarioMistakes, AreToldWithTheirLine) {
  EXPECT_THAT(ErrorOf(SmallScenario(GetParam().network)),
              HasSubstr(GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(
    All, ScenarioMistakes,
    testing::Values(
        Mistake{"Key", "  link: {delay: 5ms}\n",
                "s.yaml:11: network.link: unknown key; did you mean links?"},
        Mistake{"Unit", "  links: {delay: 5}\n",
                "s.yaml:11: network.links.delay: found \"5\"; allowed: a "
                "duration from 0s on"},
        Mistake{"Loss", "  links: {loss: 1}\n",
                "network.links.loss: found \"1\"; allowed: a probability"},
        Mistake{"Rate", "  links: {rate: fast}\n",
                "network.links.rate: found \"fast\"; allowed: bytes a second"},
        Mistake{"Time", "  compute: {time: 0s}\n",
                "network.compute.time: found \"0s\"; allowed: a duration above "
                "0"},
        Mistake{"Factor", "  compute: {factor: {n9: 2}}\n",
                "s.yaml:11: network.compute.factor: found \"n9\", which is no "
                "node; did you mean n0? allowed: n0, n1"},
        Mistake{"Pair", "  paths: [{between: [n1, n1], delay: 1ms}]\n",
                "found n1 at both ends"},
        Mistake{"NoPair", "  paths: [{delay: 1ms}]\n",
                "`between: [a, b]` is missing"},
        Mistake{"NoTime", "  events: [{crash: n1}]\n",
                "s.yaml:11: network.events[0]: `at` is missing"},
        Mistake{"Nothing", "  events: [{at: 1s}]\n",
                "found 0 things that happen; allowed: one of crash, join"},
        Mistake{"Two", "  events: [{at: 1s, crash: n1, join: n2}]\n",
                "found 2 things that happen"},
        Mistake{"Stranger", "  events: [{at: 1s, crash: n11}]\n",
                "network.events[0].crash: found \"n11\", which is no node"},
        Mistake{"Group", "  events: [{at: 1s, partition: [[n1], [n1]]}]\n",
                "found n1 a second time"},
        Mistake{"JoinFor", "  events: [{at: 1s, join: n1, for: 1s}]\n",
                "`for` goes with what ends by itself"},
        Mistake{"Slow", "  events: [{at: 1s, slow: n1}]\n",
                "network.events[0]: `factor` is missing"},
        Mistake{"SlowBy", "  events: [{at: 1s, slow: n1, factor: 0}]\n",
                "network.events[0].factor: found \"0\"; allowed: a number > 0"},
        Mistake{"Faster", "  events: [{at: 1s, crash: n1, factor: 2}]\n",
                "`factor` goes with slow alone"},
        Mistake{"Lossy", "  events: [{at: 1s, loss: 1}]\n",
                "network.events[0].loss: found \"1\"; allowed: a probability"},
        Mistake{"WithinCrash", "  events: [{at: 1s, crash: n1, within: 1s}]\n",
                "`within` goes with a change of the plan, not with crash"},
        Mistake{"LeaveFor", "  events: [{at: 1s, leave: n1, for: 1s}]\n",
                "`for` goes with what ends by itself, not with leave"},
        Mistake{"LeaveTwice",
                "  events: [{at: 2s, leave: n1}, {at: 1s, leave: n1}]\n",
                "s.yaml:11: network.events[0].leave: found n1, which has left "
                "before"},
        Mistake{"Disk", "  events: [{at: 1s, disk: n1}]\n",
                "network.events[0]: `fault` is missing"},
        Mistake{"DiskFault", "  events: [{at: 1s, disk: n1, fault: slow}]\n",
                "s.yaml:11: network.events[0].fault: found \"slow\"; allowed: "
                "torn, full or lost"},
        Mistake{"FaultOfACrash",
                "  events: [{at: 1s, crash: n1, fault: torn}]\n",
                "`fault` goes with disk alone, not with crash"},
        Mistake{"ChangeFor",
                "  events: [{at: 1s, change: {batch_size: 5}, for: 1s}]\n",
                "`for` goes with what ends by itself, not with change"},
        Mistake{"ChangeOfMembers",
                "  events: [{at: 1s, change: {members: [a, b]}}]\n",
                "s.yaml:11: network.events[0].change.members: unknown key"},
        Mistake{
            "ChangeToNothing",
            "  events: [{at: 1s, change: {topology: {kind: rign}}}]\n",
            "s.yaml:11: network.events[0]: the plan that it makes is wrong: "
            "s.yaml:11: topology.kind: \"rign\" is unknown; did you mean "
            "\"ring\"?"},
        Mistake{
            "ChangeThatDoesNotFit",
            "  events: [{at: 1s, change: {algorithm: {name: fedavg}}}]\n",
            "s.yaml:11: network.events[0]: the plan that it makes is wrong: "
            "s.yaml:4: topology"},
        Mistake{"Twice", "  metrics_every: 5\n", "given twice"},
        Mistake{"Limit", "  limit: 0s\n", "network.limit: found \"0s\""}),
    [](const testing::TestParamInfo<Mistake>& info) {
      return std::string(info.param.name);
    });

TEST(Scenario, RefusesMistakesOfThePlanAsThePlanIsRead) {
  EXPECT_THAT(ErrorOf(absl::StrReplaceAll(SmallScenario(),
                                          {{"kind: ring", "kind: rign"}})),
              HasSubstr("did you mean \"ring\""));
  EXPECT_THAT(
      ErrorOf(absl::StrReplaceAll(SmallScenario(), {{"network:", "netwrok:"}})),
      HasSubstr("s.yaml:7: netwrok: unknown key; did you mean "
                "network?"));
}

TEST(Scenario, RefusesAModelThatIsNotTheProblem) {
  const std::string text =
      absl::StrCat("model: {kind: cnn, classes: 10}\n", SmallScenario());
  EXPECT_THAT(ErrorOf(text),
              HasSubstr("s.yaml:1: model: found {kind: cnn, classes: 10}; "
                        "allowed: {kind: linear, classes: 0}"));
}

std::string WithProblem(const std::string& problem) {
  return absl::StrReplaceAll(SmallScenario(),
                             {{"{kind: linear, n: 20, rows: 30}", problem}});
}

TEST(Scenario, ReadsASoftmaxProblem) {
  const Scenario scenario = Parse(WithProblem(
      "{kind: softmax, n: 12, classes: 5, skew: 0.3, test_rows: 70}"));
  EXPECT_EQ(scenario.problem.kind, ProblemSpec::Kind::kSoftmax);
  EXPECT_EQ(scenario.problem.classes, 5);
  EXPECT_EQ(scenario.problem.skew, 0.3);
  EXPECT_EQ(scenario.problem.test_rows, 70);
  EXPECT_EQ(scenario.plan.model.kind, "logistic");
  EXPECT_EQ(scenario.plan.model.classes, 5);
  EXPECT_THAT(ErrorOf(WithProblem("{kind: softmax, classes: 1}")),
              HasSubstr("network.problem.classes: found \"1\"; allowed: an "
                        "integer >= 2"));
  EXPECT_THAT(ErrorOf(WithProblem("{kind: softmax, skew: -1}")),
              HasSubstr("allowed: a number >= 0"));
  EXPECT_THAT(ErrorOf(WithProblem("{kind: linear, skew: 1}")),
              HasSubstr("network.problem.skew: unknown key"));
  EXPECT_THAT(
      ErrorOf(WithProblem("{kind: image}")),
      HasSubstr("found \"image\"; allowed: linear, logistic, softmax or data"));
}

TEST(Scenario, ReadsDataAsADaemonDoes) {
  const std::string data =
      "{kind: data, format: csv, train: {paths: [a.csv]}, partition: {kind: "
      "iid}, standardise: {per: feature}}";
  const Scenario scenario = Parse(
      absl::StrCat("model: {kind: svm, classes: 3}\n", WithProblem(data)), 9);
  EXPECT_EQ(scenario.problem.kind, ProblemSpec::Kind::kData);
  EXPECT_EQ(scenario.problem.data.common.format, data::Format::kCsv);
  EXPECT_THAT(scenario.problem.data.train_paths, ElementsAre("a.csv"));
  EXPECT_EQ(scenario.problem.data.partition.count, 8);
  // The run's, as all that is random.
  EXPECT_EQ(scenario.problem.data.partition.seed, 9U);
  // The plan's model is what is learned, and its evaluation what is looked at.
  EXPECT_EQ(scenario.plan.model.kind, "svm");
  EXPECT_EQ(scenario.problem.eval_rows, 2000);
  const Scenario seeded =
      Parse(WithProblem("{kind: data, train: {paths: [a, b]}, eval_rows: 0, "
                        "partition: {kind: iid, seed: 4}}"));
  EXPECT_EQ(seeded.problem.data.partition.seed, 4U);
  EXPECT_EQ(seeded.problem.eval_rows, 0);
}

TEST(Scenario, RefusesMistakesOfTheDataWithTheirLine) {
  EXPECT_THAT(ErrorOf(WithProblem("{kind: data}")),
              HasSubstr("s.yaml:9: network.problem: `train: {paths: [...]}` is "
                        "missing"));
  EXPECT_THAT(ErrorOf(WithProblem("{kind: data, formt: idx}")),
              HasSubstr("s.yaml:9: network.problem.formt: unknown setting; did "
                        "you mean network.problem.format?"));
  EXPECT_THAT(ErrorOf(WithProblem("{kind: data, train: {paths: [a, b]}, "
                                  "partition: {count: 3}}")),
              HasSubstr("network.problem.partition.count: follows from the "
                        "nodes"));
  EXPECT_THAT(ErrorOf(WithProblem("{kind: data, watch: 30s}")),
              HasSubstr("network.problem.watch: the files are read once"));
  EXPECT_THAT(ErrorOf(WithProblem("{kind: data, eval_rows: -1}")),
              HasSubstr("network.problem.eval_rows: found \"-1\""));
}

TEST(Scenario, RefusesMembersInBothPlaces) {
  EXPECT_THAT(ErrorOf(absl::StrCat("members: [a]\n", SmallScenario())),
              HasSubstr("the plan names its members in line 1"));
}

TEST(Scenario, NeedsAnEnd) {
  const std::string endless =
      absl::StrReplaceAll(SmallScenario(), {{"stop: {steps: 120}\n", "\n"}});
  EXPECT_THAT(ErrorOf(endless), HasSubstr("a simulation ends by stop.steps"));
  Parse(absl::StrCat(endless, "  limit: 5s\n"));
}

TEST(Scenario, NeedsSomebodyFromTheBeginning) {
  const std::string text =
      absl::StrReplaceAll(SmallScenario("  events: [{at: 1s, join: n0}]\n"),
                          {{"  nodes: 8\n", "  nodes: 1\n"}});
  EXPECT_THAT(ErrorOf(text), HasSubstr("every node joins later"));
}

}  // namespace
}  // namespace dfl::sim
