#include "daemon/core/plan/run_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/hubs.h"
#include "daemon/core/algorithms/sgp.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/plan/plan_warnings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/cpu_seconds.h"
#include "tests/unit/core/graphs.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

RunPlan GoodPlan() {
  RunPlan plan;
  plan.seed = 7;
  for (const char* name : {"anna", "bert", "carl", "dora"}) {
    plan.members.push_back(MemberSpec{.node = NodeId(name)});
  }
  return plan;
}

TEST(ValidatePlan, TakesTheDefaultsOfEveryAlgorithm) {
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    RunPlan plan = GoodPlan();
    plan.algorithm.name = info.name;
    if (info.dense_only) plan.codec.format.coordinates = Coordinates::kDense;
    if (info.star_graph) plan.topology.kind = "star";
    EXPECT_TRUE(ValidatePlan(plan).ok())
        << info.name << ": " << ValidatePlan(plan);
  }
}

// Which algorithms average models is a promise to users: docs/aggregation.md.
TEST(ValidatePlan, TakesAnAggregationRuleWhereModelsAreAveraged) {
  std::vector<std::string> taken;
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    RunPlan plan = GoodPlan();
    plan.algorithm.name = info.name;
    plan.codec.format.coordinates = Coordinates::kDense;
    plan.topology.kind = info.star_graph ? "star" : "complete";
    plan.aggregation.rule = AggregationRule::kTrimmedMean;
    const absl::Status status = ValidatePlan(plan);
    if (status.ok()) {
      taken.push_back(info.name);
      continue;
    }
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("aggregation.rule: \"trimmed-mean\""),
                      HasSubstr(info.name)));
  }
  EXPECT_THAT(taken, testing::UnorderedElementsAre(
                         "async-dsgd", "barrier-dsgd", "d-psgd", "decefl",
                         "dfedavgm", "dfedsam", "epidemic", "fedavg", "fedavg+",
                         "pame", "sync-dsgd"));
}

TEST(ValidatePlan, CountsTheValuesThatAnAggregationRuleNeeds) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "d-psgd";
  plan.topology.kind = "complete";
  plan.aggregation.rule = AggregationRule::kMedian;
  plan.codec.format.coordinates = Coordinates::kDense;
  const auto error = [&] { return std::string(ValidatePlan(plan).message()); };
  EXPECT_EQ(error(), "");
  plan.aggregation.hostile = 2;  // 5 values, of 4 nodes
  EXPECT_THAT(error(), AllOf(StartsWith("aggregation.hostile: 2"),
                             HasSubstr("5 values"), HasSubstr("3 models")));
  plan.aggregation.hostile = 1;
  plan.codec.format.coordinates = Coordinates::kRandom;
  plan.codec.rate = 0.5;
  EXPECT_THAT(error(), HasSubstr("2.5 on average"));
  plan.codec.rate = 0.7;
  EXPECT_EQ(error(), "");
  plan.topology.kind = "star";
  EXPECT_THAT(error(), HasSubstr("hears 1 models"));
  // Where members come and go it is a warning.
  plan.participants.kind = ParticipantsSpec::Kind::kAll;
  EXPECT_EQ(error(), "");
  EXPECT_THAT(PlanWarnings(plan),
              Contains(AllOf(StartsWith("aggregation.hostile"),
                             HasSubstr("is not mixed"))));
}

TEST(ValidatePlan, RefusesAggregationSettingsWithoutMeaning) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "d-psgd";
  plan.topology.kind = "complete";
  plan.aggregation.radius = 1;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              HasSubstr("since aggregation.rule is mean"));
  plan.aggregation.rule = AggregationRule::kCentredClipping;
  plan.codec.format.coordinates = Coordinates::kDense;
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.aggregation.radius = -1;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("aggregation.radius: -1"));
  plan.aggregation.radius = 0;
  plan.aggregation.hostile = 0;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("aggregation.hostile: 0"));
}

TEST(ValidatePlan, TakesLossyMassWhereTheoryAllowsItAndElseSaysWhyNot) {
  std::vector<std::string> taken;
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    RunPlan plan = GoodPlan();
    plan.algorithm.name = info.name;
    plan.codec.format.coordinates = Coordinates::kDense;
    plan.codec.mass = ValueType::kInt8;
    if (info.star_graph) plan.topology.kind = "star";
    const absl::Status status = ValidatePlan(plan);
    if (status.ok()) {
      taken.push_back(info.name);
      continue;
    }
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(StartsWith("codec.mass: \"int8\""),
              HasSubstr(info.gives_mass ? info.exact_mass : "gives no mass")));
  }
  EXPECT_THAT(taken, testing::UnorderedElementsAre("depositum", "g-push-pull",
                                                   "k-gt", "push-pull",
                                                   "spod-gt", "sporadic-k-gt"));
}

TEST(ValidatePlan, SaysWhyAFormatIsNotForAnAlgorithm) {
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    SCOPED_TRACE(info.name);
    RunPlan plan = GoodPlan();
    plan.algorithm.name = info.name;
    if (info.star_graph) plan.topology.kind = "star";
    EXPECT_EQ(info.dense_only, !info.why_dense.empty());
    plan.codec.format.coordinates = Coordinates::kRandom;
    EXPECT_EQ(ValidatePlan(plan).ok(), !info.dense_only);
    if (info.dense_only) {
      EXPECT_THAT(std::string(ValidatePlan(plan).message()),
                  AllOf(StartsWith("codec.coordinates: \"random\""),
                        HasSubstr(info.why_dense)));
    }
    plan.codec.format.coordinates = Coordinates::kDense;
    plan.codec.format.values = ValueType::kInt8;
    EXPECT_EQ(ValidatePlan(plan).ok(), info.exact_mass.empty());
    if (!info.exact_mass.empty()) {
      EXPECT_THAT(std::string(ValidatePlan(plan).message()),
                  AllOf(StartsWith("codec.values: \"int8\""),
                        HasSubstr(info.exact_mass)));
    }
  }
}

TEST(ValidatePlan, TakesOneLonelyMember) {
  RunPlan plan = GoodPlan();
  plan.members.resize(1);
  for (const char* kind : {"complete", "ring", "star", "path", "grid", "torus",
                           "bipartite", "erdos-renyi", "random-geometric"}) {
    plan.topology.kind = kind;
    EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  }
}

struct BadPlan {
  std::string start;    // path and value found
  std::string allowed;  // what is allowed, or what to do
  std::function<void(RunPlan&)> spoil;
};

class ValidatePlanRefuses : public testing::TestWithParam<BadPlan> {};

TEST_P(ValidatePlanRefuses, WithPathValueAndWhatIsAllowed) {
  RunPlan plan = GoodPlan();
  GetParam().spoil(plan);
  const absl::Status status = ValidatePlan(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(StartsWith(GetParam().start), HasSubstr(GetParam().allowed)));
}

