// The state of every algorithm in the catalogue as one value: what goes on from
// it goes on to the last bit, and what is none changes nothing.
#include "daemon/core/algorithm/algorithm_state.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/vector/step_codes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/unit/core/four_nodes.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kClockTimer = 3;  // of async-dsgd
// The node whose object is replaced: it gives late, and is given late.
constexpr size_t kReplaced = FourNodes::kSlowGiver;
// Between two exchanges of an algorithm that has a period of 2 or 3 steps.
constexpr int64_t kExportedAt = 7;
constexpr int64_t kEndsAt = 20;

const AlgorithmInfo& InfoOf(const std::string& name) {
  return **BuiltInCatalogue().Find(name);
}

// A network of which one node's state is worth exporting.
std::unique_ptr<FourNodes> RunOf(const std::string& name) {
  auto network = std::make_unique<FourNodes>(InfoOf(name));
  network->RunToStep(kExportedAt);
  network->Run(0.35);  // late gradients and one late parcel come
  return network;
}

bool IsVector(const AlgorithmState& state, const std::string& field) {
  const auto it = state.fields.find(field);
  return it != state.fields.end() && !std::get<FlatVector>(it->second).empty();
}

// ------------------------------------------------ every algorithm's state ----

class StateOf : public testing::TestWithParam<std::string> {};

TEST_P(StateOf, GoesOnToTheLastBitInAnotherObject) {
  auto untouched = RunOf(GetParam());
  auto network = RunOf(GetParam());
  Algorithm& old = network->algorithm(kReplaced);
  ASSERT_EQ(old.step(), kExportedAt);

  const AlgorithmState state = old.ExportState();
  EXPECT_EQ(state.algorithm, GetParam());
  const auto parsed = ParseState(SerializeState(state));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, state);

  auto fresh = network->MakeAlgorithm(kReplaced);
  RecordedActions not_needed;  // the network still has all of it under way
  const absl::Status imported = fresh->ImportState(*parsed, not_needed);
  ASSERT_TRUE(imported.ok()) << imported;
  EXPECT_EQ(fresh->ExportState(), state);
  EXPECT_EQ(fresh->step(), old.step());
  EXPECT_EQ(fresh->gradients(), old.gradients());
  EXPECT_EQ(fresh->Gauges(), old.Gauges());
  for (size_t i = 0; i < FourNodes::kNodes; ++i) {
    const NodeId peer = network->name(i);
    EXPECT_EQ(fresh->MassTaken(peer), old.MassTaken(peer));
  }

  network->Replace(kReplaced, std::move(fresh));
  const std::vector<float> before = network->parameters(kReplaced);
  for (auto* run : {untouched.get(), network.get()}) run->RunToStep(kEndsAt);
  EXPECT_NE(network->parameters(kReplaced), before);
  for (size_t i = 0; i < FourNodes::kNodes; ++i) {
    EXPECT_EQ(network->parameters(i), untouched->parameters(i)) << i;
    EXPECT_EQ(network->node(i).buffers, untouched->node(i).buffers) << i;
    EXPECT_EQ(network->algorithm(i).Gauges(), untouched->algorithm(i).Gauges());
    EXPECT_EQ(network->algorithm(i).ExportState(),
              untouched->algorithm(i).ExportState());
  }
}

// What is in no field's type.
StateValue AnotherType(const StateValue& value) {
  if (std::holds_alternative<int64_t>(value)) return std::string("one");
  return int64_t{1};
}

