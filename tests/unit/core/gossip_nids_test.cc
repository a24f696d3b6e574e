// gossip-nids: what travels, what both ends of an exchange apply, and that sums
// are kept whatever the links do.
#include "daemon/core/algorithms/gossip_nids.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/rng.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/support/test_network.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kLength = 300;  // two blocks

const GossipNids& GossipOf(Machine& machine) {
  return dynamic_cast<const GossipNids&>(*machine);
}

// K = 1, so that every step offers.
class Node : public Machine {
 public:
  explicit Node(KnobValues knobs = {})
      : Machine("gossip-nids", WithDefaults(std::move(knobs)), Three(),
                kLength) {
    for (const Neighbour& n : Three()) Handle(PeerUp{n.node});
  }

 private:
  static KnobValues WithDefaults(KnobValues knobs) {
    knobs.insert({{"K", int64_t{1}}, {"alpha", 0.1}});
    return knobs;
  }
};

std::string Step(Machine& machine, float gradient) {
  machine.Handle(StepBegins{});
  std::fill(machine.gradient.begin(), machine.gradient.end(), gradient);
  return machine.Handle(GradientReady{1, 1});
}

PushArrived Offered(const char* from, const Push& push) {
  PushArrived arrived;
  arrived.from = Id(from);
  arrived.model = Model({}, push.round, {2});
  arrived.model.offer = push.offer;
  return arrived;
}

MassArrived Answered(const char* from, const Give& give) {
  MassArrived arrived;
  arrived.from = Id(from);
  arrived.sequence = give.sequence;
  arrived.model = Model({}, give.round, give.buffers);
  arrived.model.answer = give.answer;
  return arrived;
}

// The offer of a node that has gone one step, with its model.
struct Offering {
  Node machine;
  Push push;

  explicit Offering(float gradient = 1) {
    EXPECT_EQ(Step(machine, gradient), "push done");
    push = machine.Last<Push>();
  }
};

TEST(GossipNids, AloneItIsPlainSgd) {
  Machine machine("gossip-nids", {{"alpha", 0.5}}, {}, 2);
  machine.gradient = {1, 2};
  for (int k = 0; k < 100; ++k) {
    machine.Handle(StepBegins{});
    EXPECT_EQ(machine.Handle(GradientReady{1, 1}), "done");
  }
  EXPECT_FLOAT_EQ(machine.parameters[0], -50);
  EXPECT_FLOAT_EQ(machine.parameters[1], -100);
  EXPECT_EQ(machine->gradients(), 100);
  EXPECT_EQ(machine->rounds(), 5);  // K = 20
}

TEST(GossipNids, OffersAfterTheDrawnSteps) {
  Node machine(KnobValues{{"K", int64_t{3}}});
  EXPECT_EQ(Step(machine, 1), "done");
  EXPECT_EQ(Step(machine, 1), "done");
  EXPECT_EQ(Step(machine, 1), "push done");
  const Push push = machine.Last<Push>();
  EXPECT_EQ(push.peers, std::vector<NodeId>{Id("a")});
  ASSERT_NE(push.offer, nullptr);
  EXPECT_EQ(push.offer->number, 1U);
  EXPECT_EQ(push.offer->n, kLength);
}

TEST(GossipNids, AStepWithoutAGradientMovesNothingAndCountsNot) {
  Node machine;
  GradientReady none;
  none.none = true;
  machine.Handle(StepBegins{});
  EXPECT_EQ(machine.Handle(none), "done");
  EXPECT_EQ(machine.parameters, std::vector<float>(kLength, 0.0F));
  EXPECT_EQ(machine->gradients(), 0);
}

TEST(GossipNids, NothingIsOfferedBeforeAnythingHasMoved) {
  Node machine;
  EXPECT_EQ(Step(machine, 0), "done");
  EXPECT_EQ(Step(machine, 1), "push done");
  EXPECT_EQ(machine.Last<Push>().offer->number, 1U);
}

