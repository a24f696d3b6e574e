// Local optimisers against reference values, and in the algorithms that take
// one.
#include "daemon/core/rounds/local_optimizer.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;

OptimizerSpec Spec(const std::string& name) {
  OptimizerSpec spec;
  spec.name = name;
  return spec;
}

// Three gradients at w = (1, -2, 0.5), whatever w does.
const std::vector<std::vector<float>>& Gradients() {
  static const auto& gradients = *new std::vector<std::vector<float>>{
      {0.5F, -1.0F, 0.25F}, {-0.2F, 0.4F, 1.5F}, {2.0F, 0.0F, -0.5F}};
  return gradients;
}
constexpr std::array<float, 3> kStart = {1, -2, 0.5F};
constexpr double kEta = 0.1;

struct Reference {
  std::string name;
  std::function<void(OptimizerSpec&)> set;
  // w after each of the three steps.
  std::vector<std::vector<double>> w;
};

class ReferenceValues : public testing::TestWithParam<Reference> {};

TEST_P(ReferenceValues, AreReached) {
  OptimizerSpec spec;
  GetParam().set(spec);
  LocalOptimizer optimizer(spec);
  std::vector<float> w(kStart.begin(), kStart.end());
  for (size_t t = 0; t < Gradients().size(); ++t) {
    optimizer.Step(kEta, static_cast<int64_t>(t), Gradients()[t],
                   absl::MakeSpan(w));
    for (size_t l = 0; l < w.size(); ++l) {
      EXPECT_NEAR(w[l], GetParam().w[t][l], 2e-6)
          << "step " << t << ", parameter " << l;
    }
  }
}

// By the update rules of torch.optim.SGD, Adam and AdamW in double precision,
// and torch.nn.utils.clip_grad_norm_ without its 1e-6.
INSTANTIATE_TEST_SUITE_P(
    Optimizers, ReferenceValues,
    testing::Values(Reference{"Sgd",
                              [](OptimizerSpec& s) { s = Spec("sgd"); },
                              {{0.950000000, -1.900000000, 0.475000000},
                               {0.970000000, -1.940000000, 0.325000000},
                               {0.770000000, -1.940000000, 0.375000000}}},
                    Reference{"SgdWithDecay",
                              [](OptimizerSpec& s) {
                                s = Spec("sgd");
                                s.weight_decay = 0.1;
                              },
                              {{0.940000000, -1.880000000, 0.470000000},
                               {0.950600000, -1.901200000, 0.315300000},
                               {0.741094000, -1.882188000, 0.362147000}}},
                    Reference{"SgdClipped",
                              [](OptimizerSpec& s) {
                                s = Spec("sgd");
                                s.clip_norm = 1;
                              },
                              {{0.956356422, -1.912712844, 0.478178211},
                               {0.969133953, -1.938267907, 0.382346726},
                               {0.872119703, -1.938267907, 0.406600289}}},
                    Reference{"Momentum",
                              [](OptimizerSpec& s) { s = Spec("momentum"); },
                              {{0.950000000, -1.900000000, 0.475000000},
                               {0.925000000, -1.850000000, 0.302500000},
                               {0.702500000, -1.805000000, 0.197250000}}},
                    Reference{"MomentumWithDecay",
                              [](OptimizerSpec& s) {
                                s = Spec("momentum");
                                s.momentum = 0.5;
                                s.weight_decay = 0.1;
                                s.clip_norm = 1;
                              },
                              {{0.946356422, -1.892712844, 0.473178211},
                               {0.922848600, -1.845697200, 0.359204050},
                               {0.804851953, -1.803732406, 0.322878491}}},
                    Reference{"Adam",
                              [](OptimizerSpec& s) { s = Spec("adam"); },
                              {{0.900000002, -1.900000001, 0.400000004},
                               {0.865439418, -1.865439417, 0.315587479},
                               {0.796811181, -1.838723985, 0.273566549}}},
                    Reference{"AdamWithDecay",
                              [](OptimizerSpec& s) {
                                s = Spec("adam");
                                s.beta1 = 0.8;
                                s.beta2 = 0.99;
                                s.epsilon = 1e-3;
                                s.weight_decay = 0.1;
                              },
                              {{0.900166389, -1.900083264, 0.400332226},
                               {0.852506763, -1.851654741, 0.311483050},
                               {0.775095146, -1.806275347, 0.270130315}}},
                    Reference{"Adamw",
                              [](OptimizerSpec& s) {
                                s = Spec("adamw");
                                s.weight_decay = 0.1;
                              },
                              {{0.890000002, -1.880000001, 0.395000004},
                               {0.846539418, -1.826639417, 0.306637479},
                               {0.769445787, -1.781657591, 0.261550174}}},
                    Reference{"AdamwScheduled",
                              [](OptimizerSpec& s) {
                                s = Spec("adamw");
                                s.weight_decay = 0.1;
                                s.clip_norm = 1;
                                s.schedule.kind = "cosine";
                                s.schedule.warmup = 2;
                                s.schedule.length = 4;
                              },
                              {{0.945000001, -1.940000001, 0.447500002},
                               {0.892164132, -1.877214130, 0.355596855},
                               {0.811167335, -1.824904586, 0.301741293}}}),
    [](const auto& tested) { return tested.param.name; });