TEST_P(StateOf, IsRefusedWhenAFieldIsAmiss) {
  auto network = RunOf(GetParam());
  const AlgorithmState good = network->algorithm(kReplaced).ExportState();
  auto target = network->MakeAlgorithm(kReplaced);
  RecordedActions actions;
  target->Handle(Started{3}, actions);
  const AlgorithmState before = target->ExportState();
  const auto refused = [&](const AlgorithmState& state,
                           const std::string& field) {
    actions.clear();
    const absl::Status status = target->ImportState(state, actions);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(field), HasSubstr("allowed: ")));
    EXPECT_TRUE(actions.empty());
    EXPECT_EQ(target->ExportState(), before) << field;
  };
  for (const auto& [field, value] : good.fields) {
    AlgorithmState bad = good;
    bad.fields.erase(field);
    refused(bad, field);
    bad = good;
    bad.fields[field] = AnotherType(value);
    refused(bad, field);
    if (std::holds_alternative<double>(value)) {
      bad.fields[field] = std::numeric_limits<double>::infinity();
      refused(bad, field);
    } else if (const auto* vector = std::get_if<FlatVector>(&value)) {
      FlatVector longer = *vector;
      longer.push_back(1);
      bad.fields[field] = longer;
      refused(bad, field);
      if (vector->empty()) continue;
      FlatVector odd = *vector;
      odd.back() = std::numeric_limits<float>::quiet_NaN();
      bad.fields[field] = odd;
      refused(bad, field);
    }
  }
  AlgorithmState bad = good;
  bad.fields["stepp"] = int64_t{1};
  refused(bad, "stepp");
  bad = good;
  bad.fields["step"] = int64_t{-1};
  refused(bad, "step");
  bad = good;
  bad.version = 2;
  refused(bad, "version 2");
  bad = good;
  bad.algorithm = "sgd";
  refused(bad, "\"sgd\"");
  EXPECT_TRUE(target->ImportState(good, actions).ok());
}

class MassStateOf : public testing::TestWithParam<std::string> {};

// Mass that is given and not taken is in the state, and is given again.
TEST_P(MassStateOf, HoldsTheMassThatIsOnItsWay) {
  auto network = RunOf(GetParam());
  Algorithm& giver = network->algorithm(kReplaced);
  const AlgorithmState state = giver.ExportState();
  const NodeId taker = network->name(FourNodes::kSlowTaker);
  EXPECT_TRUE(
      IsVector(state, absl::StrCat("giving/", taker.name(), "/out/mass")));

  auto fresh = network->MakeAlgorithm(kReplaced);
  RecordedActions actions;
  ASSERT_TRUE(fresh->ImportState(state, actions).ok());
  ASSERT_EQ(actions.size(), 1U);
  const auto& give = std::get<Give>(actions[0]);
  EXPECT_EQ(give.to, taker);
  EXPECT_EQ(*give.mass, std::get<FlatVector>(state.fields.at(absl::StrCat(
                            "giving/", taker.name(), "/out/mass"))));
  // Steps stay steps: nobody knows by the values what an increment is.
  const std::string bits = absl::StrCat("giving/", taker.name(), "/out/bits");
  EXPECT_EQ(give.steps != nullptr, GetParam() == "anq-nids");
  if (give.steps != nullptr) {
    EXPECT_EQ(give.steps->bits, 8);
    EXPECT_EQ(give.steps->values, *give.mass);
    EXPECT_GT(give.steps->steps.at(0), 0);
    AlgorithmState damaged = state;
    damaged.fields[bits] = int64_t{17};
    EXPECT_THAT(std::string(fresh->ImportState(damaged, actions).message()),
                testing::AllOf(testing::HasSubstr(bits),
                               testing::HasSubstr("1 to 16")));
  }
}

std::vector<std::string> Names(bool of_those_that_give_mass) {
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    // Answers to offers: gossip_nids_test.cc.
    const bool gives = info.gives_mass && !info.offers;
    if (gives || !of_those_that_give_mass) names.push_back(info.name);
  }
  return names;
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  return absl::StrReplaceAll(info.param, {{"-", "_"}, {"+", "_plus"}});
}

INSTANTIATE_TEST_SUITE_P(Catalogue, StateOf, testing::ValuesIn(Names(false)),
                         TestName);
INSTANTIATE_TEST_SUITE_P(Catalogue, MassStateOf, testing::ValuesIn(Names(true)),
                         TestName);

// The networks above would miss less than they seem to, were nothing pending.
TEST(StateTest, HoldsAParcelThatIsOutOneThatWaitsAndOneThatWasTaken) {
  for (const char* name : {"beer", "depositum", "k-gt", "nids"}) {
    SCOPED_TRACE(name);
    auto network = RunOf(name);
    const AlgorithmState state = network->algorithm(kReplaced).ExportState();
    const std::string taker = network->name(FourNodes::kSlowTaker).name();
    for (const char* field : {"giving/%s/out/mass", "giving/%s/pending/mass",
                              "taking/%s/held/0/mass"}) {
      EXPECT_TRUE(IsVector(state, absl::StrReplaceAll(field, {{"%s", taker}})))
          << field;
    }
  }
}

// ---------------------------------------------------------- what goes on ----

