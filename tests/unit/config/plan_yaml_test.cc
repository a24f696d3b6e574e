#include "daemon/config/plan_yaml.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::config {
namespace {

using core::IntRange;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kFull[] = R"(# A plan with everything.
version: 7
run: run-1
seed: 18446744073709551615
members:
  - d
  - {name: a, rows: 100}
  - b
  - c
model:
  kind: mlp
  classes: 10
  input: [784]
  hidden: [256, 128]
  dropout: 0.25
  loss: cross-entropy
  l2: 1e-4
batch_size: 16
algorithm:
  name: pame
  knobs:
    nu: 0.5
    p: 0.1
    kappa: [5, 10]
    sigma0: 5
    gamma: 1.0005
topology:
  kind: explicit
  edges:
    - [a, b]
    - [b, c]
    - [c, d]
  weights: metropolis
codec: {coordinates: random, values: int8, rate: 0.2}
evaluation: {every_steps: 100, examples: 0}
stop:
  steps: 4000
  time: 1h30m
  loss_below: 0.01
  accuracy_above: 0.99
deadline: {exchange: 500ms}
nodes:
  a:
    knobs: {nu: 1, kappa: 7}
  d:
    knobs:
      kappa: 20..30
)";

core::RunPlan MustParse(const std::string& text) {
  absl::StatusOr<core::RunPlan> plan = ParsePlan(text, "plan.yaml");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : core::RunPlan();
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<core::RunPlan> plan = ParsePlan(text, "plan.yaml");
  if (plan.ok()) return "OK";
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(PlanYaml, ReadsEveryKey) {
  const core::RunPlan plan = MustParse(kFull);
  EXPECT_EQ(plan.version, 7u);
  EXPECT_EQ(plan.run_id, "run-1");
  EXPECT_EQ(plan.seed, 18446744073709551615u);
  ASSERT_EQ(plan.members.size(), 4u);
  EXPECT_EQ(plan.members[0].node.name(), "a");  // sorted
  EXPECT_EQ(plan.members[0].rows, 100);
  EXPECT_EQ(plan.members[3].node.name(), "d");
  EXPECT_EQ(plan.model.kind, "mlp");
  EXPECT_THAT(plan.model.hidden, ElementsAre(256, 128));
  EXPECT_EQ(plan.model.dropout, 0.25);
  EXPECT_EQ(plan.model.l2, 1e-4);
  EXPECT_EQ(plan.batch_size, 16);
  EXPECT_EQ(plan.algorithm.knobs.at("nu"), core::KnobValue(0.5));
  EXPECT_EQ(plan.algorithm.knobs.at("sigma0"), core::KnobValue(5.0));
  EXPECT_EQ(plan.algorithm.knobs.at("kappa"), core::KnobValue(IntRange{5, 10}));
  ASSERT_EQ(plan.topology.edges.size(), 3u);
  EXPECT_EQ(plan.topology.edges[2].second.name(), "d");
  EXPECT_EQ(plan.codec.format.values, core::ValueType::kInt8);
  EXPECT_EQ(plan.codec.rate, 0.2);
  EXPECT_EQ(plan.evaluation.examples, 0);
  EXPECT_EQ(plan.stop.time, absl::Minutes(90));
  EXPECT_EQ(plan.deadline.exchange, absl::Milliseconds(500));
  EXPECT_EQ(plan.nodes.at(NodeId("a")).knobs.at("kappa"),
            core::KnobValue(IntRange{7, 7}));
  EXPECT_EQ(plan.nodes.at(NodeId("d")).knobs.at("kappa"),
            core::KnobValue(IntRange{20, 30}));
}

TEST(PlanYaml, WhatIsLeftOutHasItsDefault) {
  const core::RunPlan plan = MustParse("members: [a]\nmodel:\n");
  const core::RunPlan defaults;
  EXPECT_EQ(plan.version, 0u);
  EXPECT_EQ(plan.run_id, "");
  EXPECT_TRUE(plan.model == defaults.model);
  EXPECT_EQ(plan.algorithm.name, "pame");
  EXPECT_TRUE(plan.algorithm.knobs.empty());
  EXPECT_EQ(plan.stop.time, absl::InfiniteDuration());
}

// The text says all that the struct holds, so equal texts mean equal plans.
TEST(PlanYaml, WritingAndReadingGivesTheSameText) {
  const std::vector<std::string> texts = {
      kFull,
      "members: [a]\n",
      "members: [a, b]\nalgorithm: {name: d-psgd}\ntopology: {kind: ring}\n",
      "members: [a, b, c]\nalgorithm: {name: local}\n"
      "topology: {kind: erdos-renyi, edge_probability: 0.7}\n",
      "members: [a, b, c, d]\nalgorithm: {name: d-psgd}\n"
      "topology: {kind: random-regular, degree: 2, every: 10}\n",
      "members: [a, b, c, d]\nalgorithm: {name: d-psgd}\n"
      "topology: {kind: random-geometric, radius: 0.9}\n",
      "members: [a, b, c]\nalgorithm: {name: local}\n"
      "topology: {kind: time-varying, directed: on, every: 3,\n"
      "  edge_sets: [[[a, b], [b, c]], [], [[c, a]]]}\n",
      "members: [a, b]\nmodel: {kind: torchscript, path: '/srv/my model.pt', "
      "classes: 2}\n",
      "members: [a, b]\nalgorithm: {name: d-psgd}\n"
      "topology: {kind: explicit, edges: [[a, b]], weights: explicit, "
      "matrix: [[0.1, 0.9], [0.9, 0.1]]}\n",
      "members: [a, null-1]\nstop: {time: inf}\nnodes: {a: {}}\n",
  };
  for (const std::string& text : texts) {
    const std::string once = WritePlan(MustParse(text));
    const std::string twice = WritePlan(MustParse(once));
    EXPECT_EQ(once, twice) << text;
  }
  const core::RunPlan full = MustParse(WritePlan(MustParse(kFull)));
  EXPECT_EQ(full.nodes.size(), 2u);
  EXPECT_EQ(full.members[0].rows, 100);
  EXPECT_EQ(full.stop.accuracy_above, 0.99);
  EXPECT_EQ(full.algorithm.knobs.at("gamma"), core::KnobValue(1.0005));
}

// Where it is the default it is left out: hashes of older plans stay.
TEST(PlanYaml, ReadsAndWritesTheFormatOfMass) {
  const auto plan = ParsePlan(
      "members: [a, b]\nalgorithm: {name: push-pull}\n"
      "codec: {coordinates: dense, mass: bf16}\n",
      "plan.yaml");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->codec.mass, core::ValueType::kBf16);
  EXPECT_THAT(WritePlan(*plan), HasSubstr("  mass: bf16\n"));
  core::RunPlan exact = *plan;
  exact.codec.mass = core::ValueType::kFp32;
  EXPECT_EQ(WritePlan(exact).find("mass"), std::string::npos);
}