INSTANTIATE_TEST_SUITE_P(
    Members, ValidatePlanRefuses,
    testing::Values(
        BadPlan{"members: none", "at least one",
                [](RunPlan& p) { p.members.clear(); }},
        BadPlan{"members[1]: node name \"be rt\"", "letters, digits",
                [](RunPlan& p) { p.members[1].node = NodeId("be rt"); }},
        BadPlan{"members[2]: \"bert\"", "listed once",
                [](RunPlan& p) { p.members[2].node = NodeId("bert"); }},
        BadPlan{"members[1]: \"Zoe\" comes after \"anna\"", "sorted bytewise",
                [](RunPlan& p) { p.members[1].node = NodeId("Zoe"); }},
        BadPlan{"members[3].rows: -1", "integer >= 0",
                [](RunPlan& p) { p.members[3].rows = -1; }}));

INSTANTIATE_TEST_SUITE_P(
    Model, ValidatePlanRefuses,
    testing::Values(BadPlan{"model.kind: \"resnet2O\"",
                            "did you mean \"resnet20\"",
                            [](RunPlan& p) { p.model.kind = "resnet2O"; }},
                    BadPlan{"model.classes: 1", "integer >= 2",
                            [](RunPlan& p) { p.model.classes = 1; }},
                    BadPlan{"model.classes: 0", "the other kinds",
                            [](RunPlan& p) {
                              p.model.kind = "logistic";
                              p.model.classes = 0;
                            }},
                    BadPlan{"model.input: [1, 0, 28]", "each extent >= 1",
                            [](RunPlan& p) { p.model.input = {1, 0, 28}; }},
                    BadPlan{"model.input: [784]", "[channels, height, width]",
                            [](RunPlan& p) { p.model.input = {784}; }},
                    BadPlan{"model.hidden: 0", "integer >= 1",
                            [](RunPlan& p) {
                              p.model.kind = "mlp";
                              p.model.hidden = {64, 0};
                            }},
                    BadPlan{"model.hidden: []", "at least one width",
                            [](RunPlan& p) {
                              p.model.kind = "mlp";
                              p.model.hidden = {};
                            }},
                    BadPlan{"model.dropout: 1 ", "[0, 1)",
                            [](RunPlan& p) {
                              p.model.kind = "mlp";
                              p.model.dropout = 1;
                            }},
                    BadPlan{"model.dropout: 0.5", "only mlp",
                            [](RunPlan& p) { p.model.dropout = 0.5; }},
                    BadPlan{"model.path: missing", ".pt file",
                            [](RunPlan& p) { p.model.kind = "torchscript"; }},
                    BadPlan{"model.path: \"m.pt\"", "only torchscript",
                            [](RunPlan& p) { p.model.path = "m.pt"; }},
                    BadPlan{"model.loss: \"hing\"", "did you mean \"hinge\"",
                            [](RunPlan& p) { p.model.loss = "hing"; }},
                    BadPlan{"model.loss: \"hinge\"", "mse",
                            [](RunPlan& p) {
                              p.model.kind = "linear";
                              p.model.classes = 0;
                              p.model.loss = "hinge";
                            }},
                    BadPlan{"model.loss: \"huber\"", "there are classes",
                            [](RunPlan& p) {
                              p.model.classes = 10;
                              p.model.loss = "huber";
                            }},
                    BadPlan{"model.huber_delta: 0", "number > 0",
                            [](RunPlan& p) {
                              p.model.classes = 0;
                              p.model.loss = "huber";
                              p.model.huber_delta = 0;
                            }},
                    BadPlan{"model.huber_delta: 2", "not huber",
                            [](RunPlan& p) { p.model.huber_delta = 2; }},
                    BadPlan{"model.class_weights: 2 numbers", "10 classes",
                            [](RunPlan& p) {
                              p.model.classes = 10;
                              p.model.class_weights = {1, 2};
                            }},
                    BadPlan{"model.class_weights: -1 ", "numbers > 0",
                            [](RunPlan& p) {
                              p.model.classes = 2;
                              p.model.class_weights = {1, -1};
                            }},
                    BadPlan{"model.class_weights: 2 numbers", "cross-entropy",
                            [](RunPlan& p) {
                              p.model.classes = 2;
                              p.model.loss = "mse";
                              p.model.class_weights = {1, 2};
                            }},
                    BadPlan{"model.l2: -1", "number >= 0",
                            [](RunPlan& p) { p.model.l2 = -1; }},
                    BadPlan{"batch_size: 0", "integer >= 1",
                            [](RunPlan& p) { p.batch_size = 0; }}));

INSTANTIATE_TEST_SUITE_P(
    Algorithm, ValidatePlanRefuses,
    testing::Values(
        BadPlan{"algorithm.name: ", "did you mean \"pame\"",
                [](RunPlan& p) { p.algorithm.name = "pane"; }},
        BadPlan{"algorithm.knobs.nu: 1.5", "(0, 1]",
                [](RunPlan& p) { p.algorithm.knobs = {{"nu", 1.5}}; }},
        BadPlan{"algorithm.knobs.kapa: unknown", "did you mean \"kappa\"",
                [](RunPlan& p) {
                  p.algorithm.knobs = {{"kapa", IntRange{5, 10}}};
                }},
        BadPlan{
            "nodes.bert.knobs.p: 0 ", "(0, 1]",
            [](RunPlan& p) { p.nodes[NodeId("bert")].knobs = {{"p", 0.0}}; }},
        BadPlan{
            "nodes.bret: \"bret\" is no member", "did you mean \"bert\"",
            [](RunPlan& p) { p.nodes[NodeId("bret")].knobs = {{"p", 0.5}}; }},
        BadPlan{"algorithm.knobs.sample_weighting: on",
                "members[0] (anna) does not tell its own",
                [](RunPlan& p) {
                  p.algorithm.name = "decefl";
                  p.algorithm.knobs = {{"sample_weighting", true}};
                }},
        BadPlan{"nodes.carl.knobs.sample_weighting: on", "members[1] (bert)",
                [](RunPlan& p) {
                  p.algorithm.name = "decefl";
                  p.members[0].rows = 100;
                  p.nodes[NodeId("carl")].knobs = {{"sample_weighting", true}};
                }}));

INSTANTIATE_TEST_SUITE_P(
    Topology, ValidatePlanRefuses,
    testing::Values(
        BadPlan{"topology.kind: \"rign\"", "did you mean \"ring\"",
                [](RunPlan& p) { p.topology.kind = "rign"; }},
        BadPlan{"topology.edge_probability: 1.2", "(0, 1]",
                [](RunPlan& p) {
                  p.topology.kind = "erdos-renyi";
                  p.topology.edge_probability = 1.2;
                }},
        BadPlan{"topology.edges[0]: \"emil\"", "anna, bert, carl, dora",
                [](RunPlan& p) {
                  p.topology.kind = "explicit";
                  p.topology.edges = {{NodeId("anna"), NodeId("emil")}};
                }},
        BadPlan{"topology.weights: \"metropoli\"",
                "did you mean \"metropolis\"",
                [](RunPlan& p) { p.topology.weights = "metropoli"; }},
        BadPlan{"topology.weights: \"uniform\"", "complete",
                [](RunPlan& p) {
                  p.topology.kind = "ring";
                  p.topology.weights = "uniform";
                }},
        BadPlan{"topology.matrix: 0 rows", "4 members",
                [](RunPlan& p) { p.topology.weights = "explicit"; }}));