// What a new object asks for when it is handed the state of `old`.
RecordedActions ResumedFrom(Machine& old, Machine& fresh) {
  RecordedActions actions;
  EXPECT_TRUE(fresh->ImportState(old->ExportState(), actions).ok());
  return actions;
}

TEST(StateTest, DracosTimersBeginAnewAndItsWindowStaysOpen) {
  const KnobValues knobs = {{"window", 5.0}, {"P", 50.0}};
  Machine old("draco", knobs, Three());
  RemoteModel update = Model({1, 2}, 0, {0});
  update.scalars = {0, 0.5};
  EXPECT_EQ(old.Handle(PushArrived{Id("a"), std::move(update)}), "wake");

  Machine fresh("draco", knobs, Three());
  std::vector<std::pair<uint64_t, absl::Duration>> timers;
  for (const Action& action : ResumedFrom(old, fresh)) {
    const auto* wake = std::get_if<WakeAfter>(&action);
    if (wake != nullptr) timers.emplace_back(wake->timer, wake->delay);
  }
  EXPECT_EQ(timers, (std::vector<std::pair<uint64_t, absl::Duration>>{
                        {3, absl::Seconds(50)}, {1, absl::Seconds(5)}}));
  EXPECT_EQ(fresh.Handle(TimerFired{1}), "");
  EXPECT_EQ(fresh.Handle(StepBegins{}), "gradient");
  EXPECT_EQ(fresh.parameters, (std::vector<float>{0.5, 1}));
}

TEST(StateTest, DracoSendsTheUpdateThatWaitedForItsTime) {
  const KnobValues knobs = {{"send", std::string("every")}, {"B", int64_t{1}}};
  Machine old("draco", knobs, Three());
  old.Handle(StepBegins{});
  old.gradient = {100, 0};
  EXPECT_EQ(old.Handle(GradientReady{}), "done");
  Machine fresh("draco", knobs, Three());
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh.Handle(TimerFired{2}), "push wake");
  EXPECT_EQ(fresh.Last<Push>().values[0], -1);
}

TEST(StateTest, DracoLeadsAndCountsOn) {
  const KnobValues knobs = {{"psi", int64_t{1}}};
  Machine old("draco", knobs, Three());
  for (const double age : {100, 0, 0}) {
    RemoteModel update = Model({1, 2}, 0, {0});
    update.scalars = {0, 0.5};
    update.age = absl::Seconds(age);
    old.Handle(PushArrived{Id("a"), std::move(update)});
  }
  EXPECT_EQ(old.Handle(TimerFired{3}), "wake");  // it is the hub
  Machine fresh("draco", knobs, Three());
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh.Gauge("dropped_late"), 1);
  EXPECT_EQ(fresh.Gauge("dropped_full"), 1);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "push gradient");
  EXPECT_TRUE(fresh.Last<Push>().apart);
}

// A unification that waits for the step is the model's values.
TEST(StateTest, DracoUnifiesWithWhatTheOldObjectHadHeard) {
  Machine old("draco", {}, Three());
  RemoteModel theta = Model({3, 4}, 0, {7});
  theta.scalars = {1, 1};
  EXPECT_EQ(old.Handle(PushArrived{Id("a"), std::move(theta)}), "wake");
  Machine fresh("draco", {}, Three());
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh.Gauge("unified"), 1);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "push gradient");
  EXPECT_EQ(fresh.Last<Push>().peers, (std::vector<NodeId>{Id("b"), Id("c")}));
  EXPECT_EQ(fresh.parameters, (std::vector<float>{3, 4}));
  EXPECT_EQ(fresh.buffers, (std::vector<float>{7}));
}

TEST(StateTest, AGradientThatOutlivesItsStepIsAskedForAgain) {
  Machine old("async-dsgd", {}, {});
  EXPECT_EQ(old.Handle(StepBegins{}), "gradient wake");
  EXPECT_EQ(old.Handle(TimerFired{kClockTimer}), "cancel done");  // it is late
  Machine fresh("async-dsgd", {}, {});
  const RecordedActions actions = ResumedFrom(old, fresh);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ComputeGradient>(actions[0]));
  EXPECT_EQ(fresh.Gauge("q"), 0.02);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "wake");  // not twice
}