// The same of the bounds of the deadline.
TEST(PlanYaml, ReadsAndWritesTheBoundsOfTheDeadline) {
  const core::RunPlan plan = MustParse(
      "members: [a]\ndeadline: {exchange: 500ms, floor: 200ms, ceiling: 3s}\n");
  EXPECT_EQ(plan.deadline.floor, absl::Milliseconds(200));
  EXPECT_EQ(plan.deadline.ceiling, absl::Seconds(3));
  const std::string text = WritePlan(plan);
  EXPECT_THAT(text, HasSubstr("deadline:\n  exchange: 500ms\n"
                              "  floor: 200ms\n  ceiling: 3s\n"));
  EXPECT_EQ(WritePlan(MustParse(text)), text);
  const std::string plain = WritePlan(MustParse("members: [a]\n"));
  EXPECT_THAT(plain, HasSubstr("deadline:\n  exchange: 2s\n"));
  EXPECT_EQ(plain.find("floor"), std::string::npos);
  EXPECT_EQ(plain.find("ceiling"), std::string::npos);
}

// What is written is checked, and not changed.
TEST(PlanYaml, CoordinatesAreByDefaultWhatTheAlgorithmTakes) {
  for (const auto& [text, coordinates] :
       {std::pair{"members: [a, b]\n", core::Coordinates::kRandom},
        {"members: [a, b]\nalgorithm: {name: depositum}\n",
         core::Coordinates::kDense},
        {"members: [a, b]\nalgorithm: {name: k-gt}\ncodec: {mass: int8}\n",
         core::Coordinates::kDense}}) {
    const auto plan = ParsePlan(text, "plan.yaml");
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->codec.format.coordinates, coordinates) << text;
  }
  const auto wrong = ParsePlan(
      "members: [a, b]\nalgorithm: {name: depositum}\n"
      "codec: {coordinates: random}\n",
      "plan.yaml");
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("plan.yaml:3: codec.coordinates: \"random\" is not "
                        "allowed; allowed: dense"));
}