// The model that both agree on, and D with opposite signs.
TEST(GossipNids, BothEndsApplyTheSameDifference) {
  Offering i;
  Node j(KnobValues{{"c", 0.3}, {"c0", 0.3}});
  Step(j, -1);
  j.Handle(Offered("a", i.push));
  const std::vector<float> before_i = i.machine.parameters;
  const std::vector<float> before_j = j.parameters;
  EXPECT_THAT(j.Handle(StepBegins{}), HasSubstr("give gradient"));
  const Give give = j.Last<Give>();
  EXPECT_EQ(give.to, Id("a"));
  EXPECT_EQ(give.sequence, 1U);
  ASSERT_NE(give.answer, nullptr);
  EXPECT_EQ(give.answer->gamma, 0.5);
  EXPECT_DOUBLE_EQ(give.answer->beta, 0.3 * 0.5 / (0.1 * 1));

  i.machine.Handle(Answered("a", give));
  EXPECT_EQ(i.machine.parameters, before_i);  // not away from a boundary
  i.machine.Handle(StepBegins{});
  for (int64_t l = 0; l < kLength; ++l) {
    const float d = (*give.mass)[l];
    EXPECT_FLOAT_EQ(j.parameters[l], before_j[l] + 0.5F * d);
    EXPECT_FLOAT_EQ(i.machine.parameters[l], before_i[l] - 0.5F * d);
    EXPECT_EQ(GossipOf(j).control()[l], -GossipOf(i.machine).control()[l]);
    EXPECT_NEAR(d, before_i[l] - before_j[l], 0.5);
  }
  EXPECT_NE(GossipOf(j).control()[0], 0);
  EXPECT_EQ(j.Gauge("exchanges"), 1);
  EXPECT_EQ(i.machine.Gauge("exchanges"), 1);
  EXPECT_TRUE(std::equal(GossipOf(j).scales().begin(),
                         GossipOf(j).scales().end(),
                         GossipOf(i.machine).scales().begin()));
}

TEST(GossipNids, AnAnswerCountsOnceHoweverOftenItComes) {
  Offering i;
  Node j;
  Step(j, -1);
  j.Handle(Offered("a", i.push));
  j.Handle(StepBegins{});
  const Give give = j.Last<Give>();
  i.machine.Handle(Answered("a", give));
  i.machine.Handle(Answered("a", give));
  i.machine.Handle(StepBegins{});
  const std::vector<float> after = i.machine.parameters;
  i.machine.Handle(GradientReady{0, 0, true});
  i.machine.Handle(Answered("a", give));
  i.machine.Handle(StepBegins{});
  EXPECT_EQ(i.machine.parameters, after);
  EXPECT_EQ(i.machine.Gauge("mass_repeats"), 2);
  EXPECT_EQ(i.machine.Gauge("exchanges"), 1);
}

TEST(GossipNids, WhatAnswersNoOfferIsIgnored) {
  Offering i;
  Node j;
  Step(j, -1);
  j.Handle(Offered("a", i.push));
  j.Handle(StepBegins{});
  const Give give = j.Last<Give>();
  const std::vector<float> before = i.machine.parameters;
  i.machine.Handle(Answered("b", give));  // b was offered nothing
  MassArrived other = Answered("a", give);
  other.sequence = 2;  // nor a second one to a
  i.machine.Handle(std::move(other));
  MassArrived none = Answered("a", give);
  none.model.answer = nullptr;
  i.machine.Handle(std::move(none));
  i.machine.Handle(StepBegins{});
  EXPECT_EQ(i.machine.parameters, before);
  EXPECT_EQ(i.machine.Gauge("exchanges"), 0);
}