INSTANTIATE_TEST_SUITE_P(
    Rest, ValidatePlanRefuses,
    testing::Values(
        BadPlan{"codec.coordinates: \"topk\"", "uniformly random",
                [](RunPlan& p) {
                  p.codec.format.coordinates = Coordinates::kTopK;
                }},
        BadPlan{"codec.rate: 0 ", "(0, 1]",
                [](RunPlan& p) { p.codec.rate = 0; }},
        BadPlan{"codec.rate: nan", "(0, 1]",
                [](RunPlan& p) { p.codec.rate = std::nan(""); }},
        BadPlan{"evaluation.every_steps: -5", "integer >= 0",
                [](RunPlan& p) { p.evaluation.every_steps = -5; }},
        BadPlan{"evaluation.examples: -1", "integer >= 0",
                [](RunPlan& p) { p.evaluation.examples = -1; }},
        BadPlan{"stop.rounds: -1", "integer >= 0",
                [](RunPlan& p) { p.stop.rounds = -1; }},
        BadPlan{"stop.epochs: -0.5", "number >= 0 (0 = no limit)",
                [](RunPlan& p) { p.stop.epochs = -0.5; }},
        BadPlan{"stop.rounds: 7",
                "which exchanges nothing and so has no rounds",
                [](RunPlan& p) {
                  p.algorithm.name = "local";
                  p.algorithm.knobs.clear();
                  p.stop.rounds = 7;
                }},
        BadPlan{"stop.steps: -1", "integer >= 0",
                [](RunPlan& p) { p.stop.steps = -1; }},
        BadPlan{"stop.time: 0", "duration > 0",
                [](RunPlan& p) { p.stop.time = absl::ZeroDuration(); }},
        BadPlan{"stop.loss_below: -0.5", "number >= 0",
                [](RunPlan& p) { p.stop.loss_below = -0.5; }},
        BadPlan{"stop.accuracy_above: 90", "[0, 1]",
                [](RunPlan& p) { p.stop.accuracy_above = 90; }},
        BadPlan{"deadline.exchange: 0", "finite duration > 0",
                [](RunPlan& p) { p.deadline.exchange = absl::ZeroDuration(); }},
        BadPlan{
            "deadline.exchange: inf", "finite duration > 0",
            [](RunPlan& p) { p.deadline.exchange = absl::InfiniteDuration(); }},
        BadPlan{"deadline.ceiling: 1s", "at least deadline.exchange (2s)",
                [](RunPlan& p) { p.deadline.ceiling = absl::Seconds(1); }},
        BadPlan{"deadline.floor: 11s", "at most the ceiling (10s)",
                [](RunPlan& p) { p.deadline.floor = absl::Seconds(11); }},
        BadPlan{"deadline.floor: 4s", "at most the ceiling (3s)",
                [](RunPlan& p) {
                  p.deadline.floor = absl::Seconds(4);
                  p.deadline.ceiling = absl::Seconds(3);
                }},
        BadPlan{"deadline.floor: -1s", "at most the ceiling (10s)",
                [](RunPlan& p) { p.deadline.floor = -absl::Seconds(1); }},
        BadPlan{"checkpoint.keep: 1", "an integer from 2 to 16",
                [](RunPlan& p) { p.checkpoint.keep = 1; }},
        BadPlan{"checkpoint.keep: 17", "an integer from 2 to 16",
                [](RunPlan& p) { p.checkpoint.keep = 17; }}));

TEST(ValidatePlan, TakesADeadlineThatItsBoundsLeaveNoRoom) {
  RunPlan plan = GoodPlan();
  EXPECT_EQ(plan.deadline.Ceiling(), 5 * plan.deadline.exchange);
  plan.deadline.floor = plan.deadline.Ceiling();
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.deadline.floor = plan.deadline.ceiling = plan.deadline.exchange;
  EXPECT_EQ(plan.deadline.Ceiling(), plan.deadline.exchange);
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
}

// Every algorithm that exchanges with everyone.
TEST(ValidatePlan, RefusesOtherGraphsAndWeightsWhereAllMeetAll) {
  int64_t checked = 0;
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    if (!info.complete_graph) continue;
    ++checked;
    RunPlan plan = GoodPlan();
    plan.algorithm.name = info.name;
    plan.codec.format.coordinates = Coordinates::kDense;
    plan.topology.kind = "ring";
    EXPECT_THAT(
        std::string(ValidatePlan(plan).message()),
        AllOf(StartsWith("topology.kind: \"ring\" is not allowed; allowed: "
                         "complete"),
              HasSubstr(info.name)));
    plan.members.resize(3);  // a ring of three is complete
    EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
    plan.topology.weights = "explicit";
    plan.topology.matrix = {
        {0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}, {0.25, 0.25, 0.5}};
    EXPECT_THAT(std::string(ValidatePlan(plan).message()),
                StartsWith("topology.weights: \"explicit\""));
  }
  EXPECT_EQ(checked, 4);  // epidemic, fedavg, fedavg+, swarm
}

RunPlan FedmidPlan() {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "fedmid";
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.topology.kind = "star";
  return plan;
}

TEST(ValidatePlan, RefusesOtherGraphsThanAStarWhereThereIsAHub) {
  RunPlan plan = FedmidPlan();
  plan.topology.kind = "complete";
  EXPECT_THAT(
      std::string(ValidatePlan(plan).message()),
      AllOf(StartsWith("topology.kind: \"complete\" is not allowed; allowed: "
                       "star"),
            HasSubstr("fedmid")));
  plan.topology.kind = "explicit";
  const NodeId carl("carl");
  plan.topology.edges = {{NodeId("anna"), carl}, {carl, NodeId("bert")}};
  EXPECT_FALSE(ValidatePlan(plan).ok());  // dora has no edge
  plan.topology.edges.emplace_back(carl, NodeId("dora"));
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  for (const char* self : {"anna", "carl"}) {
    const auto node = DeriveNodePlan(plan, NodeId(self));
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_THAT(FactsOf<HubFacts>(*node).hubs, ElementsAre(carl));
  }
  plan.topology.edges.emplace_back(NodeId("anna"), NodeId("dora"));
  EXPECT_FALSE(ValidatePlan(plan).ok());
  plan.algorithm.name = "d-psgd";
  const auto node = DeriveNodePlan(plan, carl);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->facts, nullptr);  // it wants none
}