// One that was late and is ready waits for its round, as old as it is.
TEST(StateTest, AGradientThatIsReadyIsAppliedLater) {
  Machine old("async-dsgd", {}, {});
  for (int round = 0; round < 3; ++round) {
    old.Handle(StepBegins{});
    EXPECT_EQ(old.Handle(TimerFired{kClockTimer}), "cancel done");
    if (round != 1) old.Handle(GradientReady{});  // too late for 0 and 2
  }
  EXPECT_EQ(old.Gauge("staleness"), 1);
  Machine fresh("async-dsgd", {}, {});
  EXPECT_TRUE(ResumedFrom(old, fresh).empty());
  EXPECT_EQ(fresh.Gauge("staleness"), 1);
  fresh.gradient = {100, 0};
  EXPECT_EQ(fresh.Handle(StepBegins{}), "wake");
  EXPECT_EQ(fresh.Handle(TimerFired{kClockTimer}), "cancel done");
  EXPECT_LT(fresh.parameters[0], 0);
  EXPECT_EQ(fresh.Gauge("staleness"), 1);
}

TEST(StateTest, AGradientThatIsNotWantedStaysSo) {
  Machine old("barrier-dsgd", {}, {});
  old.Handle(StepBegins{});
  EXPECT_EQ(old.Handle(TimerFired{kClockTimer}), "cancel done");
  Machine fresh("barrier-dsgd", {}, {});
  EXPECT_EQ(ResumedFrom(old, fresh).size(), 1U);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "wake");
  EXPECT_EQ(fresh.Handle(GradientReady{}), "gradient");
}

// What was heard of other nodes' q is known, and forgotten in its time.
TEST(StateTest, WhatAsyncDsgdHeardAges) {
  Machine old("async-dsgd", {}, Three());
  RemoteModel push = Model({0, 0}, 0, {0});
  push.scalars = {1, 0.5, 99.5};
  EXPECT_EQ(old.Handle(PushArrived{Id("a"), std::move(push)}), "");
  Machine fresh("async-dsgd", {}, Three());
  const double eta = fresh.Gauge("step_size");
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh.Gauge("step_size"), eta / 2);
  fresh.Handle(StepBegins{});
  fresh.Handle(GradientReady{});
  EXPECT_EQ(fresh.Handle(TimerFired{kClockTimer}), "cancel done");
  EXPECT_EQ(fresh.Gauge("step_size"), eta);
}

TEST(StateTest, PameTakesNoOldAnswerForOneOfANewAsk) {
  const KnobValues knobs = {{"kappa", IntRange{1, 1}}};
  Machine old("pame", knobs, Three());
  EXPECT_EQ(old.Handle(StepBegins{}), "ask wake");
  const uint64_t asked = old.Last<Ask>().ask;
  EXPECT_EQ(old.Handle(TimerFired{1}), "missed cancel cancel-ask ask gradient");
  EXPECT_EQ(old.Handle(GradientReady{}), "done");
  const double sigma = old.Gauge("sigma");

  Machine fresh("pame", knobs, Three());
  EXPECT_TRUE(ResumedFrom(old, fresh).empty());
  EXPECT_EQ(fresh.Gauge("sigma"), sigma);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "ask wake");
  EXPECT_GT(fresh.Last<Ask>().ask, asked + 1);
}

TEST(StateTest, KdPdflAdoptsWhatTheOldObjectHadBeenSent) {
  const KnobValues knobs = {{"adopt", true}};
  Machine old("kd-pdfl", knobs, Three());
  EXPECT_EQ(old.Handle(AskArrived{Id("a"), 1}), "answer");
  EXPECT_EQ(old.Handle(PushArrived{Id("a"), Model({5, 6}, 0, {1})}), "");
  Machine fresh("kd-pdfl", knobs, Three());
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "done");
  EXPECT_EQ(fresh.parameters, (std::vector<float>{5, 6}));
}