// -------------------------------------------------------------- schedule ----

TEST(ScheduledShare, IsThatOfItsFormula) {
  ScheduleSpec schedule;
  EXPECT_EQ(ScheduledShare(schedule, 1000), 1);
  schedule.warmup = 4;
  EXPECT_EQ(ScheduledShare(schedule, 0), 0.25);
  EXPECT_EQ(ScheduledShare(schedule, 3), 1);
  EXPECT_EQ(ScheduledShare(schedule, 4), 1);
  schedule.kind = "cosine";
  schedule.length = 8;
  schedule.floor = 0.2;
  EXPECT_EQ(ScheduledShare(schedule, 1), 0.5);
  EXPECT_DOUBLE_EQ(ScheduledShare(schedule, 4), 1);
  EXPECT_DOUBLE_EQ(ScheduledShare(schedule, 8), 0.6);
  EXPECT_NEAR(ScheduledShare(schedule, 6), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2,
              1e-12);
  EXPECT_DOUBLE_EQ(ScheduledShare(schedule, 12), 0.2);
  EXPECT_DOUBLE_EQ(ScheduledShare(schedule, 500), 0.2);
  schedule.kind = "step";
  schedule.every = 3;
  schedule.factor = 0.5;
  EXPECT_EQ(ScheduledShare(schedule, 6), 1);
  EXPECT_EQ(ScheduledShare(schedule, 7), 0.5);
  EXPECT_EQ(ScheduledShare(schedule, 9), 0.5);
  EXPECT_EQ(ScheduledShare(schedule, 10), 0.25);
}

// --------------------------------------------------------------- moments ----

TEST(LocalOptimizer, AnotherNameForgetsTheMomentsAndOtherSettingsDoNot) {
  LocalOptimizer optimizer(Spec("momentum"));
  std::vector<float> w = {0};
  const std::vector<float> g = {1};
  optimizer.Step(1, 0, g, absl::MakeSpan(w));  // v = 1
  OptimizerSpec other = Spec("momentum");
  other.momentum = 0.5;
  optimizer.SetSpec(other);
  optimizer.Step(1, 1, g, absl::MakeSpan(w));  // v = 1.5
  EXPECT_FLOAT_EQ(w[0], -2.5F);
  optimizer.SetSpec(Spec("sgd"));
  optimizer.SetSpec(other);
  optimizer.Step(1, 2, g, absl::MakeSpan(w));  // v = 1
  EXPECT_FLOAT_EQ(w[0], -3.5F);
}

TEST(LocalOptimizer, MomentsStayFromRoundToRoundUnlessTheyAreToBeFresh) {
  for (const bool fresh : {false, true}) {
    OptimizerSpec spec = Spec("momentum");
    spec.momentum = 0.5;
    spec.fresh_each_round = fresh;
    LocalOptimizer optimizer(spec);
    std::vector<float> w = {0};
    const std::vector<float> g = {1};
    optimizer.BeginRound();
    optimizer.Step(1, 0, g, absl::MakeSpan(w));
    optimizer.BeginRound();
    optimizer.Step(1, 1, g, absl::MakeSpan(w));
    EXPECT_FLOAT_EQ(w[0], fresh ? -2.0F : -2.5F);
  }
}

// -------------------------------------------------------- the algorithms ----

// A node alone, whose gradient is its parameters: f(w) = |w|^2/2.
class Alone {
 public:
  Alone(const std::string& algorithm, const KnobValues& knobs,
        const OptimizerSpec& optimizer)
      : info_(**BuiltInCatalogue().Find(algorithm)) {
    plan_.self = NodeId("self");
    plan_.knobs = *Knobs::Resolve(info_.knobs, knobs);
    plan_.optimizer = optimizer;
    Make();
    algorithm_->Handle(Started{0}, actions_);
  }