// fedmid takes proximal points at eta_c, and at eta_s eta_c K on the hub.
TEST(ValidatePlan, RefusesProximalStepsThatHaveNoUniqueSolution) {
  RunPlan plan = FedmidPlan();
  plan.algorithm.knobs = {{"prox", std::string("mcp")},
                          {"theta", 0.4},
                          {"eta_c", 0.1},
                          {"K", int64_t{3}}};
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.algorithm.knobs["K"] = int64_t{4};
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("algorithm.knobs.theta: 0.4 is not above the step "
                         "0.4"));
  plan.algorithm.knobs["K"] = int64_t{3};
  plan.nodes[NodeId("bert")].knobs["eta_c"] = 0.2;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("nodes.bert.knobs.theta: 0.4 is not above the step "
                         "0.6"));
  plan.nodes.clear();
  plan.algorithm.knobs["prox"] = std::string("scad");
  plan.algorithm.knobs["a"] = 2.5;
  plan.algorithm.knobs["eta_c"] = 1.5;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("algorithm.knobs.a: 2.5 is not above 1 + the step"));
}

TEST(ValidatePlan, RefusesARegressionWherePredictionsAreCompared) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "kd-pdfl";
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.model.kind = "linear";
  plan.model.classes = 0;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              AllOf(StartsWith("model.classes: 0 is not allowed"),
                    HasSubstr("kd-pdfl")));
  plan.model.classes = 2;
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  const auto node = DeriveNodePlan(plan, NodeId("carl"));
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->place, 2);
}

TEST(ValidatePlan, RefusesGraphsOfRoundsWhereThereAreNone) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "draco";
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.topology.kind = "erdos-renyi";
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.topology.every = 5;
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("topology.every: 5 is not allowed; allowed: 0, since "
                         "algorithm.name is draco"));
  plan.topology.kind = "time-varying";
  plan.topology.edge_sets = {{{NodeId("anna"), NodeId("bert")}},
                             {{NodeId("carl"), NodeId("dora")}}};
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              StartsWith("topology.kind: \"time-varying\""));
}

// Directed: those that send to the most.
TEST(DeriveNodePlan, NamesTheHubs) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "draco";
  plan.codec.format.coordinates = Coordinates::kDense;
  const NodeId a("anna");
  const NodeId b("bert");
  const NodeId c("carl");
  const NodeId d("dora");
  plan.topology.kind = "path";
  EXPECT_THAT(FactsOf<HubFacts>(*DeriveNodePlan(plan, a)).hubs,
              ElementsAre(b, c));
  plan.topology.kind = "explicit";
  plan.topology.directed = true;
  plan.topology.edges = {{a, b}, {b, a}, {b, d}, {c, a},
                         {d, a}, {d, c}, {c, d}, {a, c}};
  EXPECT_THAT(FactsOf<HubFacts>(*DeriveNodePlan(plan, c)).hubs,
              ElementsAre(a, b, c, d));
  plan.topology.edges.pop_back();
  EXPECT_THAT(FactsOf<HubFacts>(*DeriveNodePlan(plan, c)).hubs,
              ElementsAre(b, c, d));
}

TEST(ValidatePlan, RefusesPartialMessagesWhereAllOfAModelIsNeeded) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "swarm";
  for (const auto sparse : {Coordinates::kRandom, Coordinates::kTopK}) {
    plan.codec.format.coordinates = sparse;
    EXPECT_THAT(std::string(ValidatePlan(plan).message()),
                AllOf(StartsWith("codec.coordinates: "),
                      HasSubstr("allowed: dense"), HasSubstr("swarm")));
  }
}

TEST(ValidatePlan, RefusesAnOverrideOfWhatNodesRelyOn) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "epidemic";
  plan.algorithm.knobs = {{"s", int64_t{3}}};
  plan.nodes[NodeId("bert")].knobs = {{"eta", 0.5}};
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.nodes[NodeId("bert")].knobs = {{"s", int64_t{2}}};
  EXPECT_THAT(std::string(ValidatePlan(plan).message()),
              AllOf(StartsWith("nodes.bert.knobs.s: "),
                    HasSubstr("algorithm.knobs.s")));
}

TEST(ValidatePlan, TakesTopKForPushAlgorithms) {
  for (const char* name : {"d-psgd", "decefl"}) {
    RunPlan plan = GoodPlan();
    plan.algorithm.name = name;
    plan.codec.format.coordinates = Coordinates::kTopK;
    EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  }
}

TEST(ValidatePlan, TakesSampleWeightingWhenAllRowsAreTold) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "decefl";
  plan.algorithm.knobs = {{"sample_weighting", true}};
  for (MemberSpec& member : plan.members) member.rows = 10;
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
}

TEST(ValidatePlan, SaysWhenErdosRenyiStaysDisconnected) {
  RunPlan plan = GoodPlan();
  plan.topology.kind = "erdos-renyi";
  plan.topology.edge_probability = 1e-6;
  EXPECT_EQ(ValidatePlan(plan).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PlanWarnings, FullExchangeOnABipartiteGraph) {
  RunPlan plan = GoodPlan();
  plan.topology.kind = "ring";
  plan.algorithm.knobs = {{"nu", 1.0}, {"p", 1.0}};
  EXPECT_THAT(PlanWarnings(plan), Contains(HasSubstr("never mixes")));
  // nu = 0.9 of two neighbours are both of them.
  plan.algorithm.knobs["nu"] = 0.9;
  EXPECT_THAT(PlanWarnings(plan), Contains(HasSubstr("never mixes")));
  plan.algorithm.knobs["p"] = 0.5;
  EXPECT_THAT(PlanWarnings(plan), Not(Contains(HasSubstr("never mixes"))));
  plan.algorithm.knobs["p"] = 1.0;
  plan.nodes[NodeId("anna")].knobs = {{"nu", 0.5}};
  EXPECT_THAT(PlanWarnings(plan), Not(Contains(HasSubstr("never mixes"))));
  plan.nodes.clear();
  plan.topology.kind = "complete";  // has triangles
  EXPECT_THAT(PlanWarnings(plan), Not(Contains(HasSubstr("never mixes"))));
}

TEST(PlanWarnings, ShowPamesFirstStep) {
  RunPlan plan = GoodPlan();
  plan.algorithm.knobs = {{"nu", 0.5}, {"sigma0", 5.0}};
  // m = ceil(0.5 * 3) = 2.
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(HasSubstr("first step 1/(sigma0 m) is 0.1,")));
  plan.nodes[NodeId("dora")].knobs = {{"nu", 0.1}};
  EXPECT_THAT(PlanWarnings(plan), ElementsAre(HasSubstr("is 0.1 to 0.2,")));
}

TEST(PlanWarnings, NamesThePartsOfADisconnectedGraph) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "d-psgd";
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
  plan.topology.kind = "explicit";
  plan.topology.edges = {{NodeId("anna"), NodeId("carl")}};
  EXPECT_TRUE(ValidatePlan(plan).ok());
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(HasSubstr("{anna, carl}, {bert}, {dora}")));
  plan.algorithm.name = "local";  // nobody exchanges anything
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
}