TEST(PlanYaml, ReadsATimeVaryingTopology) {
  const core::RunPlan plan = MustParse(
      "members: [a, b, c]\nalgorithm: {name: local}\ntopology:\n"
      "  kind: time-varying\n  edge_sets: [[[a, b], [b, c]], [], [[c, a]]]\n"
      "  directed: on\n  every: 3\n  degree: 6\n  radius: 0.25\n");
  const core::TopologySpec& topology = plan.topology;
  ASSERT_EQ(topology.edge_sets.size(), 3u);
  EXPECT_EQ(topology.edge_sets[0].size(), 2u);
  EXPECT_TRUE(topology.edge_sets[1].empty());
  EXPECT_EQ(topology.edge_sets[2][0].first.name(), "c");
  EXPECT_TRUE(topology.directed);
  EXPECT_EQ(topology.every, 3);
  EXPECT_EQ(topology.degree, 6);
  EXPECT_EQ(topology.radius, 0.25);
  const core::RunPlan again = MustParse(WritePlan(plan));
  EXPECT_EQ(again.topology.edge_sets, topology.edge_sets);
  EXPECT_TRUE(again.topology.directed);
  EXPECT_EQ(again.topology.every, 3);
}

TEST(PlanYaml, TheTextIsOfWhatThePlanSaysAndNotOfHowItIsSpelt) {
  const auto rewritten = [](const char* text) {
    return WritePlan(MustParse(text));
  };
  const std::string text = rewritten("members: [a, b]\nseed: 3\n");
  EXPECT_EQ(text, rewritten("seed: 3  # the same\nmembers:\n- b\n- a\n"));
  EXPECT_NE(text, rewritten("members: [a, b]\nseed: 4\n"));
}

TEST(PlanYaml, SaysWhoTakesPart) {
  using Kind = core::ParticipantsSpec::Kind;
  const core::RunPlan all = MustParse("batch_size: 3\n");
  EXPECT_EQ(all.participants.kind, Kind::kAll);
  EXPECT_TRUE(all.members.empty());
  EXPECT_EQ(all.topology.kind, "auto");
  EXPECT_THAT(WritePlan(all), StartsWith("participants: all\n"));
  EXPECT_EQ(WritePlan(MustParse("participants: all\nbatch_size: 3\n")),
            WritePlan(all));

  const core::RunPlan some =
      MustParse("participants: [site=north, box-2, box-1]\n");
  EXPECT_EQ(some.participants.kind, Kind::kSelected);
  EXPECT_THAT(some.participants.selectors,
              ElementsAre("box-1", "box-2", "site=north"));
  EXPECT_THAT(
      WritePlan(some),
      StartsWith("participants:\n  - box-1\n  - box-2\n  - site=north\n"));
  EXPECT_EQ(WritePlan(MustParse(WritePlan(some))), WritePlan(some));

  // The older key is a fixed set, and means all pairs of it.
  const core::RunPlan former = MustParse("members: [b, {name: a, rows: 5}]\n");
  const core::RunPlan fixed = MustParse(
      "participants: {fixed: [{name: a, rows: 5}, b]}\n"
      "topology: {kind: complete}\n");
  EXPECT_EQ(former.participants.kind, Kind::kFixed);
  EXPECT_THAT(WritePlan(former),
              StartsWith("participants:\n  fixed:\n    - {name: a, rows: "
                         "5}\n    - b\n"));
  EXPECT_EQ(WritePlan(former), WritePlan(fixed));
}

// Members that came from the network are no part of the document.
TEST(PlanYaml, DoesNotWriteWhoHappensToBeThere) {
  core::RunPlan plan = MustParse("seed: 4\n");
  const std::string text = WritePlan(plan);
  plan.members = {{NodeId("a"), 5}, {NodeId("b"), 7}};
  EXPECT_EQ(WritePlan(plan), text);
}