TEST(GossipNids, WhileAnAnswerIsOutOtherOffersAreDropped) {
  Offering i;
  Node j;
  Step(j, -1);
  j.Handle(Offered("a", i.push));
  EXPECT_THAT(j.Handle(StepBegins{}), HasSubstr("give"));
  const Give give = j.Last<Give>();
  j.Handle(GradientReady{0, 0, true});
  // The next one comes before the first answer is known to be taken.
  Step(i.machine, 1);
  const Push second = i.machine.Last<Push>();
  EXPECT_EQ(second.offer->number, 2U);
  j.Handle(Offered("a", second));
  EXPECT_THAT(j.Handle(StepBegins{}), Not(HasSubstr("give")));
  j.Handle(GradientReady{0, 0, true});
  j.Handle(Delivered{Id("a"), 1, i.machine->MassTaken(Id("a"))});
  // An old offer is not answered again, the newer one is.
  j.Handle(Offered("a", i.push));
  EXPECT_THAT(j.Handle(StepBegins{}), Not(HasSubstr("give")));
  j.Handle(GradientReady{0, 0, true});
  j.Handle(Offered("a", second));
  EXPECT_THAT(j.Handle(StepBegins{}), HasSubstr("give"));
  EXPECT_EQ(j.Last<Give>().sequence, 2U);
}

// docs/papers 49.
TEST(GossipNids, AnswersThatWaitAreAppliedTogether) {
  Offering i;
  Step(i.machine, 1);
  const Push second = i.machine.Last<Push>();
  const std::vector<float> before = i.machine.parameters;
  std::vector<float> sum(kLength, 0.0F);
  for (const Push& push : {i.push, second}) {
    Node j;
    Step(j, -1);
    j.Handle(Offered("a", push));
    j.Handle(StepBegins{});
    const Give give = j.Last<Give>();
    for (int64_t l = 0; l < kLength; ++l) sum[l] += 0.5F * (*give.mass)[l];
    i.machine.Handle(Answered("a", give));
  }
  FlatVector unsettled(kLength, 0.0F);
  GossipOf(i.machine).ledger().AddUnsettled(absl::MakeSpan(unsettled));
  EXPECT_NE(unsettled[0], 0);
  i.machine.Handle(StepBegins{});
  EXPECT_EQ(i.machine.Gauge("exchanges"), 2);
  for (int64_t l = 0; l < kLength; ++l) {
    EXPECT_FLOAT_EQ(i.machine.parameters[l], before[l] - sum[l]);
    EXPECT_EQ(GossipOf(i.machine).control()[l], unsettled[l]);
  }
}

TEST(GossipNids, ANewEpochEmptiesTheLedgerAndKeepsTheScales) {
  Offering i;
  Node j(KnobValues{{"c", 0.3}, {"c0", 0.3}});
  Step(j, -1);
  j.Handle(Offered("a", i.push));
  j.Handle(StepBegins{});
  const std::vector<BlockScale> scales(GossipOf(j).scales().begin(),
                                       GossipOf(j).scales().end());
  EXPECT_TRUE(GossipOf(j).ledger().Owes(Id("a")));
  j.Handle(EpochBegins{});
  EXPECT_FALSE(GossipOf(j).ledger().Owes(Id("a")));
  EXPECT_EQ(GossipOf(j).control()[0], 0);
  EXPECT_TRUE(
      std::equal(scales.begin(), scales.end(), GossipOf(j).scales().begin()));
  EXPECT_EQ(GossipOf(j).exchanges(), 1);
  EXPECT_EQ(j->BooksWith(Id("a")), EdgeBooks());
}

// docs/papers 48.
TEST(GossipNids, AJoinerTakesScalesWithItsFirstExchange) {
  Offering i;
  Node joiner;
  joiner.Handle(Started{1000, Pace{1000, 77}});
  EXPECT_EQ(GossipOf(joiner).exchanges(), 2 * 77);
  joiner.Handle(Offered("a", i.push));
  joiner.Handle(StepBegins{});
  for (const BlockScale& scale : GossipOf(joiner).scales()) {
    EXPECT_GT(scale.e, 0);
  }
}