TEST(PlanWarnings, FineTuningThatNeverBegins) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "fedavg+";
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
  plan.stop.rounds = 100;
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(HasSubstr("fine_tune_from: 100")));
  plan.algorithm.knobs = {{"fine_tune_from", int64_t{80}}};
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
  // A round is E epochs, or a step.
  const auto warns = [](const char* by) {
    return Contains(AllOf(HasSubstr("fine_tune_from: 80"), HasSubstr(by)));
  };
  plan.stop = StopRule();
  plan.stop.epochs = 160;
  plan.algorithm.knobs["E"] = int64_t{2};
  EXPECT_THAT(PlanWarnings(plan), warns("after 80 rounds (stop.epochs)"));
  plan.stop.epochs = 162;
  EXPECT_THAT(PlanWarnings(plan), Not(warns("stop.epochs")));
  plan.stop.steps = 80;
  EXPECT_THAT(PlanWarnings(plan), Not(warns("stop.steps")));
  plan.algorithm.knobs["form"] = std::string("gradient");
  EXPECT_THAT(PlanWarnings(plan), warns("after 80 rounds (stop.steps)"));
}

// A run that ends by what nodes have of their own ends at each by itself.
TEST(PlanWarnings, RunsThatEndInDifferentRounds) {
  const auto warns = [](const RunPlan& plan, const char* key) {
    int64_t count = 0;
    for (const std::string& text : PlanWarnings(plan)) {
      count += absl::StartsWith(text, absl::StrCat("stop.", key, ": ")) &&
                       absl::StrContains(text, "stop.rounds ends all")
                   ? 1
                   : 0;
    }
    return count == 1;
  };
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "d-psgd";
  plan.algorithm.knobs.clear();
  plan.stop.steps = 100;
  EXPECT_FALSE(warns(plan, "steps"));
  plan.stop.epochs = 3;
  for (MemberSpec& member : plan.members) member.rows = 0;
  EXPECT_TRUE(warns(plan, "epochs")) << "rows may differ";
  for (MemberSpec& member : plan.members) member.rows = 40;
  EXPECT_FALSE(warns(plan, "epochs"));
  plan.members[0].rows = 30;
  EXPECT_TRUE(warns(plan, "epochs"));
  plan.algorithm.name = "decefl";
  plan.algorithm.knobs = {{"form", std::string("local")}};
  EXPECT_TRUE(warns(plan, "steps")) << "a round is an epoch of other rows";
  EXPECT_FALSE(warns(plan, "epochs"));
  plan.algorithm.name = "async-dsgd";
  plan.algorithm.knobs.clear();
  EXPECT_TRUE(warns(plan, "steps"));
  EXPECT_TRUE(warns(plan, "epochs"));
  plan.stop.epochs = 0;
  plan.algorithm.name = "dfedavgm";
  EXPECT_FALSE(warns(plan, "steps"));
  plan.nodes[plan.members[1].node].knobs["K"] = int64_t{9};
  EXPECT_TRUE(warns(plan, "steps"));
  plan.stop = StopRule();
  plan.stop.rounds = 10;
  EXPECT_FALSE(warns(plan, "steps"));
}

TEST(PlanWarnings, SaysWhatIsIgnored) {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "d-psgd";
  plan.topology.edges = {{NodeId("anna"), NodeId("carl")}};
  plan.topology.matrix = {{1.0}};
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(StartsWith("topology.edges: ignored"),
                          StartsWith("topology.matrix: ignored")));
}

TEST(PlanWarnings, IsQuietAboutABadPlan) {
  RunPlan plan = GoodPlan();
  plan.batch_size = 0;
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
}

TEST(DeriveNodePlan, ResolvesNeighboursWeightsAndKnobs) {
  RunPlan plan = GoodPlan();
  plan.topology.kind = "star";
  plan.algorithm.knobs = {{"nu", 0.25}};
  plan.nodes[NodeId("bert")].knobs = {{"nu", 1.0}};
  plan.deadline.exchange = absl::Seconds(3);
  const absl::StatusOr<NodePlan> bert = DeriveNodePlan(plan, NodeId("bert"));
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_EQ(bert->self, NodeId("bert"));
  ASSERT_EQ(bert->neighbours.size(), 1u);
  EXPECT_EQ(bert->neighbours[0].node, NodeId("anna"));
  EXPECT_NEAR(bert->neighbours[0].weight, 0.25, 1e-15);
  EXPECT_NEAR(bert->self_weight, 0.75, 1e-15);
  EXPECT_EQ(bert->knobs.Number("nu"), 1.0);
  EXPECT_EQ(bert->member_count, 4);
  EXPECT_FALSE(bert->rows_known);
  EXPECT_EQ(bert->sample_weight, 1);
  EXPECT_EQ(bert->exchange_deadline, absl::Seconds(3));
  const absl::StatusOr<NodePlan> anna = DeriveNodePlan(plan, NodeId("anna"));
  ASSERT_TRUE(anna.ok());
  EXPECT_EQ(anna->neighbours.size(), 3u);
  EXPECT_EQ(anna->knobs.Number("nu"), 0.25);
}

TEST(DeriveNodePlan, SampleWeightIsTheShareOfRowsTimesMembers) {
  RunPlan plan = GoodPlan();
  for (MemberSpec& member : plan.members) member.rows = 100;
  plan.members[0].rows = 500;
  const absl::StatusOr<NodePlan> anna = DeriveNodePlan(plan, NodeId("anna"));
  ASSERT_TRUE(anna.ok());
  EXPECT_TRUE(anna->rows_known);
  EXPECT_NEAR(anna->sample_weight, 500.0 * 4 / 800, 1e-15);
  plan.members[3].rows = 0;
  EXPECT_FALSE(DeriveNodePlan(plan, NodeId("anna"))->rows_known);
  EXPECT_EQ(DeriveNodePlan(plan, NodeId("anna"))->sample_weight, 1);
}

TEST(DeriveNodePlan, EveryNodeDerivesTheSameGraph) {
  RunPlan plan;
  plan.seed = 11;
  plan.topology.kind = "erdos-renyi";
  plan.topology.edge_probability = 0.4;
  plan.algorithm.name = "d-psgd";
  std::vector<NodeId> ids;
  for (int i = 0; i < 12; ++i) {
    ids.emplace_back(absl::StrCat("n", 10 + i));
    plan.members.push_back(MemberSpec{.node = ids.back()});
  }
  const Graph graph =
      *BuildGraph(plan.topology, DeriveSeed(plan.seed, "topology"), ids);
  const MixingMatrix w = *BuildMixing("metropolis", graph);
  const absl::StatusOr<std::vector<NodePlan>> all = DeriveNodePlans(plan);
  ASSERT_TRUE(all.ok()) << all.status();
  for (size_t i = 0; i < ids.size(); ++i) {
    const absl::StatusOr<NodePlan> node = DeriveNodePlan(plan, ids[i]);
    ASSERT_TRUE(node.ok());
    EXPECT_EQ(node->self_weight, w[i][i]);
    EXPECT_EQ((*all)[i].self, ids[i]);
    EXPECT_EQ((*all)[i].self_weight, w[i][i]);
    ASSERT_EQ(node->neighbours.size(), graph.neighbours(i).size());
    for (size_t q = 0; q < node->neighbours.size(); ++q) {
      const int64_t j = graph.neighbours(i)[q];
      EXPECT_EQ(node->neighbours[q].node, ids[j]);
      EXPECT_EQ(node->neighbours[q].weight, w[i][j]);
      EXPECT_EQ((*all)[i].neighbours[q].weight, w[i][j]);
    }
  }
}