// File and line, key, value found, what is allowed.
TEST(PlanYaml, RefusesWithPlaceKeyValueAndWhatIsAllowed) {
  struct Case {
    const char* text;
    std::vector<const char*> parts;
  };
  for (
      const Case& c : {
          Case{"members: [a]\nalgoritm: {name: pame}\n",
               {"plan.yaml:2: algoritm: unknown key; did you mean algorithm? "
                "allowed: version, run"}},
          Case{"members: [a]\nnetwork: {delay: 5ms}\n",
               {"plan.yaml:2: network: unknown key"}},
          Case{"members: [a]\nmodel:\n  kind: cnn\n  widht: 3\n",
               {"plan.yaml:4: model.widht: unknown key"}},
          Case{"members: [a]\nalgorithm: {name: pama}\n",
               {"plan.yaml:2: algorithm.name: ", "\"pama\"",
                "did you mean \"pame\"?"}},
          Case{"members: [a]\nalgorithm:\n  knobs:\n    kapa: 5\n",
               {"plan.yaml:4: algorithm.knobs.kapa: unknown key; did you mean "
                "kappa?"}},
          Case{"members: [a]\nalgorithm:\n  knobs:\n    nu: 1.5\n",
               {"plan.yaml:4: algorithm.knobs.nu: 1.5", "(0, 1]"}},
          Case{"members: [a]\nalgorithm:\n  knobs:\n    nu: half\n",
               {"plan.yaml:4: algorithm.knobs.nu: \"half\" is not a number",
                "allowed: (0, 1]"}},
          Case{"members: [a]\nalgorithm:\n  knobs:\n    kappa: [10, 5]\n",
               {"plan.yaml:4: algorithm.knobs.kappa: [10, 5] is empty"}},
          Case{"members: [a]\nalgorithm: {knobs: {kappa: {lo: 1}}}\n",
               {"algorithm.knobs.kappa: found a section; allowed: integer"}},
          Case{"members: [a]\nnodes:\n  a:\n    knobs:\n      nu: 0\n",
               {"plan.yaml:5: nodes.a.knobs.nu: 0"}},
          Case{"members: [a, b]\nnodes:\n  c: {knobs: {nu: 1}}\n",
               {"plan.yaml:3: nodes.c: ", "\"c\" is no member"}},
          Case{"members: [a, b]\ntopology:\n  kind: rign\n",
               {"plan.yaml:3: topology.kind: \"rign\"",
                "did you mean \"ring\"?"}},
          Case{"members: [a, b]\ntopology:\n  edges: [[a]]\n",
               {"plan.yaml:3: topology.edges[0]: found a list; allowed: a "
                "list of pairs"}},
          Case{"members: [a, b]\ntopology:\n  edge_sets:\n  - [[a, b]]\n"
               "  - [[a]]\n",
               {"plan.yaml:5: topology.edge_sets[1][0]: found a list; allowed: "
                "a list of pairs"}},
          Case{"members: [a, b]\ntopology:\n  edge_sets: [a]\n",
               {"plan.yaml:3: topology.edge_sets[0]: found \"a\"; allowed: a "
                "list of lists of pairs"}},
          Case{
              "members: [a, b, c]\nalgorithm: {name: d-psgd}\ntopology:\n"
              "  kind: time-varying\n  edge_sets:\n  - [[a, b]]\n  - [[b, c],\n"
              "     [a, z]]\n",
              {"plan.yaml:8: topology.edge_sets[1][1]: \"z\" is unknown"}},
          Case{"members: [a, b]\ntopology:\n  directed: maybe\n",
               {"plan.yaml:3: topology.directed: found \"maybe\"; allowed: on "
                "or off"}},
          Case{"members: [a, b]\ntopology:\n  kind: explicit\n  edges: [[a, "
               "b]]\n  directed: on\n",
               {"plan.yaml:5: topology.directed: on, but pame mixes"}},
          Case{"members: [a, b, c]\ntopology:\n  kind: random-regular\n"
               "  degree: 3\n",
               {"plan.yaml:4: topology.degree: 3", "at most 2"}},
          Case{"members: [a, b]\ntopology:\n  every: 2\n",
               {"plan.yaml:3: topology.every: 2, but kind complete"}},
          Case{"members: [a, b]\ncodec:\n  values: fp8\n",
               {"plan.yaml:3: codec.values: found \"fp8\"; allowed: fp32, "
                "fp16, bf16 or int8"}},
          Case{"members: [a, b]\ncodec:\n  values: sign\n",
               {"plan.yaml:3: codec.values: found \"sign\"; allowed: fp32, "
                "fp16, bf16 or int8; one sign bit is for differences"}},
          Case{"members: [a, b]\ncodec:\n  mass: topk\n",
               {"plan.yaml:3: codec.mass: found \"topk\"; allowed: fp32, fp16, "
                "bf16 or int8"}},
          Case{"members: [a, b]\ncodec:\n  mass: int8\n",
               {"plan.yaml:3: codec.mass: \"int8\" is not allowed; allowed: "
                "fp32, since algorithm.name is pame: it gives no mass"}},
          Case{"members: [a, b]\ncodec:\n  rate: 2\n",
               {"plan.yaml:3: codec.rate: 2 is not allowed; allowed: (0, "
                "1]"}},
          Case{"members: [a]\nbatch_size: 0\n", {"plan.yaml:2: batch_size: 0"}},
          Case{"members: [a]\nbatch_size: 1.5\n",
               {"plan.yaml:2: batch_size: found \"1.5\"; allowed: an "
                "integer"}},
          Case{"members: [a]\nstop:\n  time: 2\n",
               {"plan.yaml:3: stop.time: found \"2\"; allowed: a duration"}},
          Case{"members: [a]\ndeadline: {exchange: -1s}\n",
               {"plan.yaml:2: deadline.exchange: "}},
          Case{"members: [a]\ndeadline:\n  exchange: 2s\n  ceiling: 1s\n",
               {"plan.yaml:4: deadline.ceiling: 1s", "at least"}},
          Case{"members: [a]\ndeadline:\n  floor: 11s\n",
               {"plan.yaml:3: deadline.floor: 11s", "at most"}},
          Case{"members: [a]\nseed: -1\n",
               {"plan.yaml:2: seed: found \"-1\"; allowed: an integer from "
                "0"}},
          Case{"members:\n- a\n- b\n- a\n",
               {"plan.yaml:4: members[2]: found \"a\" a second time, first in "
                "line 2"}},
          Case{"members:\n- a\n- 'b c'\n",
               {"plan.yaml:3: members[1]: found \"b c\"", "character 2"}},
          Case{"members:\n- z\n- {name: a, rows: -5}\n- b\n",
               {"plan.yaml:3: members[0].rows: -5"}},
          Case{"members: a\n", {"plan.yaml:1: members: found \"a\""}},
          Case{"members: []\n", {"plan.yaml:1: members: none are named"}},
          Case{"participants: {fixed: []}\n",
               {"plan.yaml:1: members: none are named"}},
          Case{"participants: {fixed: [b, {name: a, rows: -1}]}\n",
               {"plan.yaml:1: members[0].rows: -1"}},
          Case{"participants: everybody\n",
               {"plan.yaml:1: participants: found \"everybody\"; allowed: "
                "all, a list"}},
          Case{"participants: {some: [a]}\n",
               {"plan.yaml:1: participants.some", "fixed"}},
          Case{"participants:\n- a\n- site=\n",
               {"plan.yaml:3: participants[1]: found \"site=\"",
                "allowed: the name of a node, or a label"}},
          Case{"participants:\n- a\n- b\n- a\n",
               {"plan.yaml:4: participants[2]: found \"a\" a second time, "
                "first in line 2"}},
          Case{"participants: []\n",
               {"plan.yaml:1: participants: the list is empty"}},
          Case{"participants: all\nmembers: [a]\n",
               {"plan.yaml:1: participants: found beside members in line 2"}},
          Case{"topology: {weights: explicit, matrix: [[1]]}\n",
               {"plan.yaml:1: topology.weights: \"explicit\"", "fixed"}},
          Case{"algorithm: {name: fedavg}\ntopology: {kind: ring}\n",
               {"plan.yaml:2: topology.kind: \"ring\" is not allowed; "
                "allowed: complete"}},
          Case{"topology: {kind: rign}\n",
               {"plan.yaml:1: topology.kind: \"rign\" is unknown"}},
          Case{"- a\n",
               {"plan.yaml:1: plan: found a list; allowed: a "
                "section"}},
          Case{"members: [a\n", {"plan.yaml:", "not YAML"}},
      }) {
    const std::string error = ErrorOf(c.text);
    for (const char* part : c.parts) {
      EXPECT_THAT(error, HasSubstr(part)) << c.text;
    }
  }
}