  void Make() {
    AlgorithmContext context;
    context.plan = plan_;
    context.vectors = NodeVectors{absl::MakeSpan(w_), absl::MakeSpan(g_), {}};
    context.batches_per_pass = 3;
    algorithm_ = CreateAlgorithm(info_, std::move(context), decisions_);
  }

  // An iteration.
  void Round() {
    const int64_t before = algorithm_->step();
    algorithm_->Handle(StepBegins{}, actions_);
    while (algorithm_->step() == before) {
      g_.assign(w_.begin(), w_.end());
      algorithm_->Handle(GradientReady{}, actions_);
    }
  }

  Algorithm& algorithm() { return *algorithm_; }
  std::vector<float>& w() { return w_; }

 private:
  const AlgorithmInfo& info_;
  NodePlan plan_;
  SeededDecisions decisions_{1};
  RecordedActions actions_;
  std::vector<float> w_ = {1, -2};
  std::vector<float> g_ = {0, 0};
  std::unique_ptr<Algorithm> algorithm_;
};

KnobValues LocalKnobs(const std::string& algorithm) {
  if (algorithm == "local") return {{"eta", 0.1}};
  if (algorithm == "dfedavgm") return {{"eta", 0.1}, {"K", int64_t{3}}};
  return {{"eta", 0.1}, {"form", std::string("local")}};
}

std::vector<std::string> TakersOfOptimizers() {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    if (info.own_step.empty()) names.push_back(info.name);
  }
  return names;
}

TEST(Optimizers, AreTakenByTheseAlgorithms) {
  EXPECT_THAT(TakersOfOptimizers(),
              testing::ElementsAre("decefl", "dfedavgm", "fedavg", "fedavg+",
                                   "local", "swarm"));
}

// Three local steps of w <- w - 0.1 w, or of what the optimiser makes of it.
TEST(Optimizers, TakeThePlaceOfTheLocalSteps) {
  for (const std::string& name : TakersOfOptimizers()) {
    SCOPED_TRACE(name);
    Alone sgd(name, LocalKnobs(name), Spec("sgd"));
    Alone momentum(name, LocalKnobs(name), Spec("momentum"));
    for (Alone* node : {&sgd, &momentum}) {
      while (node->algorithm().gradients() < 3) node->Round();
    }
    EXPECT_NEAR(sgd.w()[0], 0.9 * 0.9 * 0.9, 1e-6);
    // v: 1, 0.9 + 0.9, 0.9 * 1.8 + 0.72
    EXPECT_NEAR(momentum.w()[0], 1 - 0.1 - 0.18 - 0.234, 1e-6);
    EXPECT_NEAR(momentum.algorithm().Gauges()["step_size"], 0.1, 1e-12);
  }
}

TEST(Optimizers, SchedulesGoByTheStepsOfTheModel) {
  for (const std::string& name : TakersOfOptimizers()) {
    SCOPED_TRACE(name);
    OptimizerSpec spec = Spec("sgd");
    spec.schedule.kind = "step";
    spec.schedule.every = 2;
    spec.schedule.factor = 0.5;
    Alone node(name, LocalKnobs(name), spec);
    while (node.algorithm().gradients() < 3) node.Round();
    EXPECT_NEAR(node.w()[0], 0.9 * 0.9 * 0.95, 1e-6);
    EXPECT_NEAR(node.algorithm().Gauges()["step_size"], 0.05, 1e-12);
  }
}

TEST(Optimizers, GoOnToTheLastBitFromAnExportedState) {
  for (const std::string& name : TakersOfOptimizers()) {
    for (const char* optimizer : {"sgd", "momentum", "adam", "adamw"}) {
      SCOPED_TRACE(absl::StrCat(name, " ", optimizer));
      Alone untouched(name, LocalKnobs(name), Spec(optimizer));
      Alone moved(name, LocalKnobs(name), Spec(optimizer));
      for (Alone* node : {&untouched, &moved}) {
        for (int round = 0; round < 4; ++round) node->Round();
      }
      const auto state =
          ParseState(SerializeState(moved.algorithm().ExportState()));
      ASSERT_TRUE(state.ok()) << state.status();
      moved.Make();
      RecordedActions ignored;
      const absl::Status imported =
          moved.algorithm().ImportState(*state, ignored);
      ASSERT_TRUE(imported.ok()) << imported;
      for (Alone* node : {&untouched, &moved}) {
        for (int round = 0; round < 4; ++round) node->Round();
      }
      EXPECT_EQ(moved.w(), untouched.w());
      EXPECT_EQ(moved.algorithm().ExportState(),
                untouched.algorithm().ExportState());
    }
  }
}