EdgeList DirectedRing(const RunPlan& plan) {
  EdgeList edges;
  for (size_t i = 0; i < plan.members.size(); ++i) {
    edges.emplace_back(plan.members[i].node,
                       plan.members[(i + 1) % plan.members.size()].node);
  }
  return edges;
}

// anna -> bert -> carl -> dora -> anna, and bert -> dora. `local` exchanges
// nothing, so any graph is good for it.
RunPlan DirectedPlan() {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "local";
  plan.topology.kind = "explicit";
  plan.topology.directed = true;
  plan.topology.edges = DirectedRing(plan);
  plan.topology.edges.emplace_back(NodeId("bert"), NodeId("dora"));
  return plan;
}

TEST(DeriveNodePlan, DirectedNeighboursHaveTheirWeightsOfAAndB) {
  const absl::StatusOr<NodePlan> bert =
      DeriveNodePlan(DirectedPlan(), NodeId("bert"));
  ASSERT_TRUE(bert.ok()) << bert.status();
  EXPECT_THAT(bert->in_neighbours,
              ElementsAre(Neighbour{NodeId("anna"), 1.0 / 2}));
  EXPECT_THAT(bert->out_neighbours,
              ElementsAre(Neighbour{NodeId("carl"), 1.0 / 3},
                          Neighbour{NodeId("dora"), 1.0 / 3}));
  EXPECT_EQ(bert->receiver_weight, 1.0 / 2);
  EXPECT_EQ(bert->sender_weight, 1.0 / 3);
  EXPECT_THAT(bert->neighbours, ElementsAre(Neighbour{NodeId("anna"), 1.0 / 2},
                                            Neighbour{NodeId("carl"), 0},
                                            Neighbour{NodeId("dora"), 0}));
  EXPECT_EQ(bert->self_weight, 1.0 / 2);
  const absl::StatusOr<NodePlan> dora =
      DeriveNodePlan(DirectedPlan(), NodeId("dora"));
  ASSERT_TRUE(dora.ok()) << dora.status();
  EXPECT_THAT(dora->in_neighbours,
              ElementsAre(Neighbour{NodeId("bert"), 1.0 / 3},
                          Neighbour{NodeId("carl"), 1.0 / 3}));
  EXPECT_THAT(dora->out_neighbours,
              ElementsAre(Neighbour{NodeId("anna"), 1.0 / 2}));
}

TEST(DeriveNodePlan, AnUndirectedEdgeIsTwoArcs) {
  RunPlan plan = GoodPlan();
  plan.topology.kind = "star";
  const absl::StatusOr<NodePlan> bert = DeriveNodePlan(plan, NodeId("bert"));
  ASSERT_TRUE(bert.ok());
  EXPECT_THAT(bert->in_neighbours,
              ElementsAre(Neighbour{NodeId("anna"), 1.0 / 2}));
  EXPECT_EQ(bert->out_neighbours, bert->in_neighbours);
  const absl::StatusOr<NodePlan> anna = DeriveNodePlan(plan, NodeId("anna"));
  ASSERT_TRUE(anna.ok());
  EXPECT_EQ(anna->receiver_weight, 1.0 / 4);
  EXPECT_EQ(anna->sender_weight, 1.0 / 4);
  EXPECT_EQ(anna->out_neighbours.size(), 3u);
}

TEST(ValidatePlan, RefusesADirectedGraphForSymmetricMixing) {
  RunPlan plan = DirectedPlan();
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  for (const char* name : {"pame", "d-psgd", "decefl"}) {
    plan.algorithm.name = name;
    const absl::Status status = ValidatePlan(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("topology.directed: on"), HasSubstr(name),
                      HasSubstr("turn it off")));
  }
}

RunPlan VaryingPlan() {
  RunPlan plan = GoodPlan();
  plan.algorithm.name = "d-psgd";
  plan.topology.kind = "time-varying";
  const NodeId anna("anna");
  const NodeId bert("bert");
  const NodeId carl("carl");
  const NodeId dora("dora");
  plan.topology.edge_sets = {{{anna, bert}, {carl, dora}},
                             {{bert, carl}},
                             {{anna, bert}, {bert, carl}}};
  return plan;
}

TEST(DeriveNodePlan, HasTheNeighboursOfTheRound) {
  const RunPlan plan = VaryingPlan();
  const NodeId anna("anna");
  const NodeId bert("bert");
  const NodeId carl("carl");
  struct Case {
    int64_t round;
    NodeId self;
    std::vector<Neighbour> neighbours;
    double self_weight;
  };
  for (const Case& c : std::vector<Case>{
           {0, anna, {{bert, 0.5}}, 0.5},
           {1, anna, {}, 1},
           {2, anna, {{bert, 1.0 / 3}}, 2.0 / 3},
           {3, anna, {{bert, 0.5}}, 0.5},
           {1, bert, {{carl, 0.5}}, 0.5},
           {302, bert, {{anna, 1.0 / 3}, {carl, 1.0 / 3}}, 1.0 / 3},
       }) {
    SCOPED_TRACE(testing::Message() << c.self.name() << " " << c.round);
    const absl::StatusOr<NodePlan> node = DeriveNodePlan(plan, c.self, c.round);
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_EQ(node->neighbours, c.neighbours);
    EXPECT_NEAR(node->self_weight, c.self_weight, 1e-15);
    const absl::StatusOr<NodePlan> unchecked = DeriveCheckedNodePlan(
        plan, *node->algorithm, c.self, *PlanGraph(plan, c.round));
    ASSERT_TRUE(unchecked.ok());
    EXPECT_TRUE(SameNeighbours(*node, *unchecked));
    const absl::StatusOr<std::vector<NodePlan>> all =
        DeriveNodePlans(plan, c.round);
    ASSERT_TRUE(all.ok());
    EXPECT_TRUE(SameNeighbours(*node, (*all)[c.self == anna   ? 0
                                             : c.self == bert ? 1
                                                              : 2]));
  }
  EXPECT_FALSE(SameNeighbours(*DeriveNodePlan(plan, anna, 0),
                              *DeriveNodePlan(plan, anna, 1)));
}