TEST(PlanYaml, SeveralMistakesAreToldTogether) {
  const std::string error = ErrorOf(
      "members: [a]\nbatch_size: x\nstop:\n  steps: y\n  time: z\nextra: 1\n");
  EXPECT_THAT(error, HasSubstr("plan.yaml:2: batch_size: "));
  EXPECT_THAT(error, HasSubstr("\nplan.yaml:4: stop.steps: "));
  EXPECT_THAT(error, HasSubstr("\nplan.yaml:5: stop.time: "));
  EXPECT_THAT(error, HasSubstr("plan.yaml:6: extra: "));
}

TEST(PlanYaml, RefusesAPlanThatIsTooLong) {
  EXPECT_THAT(ErrorOf(std::string(kMaxPlanBytes + 1, '#')),
              StartsWith("plan.yaml:1: plan: found 8388609 bytes; allowed: at "
                         "most 8388608"));
}

// It could be kept, and not be read again.
TEST(PlanYaml, RefusesAPlanThatIsTooLongWrittenOut) {
  const std::string a(14, 'a');
  const std::string b(14, 'b');
  std::string text = "members: [" + a + "," + b +
                     "]\nalgorithm: {name: pame}\ntopology: {kind: "
                     "explicit, edges: [";
  while (text.size() + 40 < kMaxPlanBytes) text += "[" + a + "," + b + "],";
  text += "]}\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("plan: written out it has "));
}