TEST(GossipNids, BuffersMixOnceAndStayBetween) {
  Offering i;
  Node j;
  j.buffers = {4};
  Step(j, -1);
  j.Handle(Offered("a", i.push));  // with 2
  j.Handle(StepBegins{});
  EXPECT_EQ(j.buffers[0], 3);
  EXPECT_EQ(j.Last<Give>().buffers, std::vector<float>{4});
  i.machine.buffers = {2};
  i.machine.Handle(Answered("a", j.Last<Give>()));
  i.machine.Handle(StepBegins{});
  EXPECT_EQ(i.machine.buffers[0], 3);
}

TEST(GossipNids, TheLastStepsExchangeOften) {
  KnobValues knobs = {{"K", int64_t{100}}, {"settle", int64_t{3}}};
  Machine machine("gossip-nids", knobs, Three(), kLength);
  for (const Neighbour& n : Three()) machine.Handle(PeerUp{n.node});
  NodePlan plan =
      machine.Plan({{"K", int64_t{4}}, {"settle", int64_t{3}}}, Three());
  auto facts = std::make_shared<GossipFacts>();
  facts->last_step = 10;
  plan.facts = facts;
  machine.Handle(PlanChanged{plan});
  std::string offers;
  for (int k = 0; k < 10; ++k) {
    absl::StrAppend(&offers, Step(machine, 1) == "push done" ? "x" : ".");
  }
  EXPECT_EQ(offers, "...x...xxx");
}

// ------------------------------------------------------------------ plans ----

RunPlan PlanWith(KnobValues knobs, const std::string& topology = "complete") {
  RunPlan plan;
  plan.run_id = "test";
  for (int i = 0; i < 8; ++i) {
    plan.members.push_back(MemberSpec{.node = NodeId(absl::StrCat("n", i))});
  }
  plan.algorithm.name = "gossip-nids";
  plan.algorithm.knobs = std::move(knobs);
  plan.topology.kind = topology;
  plan.codec.format.coordinates = Coordinates::kDense;
  return plan;
}

TEST(GossipNids, APlanWithTooLargeAGainIsRefusedWithTheBound) {
  EXPECT_TRUE(DeriveNodePlans(PlanWith({{"c", 0.39}})).ok());
  for (const auto& [knobs, bound] :
       std::vector<std::pair<KnobValues, std::string>>{
           {{{"c", 0.4}}, "0.3967"},
           {{{"c", 0.35}, {"M", int64_t{6}}}, "0.3418"},
           {{{"c", 0.31}, {"w", 8.0}}, "0.3000"}}) {
    const absl::Status status = DeriveNodePlans(PlanWith(knobs)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("algorithm.knobs.c"), HasSubstr(bound)));
  }
  // c0 may be above it.
  EXPECT_TRUE(DeriveNodePlans(PlanWith({{"c", 0.3}, {"c0", 1.0}})).ok());
}

// --------------------------------------------------------- whole networks ----

// Offers, answers and acknowledgements are lost or late; answers are repeated.
class LossyGossip : public TestNetwork {
 public:
  LossyGossip(uint64_t seed, double loss, const KnobValues& knobs,
              int64_t length, bool quadratic = true)
      : TestNetwork(Names()), rng_(seed), loss_(loss), quadratic_(quadratic) {
    auto plans = DeriveNodePlans(PlanWith(knobs));
    EXPECT_TRUE(plans.ok()) << plans.status();
    for (size_t i = 0; i < size(); ++i) {
      std::vector<float> target;
      for (int64_t l = 0; l < length; ++l) {
        target.push_back(static_cast<float>(4 * rng_.Uniform() - 2));
      }
      targets_.push_back(target);
      (*plans)[i].algorithm = *BuiltInCatalogue().Find("gossip-nids");
      Add(i, {.plan = (*plans)[i],
              .decisions =
                  std::make_unique<SeededDecisions>(DeriveSeed(seed, "n", i)),
              .parameters = std::vector<float>(length)});
      Handle(i, Started{0});
    }
    for (size_t i = 0; i < size(); ++i) {
      LinkUp(i);
      Begin(i);
    }
  }

  const GossipNids& gossip(size_t i) const {
    return dynamic_cast<const GossipNids&>(algorithm(i));
  }