TEST(ValidatePlan, LooksAtTheGraphsOfAllRounds) {
  RunPlan plan = VaryingPlan();
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  plan.topology.edge_sets[2][1].second = NodeId("carla");
  absl::Status status = ValidatePlan(plan);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("topology.edge_sets[2][1]: \"carla\""),
                    HasSubstr("did you mean \"carl\"")));
  plan = VaryingPlan();
  for (const char* weights : {"explicit", "uniform"}) {
    plan.topology.weights = weights;
    status = ValidatePlan(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("topology.weights: "),
                      HasSubstr("changes from round to round")));
  }
}

TEST(PlanWarnings, TellWhenNoRoundJoinsTheParts) {
  RunPlan plan = VaryingPlan();
  EXPECT_THAT(PlanWarnings(plan), IsEmpty());
  plan.topology.edge_sets[0].pop_back();  // carl - dora
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(AllOf(StartsWith("topology.edge_sets: the graph of "
                                           "all rounds falls into 2 parts"),
                                HasSubstr("{anna, bert, carl}, {dora}"))));
}

TEST(PlanWarnings, TellThatPameNeverMixesWhenTheRoundsTogetherAreBipartite) {
  RunPlan plan = VaryingPlan();
  plan.algorithm.name = "pame";
  plan.algorithm.knobs = {{"nu", 1.0}, {"p", 1.0}};
  EXPECT_THAT(PlanWarnings(plan), Contains(HasSubstr("bipartite")));
  // An odd cycle over two rounds.
  plan.topology.edge_sets[1].emplace_back(NodeId("anna"), NodeId("carl"));
  EXPECT_THAT(PlanWarnings(plan), Not(Contains(HasSubstr("bipartite"))));
}

TEST(PlanWarnings, TellWhatTheKindDoesNotLookAt) {
  RunPlan plan = VaryingPlan();
  plan.topology.kind = "ring";
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre("topology.edge_sets: ignored, since topology.kind is "
                          "ring"));
  plan = DirectedPlan();
  plan.topology.weights = "laplacian";
  EXPECT_THAT(PlanWarnings(plan),
              ElementsAre(StartsWith("topology.weights: ignored, since a "
                                     "directed graph has its own")));
}

TEST(DeriveNodePlan, LeastOmegaIsThatOfThePlansGraph) {
  RunPlan plan = DirectedPlan();
  const auto least = [&plan](const char* self) {
    const auto node = DeriveNodePlan(plan, NodeId(self));
    EXPECT_TRUE(node.ok()) << node.status();
    const std::vector<double>& known = FactsOf<SgpFacts>(*node).least_omega;
    return known.empty() ? 0 : known[static_cast<size_t>(node->place)];
  };
  EXPECT_EQ(DeriveNodePlan(plan, NodeId("carl"))->facts, nullptr);  // `local`
  plan.algorithm.name = "sgp";
  plan.codec.format.coordinates = Coordinates::kDense;
  Digraph graph(4);
  for (int64_t i = 0; i < 4; ++i) graph.AddArc(i, (i + 1) % 4);
  graph.AddArc(1, 3);
  const std::vector<double> expected = LeastOmega(graph);
  EXPECT_EQ(least("anna"), expected[0]);
  EXPECT_EQ(least("bert"), expected[1]);
  EXPECT_EQ(least("carl"), expected[2]);
  EXPECT_EQ(least("dora"), expected[3]);
  EXPECT_LT(least("carl"), 0.7);
  const auto all = DeriveNodePlans(plan);
  EXPECT_EQ(FactsOf<SgpFacts>((*all)[2]).least_omega, expected);
  // An edge that runs both ways is two arcs.
  plan.topology = TopologySpec();
  EXPECT_EQ(least("anna"), 1);
  // Not known: of a part that nothing enters, and of a graph that varies.
  plan.topology = DirectedPlan().topology;
  plan.topology.edges.erase(plan.topology.edges.begin());  // anna -> bert
  EXPECT_EQ(least("carl"), 0);
  plan = VaryingPlan();
  plan.algorithm.name = "sgp";
  plan.codec.format.coordinates = Coordinates::kDense;
  EXPECT_EQ(least("carl"), 0);
}

absl::StatusOr<NeighbourCount> Count(const RunPlan& plan, int64_t place) {
  const absl::StatusOr<AnyGraph> first = PlanGraph(plan);
  if (!first.ok()) return first.status();
  return CountNeighbours(plan, **BuiltInCatalogue().Find(plan.algorithm.name),
                         *first, place);
}

TEST(CountNeighbours, TellsHowManyANodeEverHas) {
  const auto count = [](const RunPlan& plan, const char* self) {
    const auto counted = Count(plan, *PlaceOf(plan, NodeId(self)));
    EXPECT_TRUE(counted.ok()) << counted.status();
    return std::vector<int64_t>{counted->heard, counted->sent_to};
  };
  RunPlan plan = GoodPlan();
  EXPECT_THAT(count(plan, "anna"), ElementsAre(3, 3));
  plan.topology.kind = "star";
  EXPECT_THAT(count(plan, "anna"), ElementsAre(3, 3));
  EXPECT_THAT(count(plan, "dora"), ElementsAre(1, 1));
  // Arcs run one way.
  const RunPlan directed = DirectedPlan();
  int64_t heard = 0;
  int64_t sent_to = 0;
  for (const MemberSpec& member : directed.members) {
    const auto node = DeriveNodePlan(directed, member.node);
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_THAT(
        count(directed, member.node.name().c_str()),
        ElementsAre(node->in_neighbours.size(), node->out_neighbours.size()));
    heard += count(directed, member.node.name().c_str())[0];
    sent_to += count(directed, member.node.name().c_str())[1];
  }
  EXPECT_EQ(heard, sent_to);
}

TEST(PlaceOf, IsThatAmongTheMembers) {
  EXPECT_EQ(PlaceOf(GoodPlan(), NodeId("anna")), 0);
  EXPECT_EQ(PlaceOf(GoodPlan(), NodeId("dora")), 3);
  EXPECT_EQ(PlaceOf(GoodPlan(), NodeId("eve")), std::nullopt);
  EXPECT_EQ(PlaceOf(RunPlan(), NodeId("eve")), std::nullopt);
}

// Those of all rounds, each once.
TEST(CountNeighbours, TakesTheRoundsOfAVaryingGraphTogether) {
  RunPlan plan = VaryingPlan();
  std::set<NodeId> of_carl;
  for (int64_t round = 0; round < 10; ++round) {
    const auto node = DeriveNodePlan(plan, NodeId("carl"), round);
    EXPECT_EQ(node->neighbours.size(), 1U) << round;
    for (const Neighbour& n : node->neighbours) of_carl.insert(n.node);
  }
  EXPECT_EQ(of_carl.size(), 2U);
  EXPECT_EQ(Count(plan, 2)->heard, 2);
  plan.topology.every = 3;
  EXPECT_EQ(Count(plan, 2)->heard, 2);
  plan.stop.steps = 3;  // of which one graph is seen
  EXPECT_EQ(Count(plan, 2)->heard, 1);
  // Local steps are not iterations, and an iteration may be without a step.
  plan.algorithm.name = "async-dsgd";
  EXPECT_EQ(Count(plan, 2)->heard, 2);
  plan.stop = StopRule();
  plan.stop.rounds = 3;
  EXPECT_EQ(Count(plan, 2)->heard, 1);
  // Drawn again and again: everybody in the end, unless the run is shorter.
  plan = GoodPlan();
  for (int i = 0; i < 196; ++i) {
    plan.members.push_back(
        MemberSpec{.node = NodeId(absl::StrCat("x", 1000 + i))});
  }
  plan.topology.kind = "random-regular";
  plan.topology.degree = 2;
  plan.topology.every = 5;
  EXPECT_EQ(Count(plan, 0)->sent_to, 199);
  plan.stop.steps = 5;
  EXPECT_EQ(Count(plan, 0)->sent_to, 2);
  plan.stop.steps = 6;
  EXPECT_LE(Count(plan, 0)->sent_to, 4);
}