// Of another optimiser's state nothing can be made.
TEST(Optimizers, AStateOfAnotherIsRefused) {
  Alone adam("dfedavgm", LocalKnobs("dfedavgm"), Spec("adam"));
  adam.Round();
  Alone momentum("dfedavgm", LocalKnobs("dfedavgm"), Spec("momentum"));
  RecordedActions ignored;
  EXPECT_FALSE(momentum.algorithm()
                   .ImportState(adam.algorithm().ExportState(), ignored)
                   .ok());
}

// ----------------------------------------------------------------- plans ----

RunPlan PlanOf(const std::string& algorithm) {
  RunPlan plan;
  for (const char* name : {"anna", "bert", "carl"}) {
    plan.members.push_back(MemberSpec{.node = NodeId(name)});
  }
  const AlgorithmInfo& info = **BuiltInCatalogue().Find(algorithm);
  plan.algorithm.name = algorithm;
  plan.topology.kind = info.star_graph ? "star" : "complete";
  plan.codec.format.coordinates = Coordinates::kDense;
  return plan;
}

TEST(OptimizerPlans, TheOthersRefuseOneWithTheirReason) {
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    SCOPED_TRACE(info.name);
    RunPlan plan = PlanOf(info.name);
    ASSERT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
    plan.optimizer.name = "adam";
    if (info.optimizer_needs_local_form) {
      plan.algorithm.knobs["form"] = std::string("gradient");
      EXPECT_THAT(std::string(ValidatePlan(plan).message()),
                  AllOf(HasSubstr("optimizer.name: \"adam\""),
                        HasSubstr("with form: local there are local steps")));
      plan.algorithm.knobs["form"] = std::string("local");
    }
    const absl::Status status = ValidatePlan(plan);
    if (info.own_step.empty()) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("optimizer.name: \"adam\""),
                        HasSubstr(info.own_step)));
    }
  }
}

struct Refused {
  std::function<void(RunPlan&)> spoil;
  std::string why;
};

TEST(OptimizerPlans, WhatIsWrongOrNotLookedAtIsRefused) {
  const std::vector<Refused> cases = {
      {[](RunPlan& p) { p.optimizer.name = "adma"; },
       "optimizer.name: \"adma\" is unknown; did you mean \"adam\"?"},
      {[](RunPlan& p) { p.optimizer.name = ""; }, "optimizer.name: missing"},
      {[](RunPlan& p) { p.optimizer.momentum = 0.5; },
       "optimizer.momentum: 0.5 is not allowed; allowed: nothing, since only "
       "name: momentum looks at it"},
      {[](RunPlan& p) { p.optimizer.beta2 = 1; },
       "optimizer.beta2: 1 is not allowed; allowed: [0, 1)"},
      {[](RunPlan& p) { p.optimizer.epsilon = 0; }, "optimizer.epsilon: 0"},
      {[](RunPlan& p) { p.optimizer.weight_decay = -1; },
       "optimizer.weight_decay: -1"},
      {[](RunPlan& p) { p.optimizer.clip_norm = std::nan(""); },
       "optimizer.clip_norm: nan"},
      {[](RunPlan& p) { p.optimizer.schedule.kind = "cosin"; },
       "did you mean \"cosine\"?"},
      {[](RunPlan& p) { p.optimizer.schedule.kind = "cosine"; },
       "optimizer.schedule.length: 0 is not allowed; allowed: number >= 1"},
      {[](RunPlan& p) { p.optimizer.schedule.every = 7; },
       "optimizer.schedule.every: 7 is not allowed; allowed: nothing, since "
       "only kind: step looks at it"},
      {[](RunPlan& p) {
         p.optimizer = Spec("sgd");
         p.optimizer.fresh_each_round = true;
       },
       "optimizer.fresh_each_round: on is not allowed; allowed: off, since sgd "
       "has no moments"},
      {[](RunPlan& p) { p.algorithm.knobs["theta"] = 0.5; },
       "algorithm.knobs.theta: optimizer.name is adam, which takes its place"},
      {[](RunPlan& p) { p.nodes[NodeId("bert")].knobs["theta"] = 0.5; },
       "nodes.bert.knobs.theta: optimizer.name is adam"},
  };
  for (const Refused& one : cases) {
    RunPlan plan = PlanOf("dfedavgm");
    plan.optimizer = Spec("adam");
    plan.optimizer.weight_decay = 0.01;
    ASSERT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
    one.spoil(plan);
    EXPECT_THAT(std::string(ValidatePlan(plan).message()), HasSubstr(one.why));
  }
}

}  // namespace
}  // namespace dfl::core