TEST(StateTest, KdPdflDeliversAndMayBeDeliveredTo) {
  const KnobValues knobs = {{"adopt", true}, {"T_ex", int64_t{3}}};
  Machine old("kd-pdfl", knobs, Three());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(old.Handle(StepBegins{}), "gradient");
    EXPECT_EQ(old.Handle(GradientReady{}), "done");
  }
  EXPECT_EQ(old.Handle(StepBegins{}), "ask wake");
  EXPECT_EQ(old.Last<Ask>().ask, 1U);
  for (const Neighbour& n : Three()) {
    old.Handle(AnswerArrived{n.node, 1, Model({1, 1}, 0, {0})});
  }
  EXPECT_EQ(old.Handle(Predicted{1, {4, {0.5, 0.5}}}), "done");
  EXPECT_EQ(old.Handle(AskArrived{Id("a"), 1}), "answer");

  Machine fresh("kd-pdfl", knobs, Three());
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh->Gauges(), old->Gauges());
  EXPECT_EQ(fresh.Handle(PushArrived{Id("a"), Model({5, 6}, 0, {1})}), "");
  EXPECT_EQ(fresh.Handle(StepBegins{}), "push done");
  EXPECT_EQ(fresh.Last<Push>().peers.size(), 3U);
  EXPECT_EQ(fresh.parameters, (std::vector<float>{5, 6}));
  EXPECT_EQ(fresh.Handle(StepBegins{}), "gradient");
  EXPECT_EQ(fresh.Handle(GradientReady{}), "done");
  EXPECT_EQ(fresh.Handle(StepBegins{}), "ask wake");
  EXPECT_EQ(fresh.Last<Ask>().ask, 2U);
}

TEST(StateTest, AGradientThatIsReadyAndWasNoneIsNoStep) {
  Machine old("async-dsgd", {}, {});
  EXPECT_EQ(old.Handle(StepBegins{}), "gradient wake");
  EXPECT_EQ(old.Handle(TimerFired{kClockTimer}), "cancel done");
  GradientReady none;
  none.none = true;
  EXPECT_EQ(old.Handle(none), "");
  Machine fresh("async-dsgd", {}, {});
  (void)ResumedFrom(old, fresh);
  EXPECT_EQ(fresh.Handle(StepBegins{}), "wake");
  EXPECT_EQ(fresh.Handle(TimerFired{kClockTimer}), "cancel done");
  EXPECT_EQ(fresh->gradients(), 0);
}

// A step size that shrinks with the iterations leaves out those without a
// gradient, also after the state went elsewhere or the algorithm was restarted.
TEST(StateTest, IterationsWithoutAGradientStayCounted) {
  const KnobValues knobs = {{"delta", 1.0}, {"Gamma", 1.0}};
  Machine old("decefl", knobs, {});
  GradientReady none;
  none.none = true;
  for (int k = 0; k < 8; ++k) {
    old.Handle(StepBegins{});
    old.Handle(k < 3 ? GradientReady{0.5, 8} : none);
  }
  EXPECT_EQ(old->idle(), 5);
  Machine fresh("decefl", knobs, {});
  (void)ResumedFrom(old, fresh);
  EXPECT_DOUBLE_EQ(fresh.Gauge("step_size"), 0.25);
  Machine again("decefl", knobs, {});
  again.Handle(Started{8, old->pace(), old->idle()});
  EXPECT_DOUBLE_EQ(again.Gauge("step_size"), 0.25);
  // Of several in one iteration one counts.
  Machine local("dfedavgm", {{"K", int64_t{3}}}, {});
  local.Handle(StepBegins{});
  for (int k = 0; k < 3; ++k) local.Handle(none);
  EXPECT_EQ(local->step(), 1);
  EXPECT_EQ(local->idle(), 1);
}

// ---------------------------------------------------------- next exchange ----

TEST(NextExchangeTest, IsAMultipleOfThePeriodAboveZero) {
  Machine machine("depositum", {{"T0", int64_t{10}}}, Three());
  EXPECT_EQ(machine->NextExchange(0), 10);
  EXPECT_EQ(machine->NextExchange(1), 10);
  EXPECT_EQ(machine->NextExchange(10), 10);
  EXPECT_EQ(machine->NextExchange(11), 20);
  machine.Handle(PlanChanged{machine.Plan({{"T0", int64_t{1}}}, Three())});
  EXPECT_EQ(machine->NextExchange(0), 1);
  EXPECT_EQ(machine->NextExchange(11), 11);
}

TEST(NextExchangeTest, IsTheStepItselfWithoutAPeriod) {
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    if (info.name == "depositum") continue;
    Machine machine(info.name, {}, Three());
    EXPECT_EQ(machine->NextExchange(0), 0) << info.name;
    EXPECT_EQ(machine->NextExchange(13), 13) << info.name;
  }
}

}  // namespace
}  // namespace dfl::core