// A plan of many sets, each of which is seen for a round.
TEST(CountNeighbours, LooksThroughManySetsOfEdgesQuickly) {
  RunPlan plan = VaryingPlan();
  const EdgeList pair = {{NodeId("anna"), NodeId("bert")}};
  plan.topology.edge_sets.assign(100'000, pair);
  plan.topology.edge_sets.back()[0].second = NodeId("dora");
  plan.topology.edge_sets.push_back({{NodeId("carl"), NodeId("dora")}});
  const double begin = CpuSeconds();
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  EXPECT_EQ(Count(plan, 0)->heard, 2);
  EXPECT_TRUE(
      MeetWithin(plan, NodeId("carl"), NodeId("dora"), 99'990, 100'010));
  EXPECT_FALSE(MeetWithin(plan, NodeId("carl"), NodeId("dora"), 10, 40));
  EXPECT_LT(CpuSeconds() - begin, 5);
}

TEST(SpectralGapIfSmall, IsTheGapOfTheFirstGraph) {
  RunPlan plan = GoodPlan();
  plan.topology.kind = "ring";
  EXPECT_EQ(SpectralGapIfSmall(plan), SpectralGap(*DeriveTopology(plan)));
  EXPECT_GT(SpectralGapIfSmall(plan), 0);
  plan.members.clear();
  for (int i = 0; i < 16384; ++i) {
    plan.members.push_back(
        MemberSpec{.node = NodeId(absl::StrCat("n", 100'000 + i))});
  }
  EXPECT_EQ(SpectralGapIfSmall(plan), 0);
}

TEST(MeetWithin, TellsWhetherTwoHaveAnEdgeInOneOfTheRounds) {
  const RunPlan plan = VaryingPlan();
  const NodeId anna("anna");
  const NodeId carl("carl");
  const NodeId bert("bert");
  const NodeId dora("dora");
  EXPECT_TRUE(MeetWithin(plan, carl, dora, 0, 1));
  EXPECT_FALSE(MeetWithin(plan, carl, dora, 0, 0));
  EXPECT_FALSE(MeetWithin(plan, carl, dora, 1, 3));
  EXPECT_TRUE(MeetWithin(plan, dora, carl, 1, 4));
  EXPECT_FALSE(MeetWithin(plan, anna, carl, 0, 50));
  EXPECT_TRUE(MeetWithin(plan, anna, carl, 0, 500));  // not looked at any more
  EXPECT_FALSE(MeetWithin(plan, anna, NodeId("eve"), 0, 500));
  // A graph that stays is looked at once.
  RunPlan ring = GoodPlan();
  ring.topology.kind = "ring";
  EXPECT_TRUE(MeetWithin(ring, anna, bert, 7, 8));
  EXPECT_FALSE(MeetWithin(ring, anna, carl, 7, 100000));
  // Either direction.
  EXPECT_TRUE(MeetWithin(DirectedPlan(), bert, anna, 0, 1));
}

TEST(DeriveTopologyTest, HasBothMatricesOfADirectedGraph) {
  const absl::StatusOr<PlanTopology> topology = DeriveTopology(DirectedPlan());
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_TRUE(topology->directed);
  EXPECT_EQ(topology->digraph.Arcs().size(), 5u);
  const absl::StatusOr<std::vector<NodePlan>> nodes =
      DeriveNodePlans(DirectedPlan());
  ASSERT_TRUE(nodes.ok());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*nodes)[i].receiver_weight, topology->directed_weights.a[i][i]);
    EXPECT_EQ((*nodes)[i].sender_weight, topology->directed_weights.b[i][i]);
    for (const int64_t j : topology->digraph.out(i)) {
      EXPECT_EQ(topology->directed_weights.b[j][i], (*nodes)[i].sender_weight);
    }
  }
  EXPECT_NEAR(SpectralGap(*topology),
              1 - std::max(SecondLargestModulus(topology->directed_weights.a),
                           SecondLargestModulus(topology->directed_weights.b)),
              1e-15);
  EXPECT_GT(SpectralGap(*topology), 0.1);
}

TEST(DeriveTopologyTest, IsThatOfTheRound) {
  EXPECT_EQ(DeriveTopology(VaryingPlan(), 0)->graph.Edges().size(), 2u);
  EXPECT_EQ(DeriveTopology(VaryingPlan(), 1)->graph.Edges().size(), 1u);
}

TEST(DeriveNodePlan, AStrangerIsNotFound) {
  const absl::Status status =
      DeriveNodePlan(GoodPlan(), NodeId("berta")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("did you mean \"bert\""));
}

TEST(DeriveNodePlan, ABadPlanIsRefused) {
  RunPlan plan = GoodPlan();
  plan.topology.kind = "cube";
  EXPECT_EQ(DeriveNodePlan(plan, NodeId("anna")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// What a tool shows is what the nodes do, for drawn graphs too.
TEST(DeriveTopologyTest, HasTheRowOfEveryNode) {
  for (const char* kind : {"ring", "erdos-renyi"}) {
    RunPlan plan = GoodPlan();
    plan.topology.kind = kind;
    plan.topology.edge_probability = 0.6;
    for (plan.seed = 1; plan.seed <= 20; ++plan.seed) {
      const auto topology = DeriveTopology(plan);
      ASSERT_TRUE(topology.ok()) << topology.status();
      for (size_t i = 0; i < plan.members.size(); ++i) {
        const auto node = DeriveNodePlan(plan, plan.members[i].node);
        ASSERT_TRUE(node.ok()) << node.status();
        const std::vector<int64_t>& neighbours = topology->graph.neighbours(i);
        ASSERT_EQ(node->neighbours.size(), neighbours.size())
            << kind << " seed " << plan.seed << " node " << i;
        EXPECT_EQ(node->self_weight, topology->weights[i][i]);
        for (size_t q = 0; q < neighbours.size(); ++q) {
          EXPECT_EQ(node->neighbours[q].node, topology->members[neighbours[q]]);
          EXPECT_EQ(node->neighbours[q].weight,
                    topology->weights[i][neighbours[q]]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dfl::core