  // The largest entry of sum D, with what is on its way, over the largest D.
  double Defect() const {
    const size_t n = parameters(0).size();
    std::vector<double> sum(n, 0.0);
    double largest = 1e-9;
    for (size_t i = 0; i < size(); ++i) {
      FlatVector unsettled(n, 0.0F);
      gossip(i).ledger().AddUnsettled(absl::MakeSpan(unsettled));
      for (size_t l = 0; l < n; ++l) {
        sum[l] += static_cast<double>(gossip(i).control()[l]) + unsettled[l];
        largest = std::max(
            largest, std::fabs(static_cast<double>(gossip(i).control()[l])));
      }
      // Taken, and not known to be: it is there twice.
      for (const auto& [to, parcel] : node(i).parcels) {
        if (!parcel.taken) continue;
        for (size_t l = 0; l < n; ++l) {
          sum[l] -= parcel.give.answer->beta * (*parcel.give.mass)[l];
        }
      }
    }
    double worst = 0;
    for (const double s : sum) worst = std::max(worst, std::fabs(s));
    return worst / largest;
  }

  // Of every node's model to the minimiser, the mean of the targets.
  double WorstError() const {
    double worst = 0;
    for (size_t l = 0; l < parameters(0).size(); ++l) {
      double mean = 0;
      for (const auto& target : targets_) {
        mean += target[l] / static_cast<double>(size());
      }
      for (size_t i = 0; i < size(); ++i) {
        worst = std::max(worst, std::fabs(parameters(i)[l] - mean));
      }
    }
    return worst;
  }

 private:
  static std::vector<NodeId> Names() {
    std::vector<NodeId> names;
    for (int i = 0; i < 8; ++i) names.emplace_back(absl::StrCat("n", i));
    return names;
  }
  std::optional<double> Latency(size_t, size_t, const Event&) override {
    if (rng_.Bernoulli(loss_)) return std::nullopt;
    return 3 * rng_.Uniform();
  }
  double ResendAfter() const override { return 4; }
  std::optional<double> ComputeTime(size_t i) override {
    return (i == 0 ? 5 : 1) * (0.5 + rng_.Uniform());
  }
  GradientReady Gradient(size_t i, absl::Span<const float> model,
                         const std::vector<int64_t>& /*batch*/) override {
    for (size_t l = 0; l < model.size(); ++l) {
      node(i).gradient[l] = quadratic_ ? model[l] - targets_[i][l] : 0;
    }
    return {1, 1};
  }
  void OnBoundary(size_t i) override { Begin(i); }

  Rng rng_;
  const double loss_;
  const bool quadratic_;
  std::vector<std::vector<float>> targets_;
};

class Gossip : public testing::TestWithParam<double> {};

// Every node ends at the exact optimum, though their data differ, one of them
// is five times slower, and messages are late and lost.
TEST_P(Gossip, ConvergesExactlyAndKeepsItsSums) {
  for (const uint64_t seed : {1, 2}) {
    SCOPED_TRACE(seed);
    LossyGossip network(
        seed, GetParam(),
        {{"alpha", 0.2}, {"K", int64_t{5}}, {"c", 0.25}, {"c0", 0.25}}, 70);
    for (const double seconds : {30.0, 300.0, 2500.0}) {
      network.Run(seconds);
      EXPECT_LE(network.Defect(), 1e-4) << "after " << seconds << " s more";
    }
    EXPECT_LE(network.WorstError(), 2e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Loss, Gossip, testing::Values(0.0, 0.3),
                         [](const auto& info) {
                           return info.param == 0 ? "None" : "Third";
                         });

TEST(GossipNids, EqualModelsWithoutGradientsStayAsTheyAre) {
  LossyGossip network(4, 0.1, {{"K", int64_t{1}}}, 300, /*quadratic=*/false);
  network.Run(100);
  for (size_t i = 0; i < network.size(); ++i) {
    EXPECT_EQ(network.parameters(i), std::vector<float>(300, 0.0F));
  }
}

}  // namespace
}  // namespace dfl::core