TEST(PlanYaml, HasABoundOnMembers) {
  std::string text = "topology: {kind: ring}\nparticipants: {fixed: [";
  for (int i = 0; i < 16384; ++i)
    text += "n" + std::to_string(100'000 + i) + ",";
  EXPECT_TRUE(ParsePlan(text + "]}", "plan.yaml").ok());
  EXPECT_THAT(ErrorOf(text + "n9]}"),
              HasSubstr("members: 16385 are named; allowed: at most 16384"));
}

TEST(PlanYaml, EveryTruncationAndFlipGivesAPlanOrAnError) {
  const std::string sample = kFull;
  for (size_t at = 0; at < sample.size(); ++at) {
    (void)ParsePlan(sample.substr(0, at), "plan.yaml");
    std::string bytes = sample;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    const absl::StatusOr<core::RunPlan> plan = ParsePlan(bytes, "plan.yaml");
    if (!plan.ok()) {
      EXPECT_THAT(std::string(plan.status().message()),
                  StartsWith("plan.yaml:"));
    } else {
      const std::string once = WritePlan(*plan);
      EXPECT_EQ(WritePlan(MustParse(once)), once);
    }
  }
}

// A section of which all is default is not written.
TEST(PlanYaml, AnOptimiserIsReadAndWrittenAndMayBeLeftOut) {
  const std::string base =
      "members: [a, b]\nalgorithm: {name: dfedavgm}\n"
      "topology: {kind: complete}\ncodec: {coordinates: dense}\n";
  const core::RunPlan plain = MustParse(base);
  EXPECT_EQ(plain.optimizer, core::OptimizerSpec());
  EXPECT_THAT(WritePlan(plain), testing::Not(HasSubstr("optimizer")));
  const core::RunPlan plan = MustParse(
      base +
      "optimizer: {name: adamw, weight_decay: 0.01, schedule: {kind: cosine, "
      "warmup: 10, length: 100}}\n");
  EXPECT_EQ(plan.optimizer.name, "adamw");
  EXPECT_EQ(plan.optimizer.schedule.length, 100);
  const std::string written = WritePlan(plan);
  EXPECT_THAT(written, HasSubstr("optimizer:\n  name: adamw\n  weight_decay: "
                                 "0.01\n  schedule:\n    kind: cosine\n"));
  EXPECT_EQ(MustParse(written).optimizer, plan.optimizer);
  EXPECT_THAT(ErrorOf(base + "optimizer:\n  name: adma\n"),
              HasSubstr("plan.yaml:6: optimizer.name: "));
}

}  // namespace
}  // namespace dfl::config
