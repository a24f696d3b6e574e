// The ledger at both ends of an edge, and what its algorithms do when
// neighbours are late, silent or gone.
#include "daemon/core/mass/mass_ledger.h"

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/sgp.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

MassLedger::Share Share(float a, float b) {
  return std::make_shared<const FlatVector>(FlatVector{a, b});
}

std::vector<Give> Sent(MassLedger& ledger) {
  RecordedActions actions;
  ledger.Send(actions);
  std::vector<Give> gives;
  for (Action& action : actions) gives.push_back(std::get<Give>(action));
  return gives;
}

MassArrived Arrival(const Give& give) {
  MassArrived arrived;
  arrived.from = Id("giver");
  arrived.sequence = give.sequence;
  arrived.model = Model({give.mass->begin(), give.mass->end()}, give.round);
  arrived.model.scalars = give.scalars;
  return arrived;
}

TEST(MassLedgerTest, OneParcelIsOutAndTheRestWaitsInOne) {
  MassLedger ledger;
  ledger.Give(Id("a"), 1, Share(1, 2));
  const std::vector<Give> first = Sent(ledger);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].sequence, 1U);
  EXPECT_EQ(first[0].round, 1);
  EXPECT_TRUE(first[0].scalars.empty());

  ledger.Give(Id("a"), 2, Share(10, 20), 0.5);
  ledger.Give(Id("a"), 3, Share(100, 200), 0.25);
  EXPECT_TRUE(Sent(ledger).empty());
  EXPECT_TRUE(ledger.Owes(Id("a")));

  ledger.OnDelivered(Delivered{Id("a"), 1, Probe(*first[0].mass)});
  const std::vector<Give> second = Sent(ledger);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].sequence, 2U);
  EXPECT_EQ(second[0].round, 3);
  EXPECT_EQ(*second[0].mass, (FlatVector{110, 220}));
  EXPECT_EQ(second[0].scalars, std::vector<double>{0.75});
  ledger.OnDelivered(
      Delivered{Id("a"), 2, Probe(*first[0].mass) + Probe(*second[0].mass)});
  EXPECT_FALSE(ledger.Owes(Id("a")));
  EXPECT_EQ(ledger.Imbalance(), 0);
}

TEST(MassLedgerTest, AnAcknowledgementOfAnotherParcelChangesNothing) {
  MassLedger ledger;
  ledger.Give(Id("a"), 1, Share(1, 2));
  (void)Sent(ledger);
  ledger.OnDelivered(Delivered{Id("a"), 2, 0});
  ledger.OnDelivered(Delivered{Id("b"), 1, 0});
  EXPECT_TRUE(ledger.Owes(Id("a")));
}

// What is lost between the two ends shows.
TEST(MassLedgerTest, TheEndsOfAnEdgeAreBalanced) {
  MassLedger giver;
  MassLedger taker;
  giver.Give(Id("taker"), 1, Share(3, 4));
  const Give give = Sent(giver).at(0);
  ASSERT_TRUE(taker.Take(Arrival(give)));
  giver.OnDelivered(Delivered{Id("taker"), 1, taker.taken(Id("giver"))});
  EXPECT_EQ(giver.Imbalance(), 0);
  giver.Give(Id("taker"), 2, Share(5, 6));
  (void)Sent(giver);  // never taken, and yet acknowledged
  giver.OnDelivered(Delivered{Id("taker"), 2, taker.taken(Id("giver"))});
  EXPECT_GT(giver.Imbalance(), 0.5);
}

TEST(MassLedgerTest, ARepeatIsNotTakenTwice) {
  MassLedger giver;
  MassLedger taker;
  giver.Give(Id("taker"), 1, Share(1, 2), 0.5);
  const Give give = Sent(giver).at(0);
  EXPECT_TRUE(taker.Take(Arrival(give)));
  EXPECT_FALSE(taker.Take(Arrival(give)));
  EXPECT_EQ(taker.repeats(), 1);
  std::vector<float> vector = {10, 10};
  EXPECT_EQ(taker.AddTo(1, absl::MakeSpan(vector)), 0.5);
  EXPECT_EQ(taker.AddTo(1, absl::MakeSpan(vector)), 0);
  EXPECT_EQ(vector, (std::vector<float>{11, 12}));
  EXPECT_FALSE(taker.Take(Arrival(give)));
}

TEST(MassLedgerTest, MassOfALaterRoundWaitsForIt) {
  MassLedger taker;
  Give give;
  std::vector<float> vector = {0, 0};
  // Five rounds ahead, more than are kept apart.
  for (int round = 1; round <= 5; ++round) {
    give.sequence = round;
    give.round = round;
    give.mass = Share(1, static_cast<float>(round));
    EXPECT_TRUE(taker.Take(Arrival(give)));
  }
  EXPECT_TRUE(taker.HasOf(Id("giver"), 5));
  EXPECT_FALSE(taker.HasOf(Id("giver"), 6));
  EXPECT_FALSE(taker.HasOf(Id("other"), 0));
  (void)taker.AddTo(0, absl::MakeSpan(vector));
  EXPECT_EQ(vector, (std::vector<float>{0, 0}));
  (void)taker.AddTo(1, absl::MakeSpan(vector));
  EXPECT_EQ(vector, (std::vector<float>{1, 1}));
  (void)taker.AddTo(5, absl::MakeSpan(vector));
  EXPECT_EQ(vector, (std::vector<float>{5, 15}));
}

// Carries whole tens.
class Tens : public MassCode {
 public:
  std::optional<Written> Write(const NodeId& /*to*/, uint64_t sequence,
                               absl::Span<const float> mass) const override {
    Written written;
    written.format.values = ValueType::kInt8;
    written.seed = sequence;
    for (const float value : mass) {
      written.carried.push_back(10 * std::trunc(value / 10));
    }
    return written;
  }
};

TEST(MassLedgerTest, WhatALossyParcelCannotCarryIsKept) {
  const Tens tens;
  MassLedger ledger(MassLedger::Merge::kSum, &tens);
  ledger.Give(Id("a"), 1, Share(17, -3));
  const Give first = Sent(ledger).at(0);
  EXPECT_EQ(*first.mass, (FlatVector{10, 0}));
  // What is encoded, each time the parcel is sent.
  EXPECT_EQ(*first.source, (FlatVector{17, -3}));
  EXPECT_EQ(first.format.values, ValueType::kInt8);
  EXPECT_EQ(first.seed, 1U);
  std::vector<float> unsettled = {0, 0};
  ledger.AddUnsettled(absl::MakeSpan(unsettled));
  EXPECT_EQ(unsettled, (std::vector<float>{17, -3}));

  // The rest is no debt and no parcel of its own.
  ledger.OnDelivered(Delivered{Id("a"), 1, Probe(*first.mass)});
  EXPECT_FALSE(ledger.Owes(Id("a")));
  EXPECT_TRUE(Sent(ledger).empty());
  EXPECT_EQ(ledger.Imbalance(), 0);
  unsettled = {0, 0};
  ledger.AddUnsettled(absl::MakeSpan(unsettled));
  EXPECT_EQ(unsettled, (std::vector<float>{7, -3}));

  // It goes with what is given next.
  ledger.Give(Id("a"), 2, Share(5, -8));
  EXPECT_TRUE(ledger.Owes(Id("a")));
  const Give second = Sent(ledger).at(0);
  EXPECT_EQ(*second.source, (FlatVector{12, -11}));
  EXPECT_EQ(*second.mass, (FlatVector{10, -10}));
  // What is given while a parcel is out waits with the rest of that one.
  ledger.Give(Id("a"), 3, Share(9, 0));
  EXPECT_TRUE(Sent(ledger).empty());
  ledger.OnDelivered(Delivered{Id("a"), 2, 0});
  EXPECT_TRUE(ledger.Owes(Id("a")));
  EXPECT_EQ(*Sent(ledger).at(0).source, (FlatVector{11, -1}));
}

TEST(MassLedgerTest, ANewEpochForgets) {
  MassLedger ledger;
  ledger.Give(Id("a"), 1, Share(1, 2));
  (void)Sent(ledger);
  Give give;
  give.sequence = 7;
  give.mass = Share(1, 1);
  EXPECT_TRUE(ledger.Take(Arrival(give)));
  ledger.Reset();
  EXPECT_FALSE(ledger.Owes(Id("a")));
  std::vector<float> vector = {0, 0};
  (void)ledger.AddTo(9, absl::MakeSpan(vector));
  EXPECT_EQ(vector, (std::vector<float>{0, 0}));
  // Numbers begin anew at both ends.
  give.sequence = 1;
  EXPECT_TRUE(ledger.Take(Arrival(give)));
  ledger.Give(Id("a"), 2, Share(1, 2));
  EXPECT_EQ(Sent(ledger).at(0).sequence, 1U);
}

// ------------------------------------------------------------- algorithms ----

std::vector<Neighbour> Two() { return {{Id("a"), 0.25}, {Id("b"), 0.5}}; }

MassArrived Mass(const char* from, std::vector<float> values, int64_t round,
                 uint64_t sequence) {
  MassArrived arrived;
  arrived.from = Id(from);
  arrived.sequence = sequence;
  arrived.model = Model(std::move(values), round);
  return arrived;
}

const MassRounds& RoundsOf(Machine& machine) {
  return dynamic_cast<const MassRounds&>(*machine);
}

// T0 = 1 exchanges from round 1 on.
std::unique_ptr<Machine> DepositumAtRoundOne() {
  auto machine = std::make_unique<Machine>(
      "depositum", KnobValues{{"T0", int64_t{1}}, {"gamma", 0.0}}, Two());
  machine->Handle(PeerUp{Id("a")});
  machine->Handle(PeerUp{Id("b")});
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  machine->gradient = {4, 8};
  EXPECT_EQ(machine->Handle(GradientReady{}), "done");
  EXPECT_EQ(machine->Handle(StepBegins{}), "push wake");
  return machine;
}

TEST(DepositumTest, ExchangesModelsThenTrackers) {
  auto machine = DepositumAtRoundOne();
  EXPECT_FALSE((*machine)->parameters_settled());
  EXPECT_EQ(machine->Handle(PushArrived{Id("a"), Model({0, 0}, 1, {0})}), "");
  EXPECT_EQ(machine->Handle(PushArrived{Id("b"), Model({0, 0}, 1, {0})}),
            "cancel gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  const Give give = machine->Last<Give>();
  EXPECT_EQ(give.to, Id("a"));
  EXPECT_EQ(*give.mass, (FlatVector{1, 2}));  // W_aj y^, y^ = beta g
  EXPECT_EQ(machine->Handle(Mass("a", {1, 1}, 1, 1)), "");
  EXPECT_EQ(machine->Handle(Mass("b", {1, 1}, 1, 1)), "");
  // Not before its own has arrived.
  EXPECT_EQ(machine->Handle(Delivered{Id("a"), 1, 0}), "");
  EXPECT_EQ(machine->Handle(Delivered{Id("b"), 1, 0}), "cancel done");
  const absl::Span<const float> z = RoundsOf(*machine).conserved();
  EXPECT_EQ(z[0], -1 - 2 + 1 + 1);
  EXPECT_EQ(z[1], -2 - 4 + 1 + 1);
  EXPECT_EQ(machine->Gauge("sparsity"), 0);
}

TEST(DepositumTest, TheDeadlineEndsBothWaits) {
  auto machine = DepositumAtRoundOne();
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel gradient");
  EXPECT_EQ(machine->Last<Missed>().peers.size(), 2U);
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  EXPECT_EQ(machine->Handle(Mass("a", {1, 1}, 1, 1)), "");
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  // What comes late is added in a later round, and is not lost.
  EXPECT_EQ(machine->Handle(Mass("b", {5, 5}, 1, 1)), "");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -1 - 2 + 1);
  EXPECT_EQ(machine->Handle(StepBegins{}), "push wake");
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel gradient");
  machine->gradient = {0, 0};
  // Both parcels are still out, so nothing more is sent.
  EXPECT_EQ(machine->Handle(GradientReady{}), "wake");
  const std::vector<float> given = {0.75F * -2, 0.75F * -5};
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -2 - given[0] + 5);
}

TEST(DepositumTest, NothingIsGivenToANeighbourThatIsDown) {
  auto machine = DepositumAtRoundOne();
  machine->Handle(PeerDown{Id("b")});
  EXPECT_EQ(machine->Handle(PushArrived{Id("a"), Model({0, 0}, 1, {0})}),
            "cancel gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
  EXPECT_EQ(machine->Last<Give>().to, Id("a"));
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -1);
}

TEST(DepositumTest, ANewEpochBeginsTrackersAnew) {
  auto machine = DepositumAtRoundOne();
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  EXPECT_EQ(machine->Handle(EpochBegins{}), "");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 0);
  // The acknowledgement of what is void is not taken for another's.
  EXPECT_EQ(machine->Handle(Delivered{Id("a"), 1, 0}), "");
  EXPECT_EQ(machine->Handle(Mass("a", {1, 1}, 1, 1)), "");
  EXPECT_EQ(machine->Handle(Mass("b", {2, 2}, 1, 1)), "cancel done");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 3);
}

NodePlan Directed(Machine& machine, KnobValues knobs) {
  NodePlan plan = machine.Plan(std::move(knobs), {});
  plan.in_neighbours = {{Id("a"), 0.5}};
  plan.out_neighbours = {{Id("b"), 0.25}, {Id("c"), 0.25}};
  return plan;
}

std::unique_ptr<Machine> MachineOnDigraph(const char* algorithm,
                                          const KnobValues& knobs) {
  auto machine =
      std::make_unique<Machine>(algorithm, knobs, std::vector<Neighbour>());
  machine->Handle(PlanChanged{Directed(*machine, knobs)});
  for (const char* peer : {"a", "b", "c"}) machine->Handle(PeerUp{Id(peer)});
  return machine;
}

TEST(SpodGtTest, PushesToOutNeighboursAndHearsInNeighbours) {
  auto machine = MachineOnDigraph("push-pull", {{"eta", 0.5}});
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  machine->gradient = {4, 8};
  EXPECT_EQ(machine->Handle(GradientReady{}), "push give give wake");
  EXPECT_EQ(machine->Last<Push>().peers,
            (std::vector<NodeId>{Id("b"), Id("c")}));
  EXPECT_EQ(*machine->Last<Give>().mass, (FlatVector{1, 2}));
  machine->Handle(Delivered{Id("b"), 1, 0});
  machine->Handle(Delivered{Id("c"), 1, 0});
  EXPECT_EQ(machine->Handle(PushArrived{Id("a"), Model({2, 2}, 0, {0})}), "");
  EXPECT_EQ(machine->Handle(Mass("a", {1, 1}, 0, 1)), "cancel gradient");
  // x' = 1, y' = g - g/2 + 1 = 3; x = x' - eta y'
  EXPECT_EQ(machine->parameters[0], 1 - 0.5F * 3);
  EXPECT_EQ(machine->Handle(GradientReady{}), "done");
  EXPECT_EQ(machine->Gauge("send_share"), 1);
}

// One that has a's model, waits for a's mass and can hand nothing on.
std::unique_ptr<Machine> SinkInItsExchange() {
  auto machine = MachineOnDigraph("push-pull", {{"eta", 0.5}});
  machine->Handle(PeerDown{Id("b")});
  machine->Handle(PeerDown{Id("c")});
  machine->Handle(StepBegins{});
  machine->gradient = {4, 8};
  machine->Handle(GradientReady{});
  machine->Handle(PushArrived{Id("a"), Model({2, 2}, 0, {0})});
  return machine;
}

// What comes together where it cannot be handed on is of nodes that do not
// move. out, out_up, in_up
TEST(SinkRuleTest, ASinkIsGivenToAndHasNobodyToGiveTo) {
  SinkRule rule;
  rule.SetLinks(2, 0, 1);
  EXPECT_TRUE(rule.sink());
  rule.SetLinks(2, 1, 1);  // one of two is up
  EXPECT_FALSE(rule.sink());
  rule.SetLinks(2, 0, 0);  // alone
  EXPECT_FALSE(rule.sink());
  rule.SetLinks(0, 0, 1);  // its graph has no edge to give by
  EXPECT_FALSE(rule.sink());
}

TEST(SinkRuleTest, DeductsWhatASinkWasGivenUntilItCanHandItOn) {
  SinkRule rule;
  FlatVector z = {1, 2};
  const auto take = [&](float a, float b) {
    rule.Take(z, [&] {
      z[0] += a;
      z[1] += b;
    });
  };
  const auto deducted = [&] {
    FlatVector y = {0, 0};
    rule.Deduct(absl::MakeSpan(y));
    return y;
  };
  rule.SetLinks(1, 1, 1);
  take(8, 8);  // no sink: everything counts
  EXPECT_EQ(z, (FlatVector{9, 10}));
  EXPECT_EQ(deducted(), (FlatVector{0, 0}));
  rule.SetLinks(1, 0, 1);
  take(1, 2);
  take(4, 0);
  EXPECT_EQ(z, (FlatVector{14, 12}));
  EXPECT_EQ(deducted(), (FlatVector{-5, -2}));
  rule.SetLinks(1, 0, 0);  // alone, but what it was given is still there
  EXPECT_FALSE(rule.sink());
  EXPECT_EQ(deducted(), (FlatVector{-5, -2}));
  rule.SetLinks(1, 1, 0);  // it can be handed on
  EXPECT_EQ(deducted(), (FlatVector{0, 0}));
}

absl::Status Import(const AlgorithmState& state, SinkRule& rule) {
  for (const auto reading :
       {StateFields::Reading::kCheck, StateFields::Reading::kRead}) {
    StateFields fields(state, reading);
    rule.VisitState(fields, 2);
    if (!fields.Finish().ok()) return fields.Finish();
  }
  return absl::OkStatus();
}

TEST(SinkRuleTest, WhatItHoldsComesBackFromAState) {
  SinkRule empty;
  SinkRule full;
  FlatVector z = {1, 2};
  full.SetLinks(1, 0, 1);
  full.Take(z, [&] { z = {4, 8}; });
  const auto deducted = [](const SinkRule& rule) {
    FlatVector y = {0, 0};
    rule.Deduct(absl::MakeSpan(y));
    return y;
  };
  const auto exported = [](SinkRule& rule) {
    AlgorithmState state;
    StateFields fields(&state);
    rule.VisitState(fields, 2);
    return state;
  };
  const AlgorithmState nothing = exported(empty);
  const AlgorithmState something = exported(full);
  ASSERT_TRUE(Import(something, empty).ok()) << Import(something, empty);
  EXPECT_EQ(deducted(empty), (FlatVector{-3, -6}));
  EXPECT_EQ(exported(empty), something);
  ASSERT_TRUE(Import(nothing, full).ok());
  EXPECT_EQ(deducted(full), (FlatVector{0, 0}));
  EXPECT_EQ(exported(full), nothing);
  // Refused before anything is read.
  AlgorithmState wrong = something;
  wrong.fields["held"] = FlatVector{1};
  EXPECT_FALSE(Import(wrong, empty).ok());
  wrong.fields.erase("held");
  EXPECT_FALSE(Import(wrong, empty).ok());
  EXPECT_EQ(deducted(empty), (FlatVector{-3, -6}));
}

TEST(SpodGtTest, ASinkDoesNotStep) {
  auto machine = SinkInItsExchange();
  EXPECT_EQ(machine->Handle(Mass("a", {100, 100}, 0, 1)), "cancel gradient");
  EXPECT_EQ(machine->parameters, (std::vector<float>{1, 1}));
  // It is kept, and counts as soon as it can be handed on.
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 100);
  machine->Handle(GradientReady{});
  machine->Handle(PeerUp{Id("b")});
  EXPECT_EQ(machine->Handle(StepBegins{}), "push give wake");
  EXPECT_EQ((*machine->Last<Give>().mass)[0], 0.25F * (100 + 4));
}

// Nor by what it got as a sink, when nobody sends any more either.
TEST(SpodGtTest, ASinkThatIsCutOffStepsWithoutWhatItWasGiven) {
  auto machine = SinkInItsExchange();
  machine->Handle(Mass("a", {100, 100}, 0, 1));
  machine->Handle(GradientReady{});
  ASSERT_EQ(machine->parameters, (std::vector<float>{1, 1}));
  machine->Handle(PeerDown{Id("a")});
  EXPECT_EQ(machine->Handle(StepBegins{}), "cancel gradient");
  EXPECT_EQ(machine->parameters,
            (std::vector<float>{1 - 0.5F * 4, 1 - 0.5F * 8}));
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 100);  // and keeps it
  machine->Handle(GradientReady{});
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->parameters, (std::vector<float>{-3, -7}));
  // A new epoch has no such sums.
  machine->Handle(GradientReady{});
  machine->Handle(EpochBegins{});
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->parameters, (std::vector<float>{-5, -11}));
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 0);
}

// A correction that was no sink's sum keeps a node that is cut off where all
// are.
TEST(SpodGtTest, ANodeThatIsCutOffStepsByItsTracker) {
  auto machine = MachineOnDigraph("push-pull", {{"eta", 0.5}});
  machine->Handle(StepBegins{});
  machine->gradient = {4, 8};
  machine->Handle(GradientReady{});
  machine->Handle(Delivered{Id("b"), 1, 0});
  machine->Handle(Delivered{Id("c"), 1, 0});
  machine->Handle(PushArrived{Id("a"), Model({0, 0}, 0, {0})});
  machine->Handle(Mass("a", {1, 1}, 0, 1));  // z = -2 + 1, -4 + 1
  machine->Handle(GradientReady{});
  for (const char* peer : {"a", "b", "c"}) machine->Handle(PeerDown{Id(peer)});
  const float x = machine->parameters[0];
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->parameters[0], x - 0.5F * (4 - 1));
}

TEST(SpodGtTest, WhoIsNotSentToIsTold) {
  auto machine = MachineOnDigraph("spod-gt", {{"p_hat", 0.5}});
  machine->decisions.happens = false;
  // Neither computes nor sends.
  EXPECT_EQ(machine->Handle(StepBegins{}), "skip wake");
  EXPECT_EQ(machine->Last<Skip>().peers,
            (std::vector<NodeId>{Id("b"), Id("c")}));
  EXPECT_EQ(machine->Handle(Skipped{Id("a"), 0}), "cancel done");
  EXPECT_EQ(machine->Gauge("send_share"), 0);
}

TEST(SpodGtTest, GradientsAreUnbiasedWhilePIsNotTiny) {
  for (const auto& [unbias, least, scale] : {std::tuple{"auto", 0.5, 2.0},
                                             {"auto", 0.05, 1.0},
                                             {"on", 0.05, 2.0},
                                             {"off", 0.5, 1.0}}) {
    auto machine = MachineOnDigraph("spod-gt", {});
    NodePlan plan =
        Directed(*machine, {{"p", 0.5}, {"unbias", std::string(unbias)}});
    auto facts = std::make_shared<SpodGtFacts>();
    facts->least_p = least;
    plan.facts = std::move(facts);
    machine->Handle(PlanChanged{std::move(plan)});
    machine->Handle(StepBegins{});
    machine->gradient = {4, 8};
    machine->Handle(GradientReady{});
    EXPECT_EQ((*machine->Last<Give>().mass)[0],
              static_cast<float>(scale * 4 * 0.25))
        << unbias << " " << least;
  }
}

// Says what probabilities are asked for, and yes.
class NotedDecisions : public ScriptedDecisions {
 public:
  bool Happens(absl::string_view purpose, const NodeId& peer,
               double probability) override {
    asked[std::string(purpose)][peer].push_back(probability);
    return true;
  }
  std::map<std::string, std::map<NodeId, std::vector<double>>> asked;
};

TEST(SpodGtTest, ProbabilitiesMayBeDrawnOnceFromBeta) {
  std::vector<double> drawn;
  int64_t different = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Machine machine("spod-gt", {}, {});
    NotedDecisions noted;
    AlgorithmContext context;
    context.plan = Directed(machine, {{"p_draw", std::string("beta")},
                                      {"p", 0.7},
                                      {"unbias", std::string("off")}});
    context.plan.seed = seed;
    context.vectors = NodeVectors{absl::MakeSpan(machine.parameters),
                                  absl::MakeSpan(machine.gradient),
                                  absl::MakeSpan(machine.buffers)};
    const auto told = DrawnBy(context.plan);
    auto algorithm = CreateAlgorithm(**BuiltInCatalogue().Find("spod-gt"),
                                     std::move(context), noted);
    RecordedActions actions;
    algorithm->Handle(Started{0}, actions);
    for (const char* peer : {"a", "b", "c"}) {
      algorithm->Handle(PeerUp{Id(peer)}, actions);
    }
    algorithm->Handle(StepBegins{}, actions);
    algorithm->Handle(GradientReady{}, actions);
    algorithm->Handle(Delivered{Id("b"), 1, 0}, actions);
    algorithm->Handle(Delivered{Id("c"), 1, 0}, actions);
    algorithm->Handle(PushArrived{Id("a"), Model({2, 2}, 0, {0})}, actions);
    algorithm->Handle(Mass("a", {1, 1}, 0, 1), actions);
    const std::vector<double>& p = noted.asked["compute"][Id("self")];
    ASSERT_EQ(p.size(), 2U);
    EXPECT_EQ(p[0], p[1]) << "drawn once; seed " << seed;
    const double to_b = noted.asked["send"][Id("b")].at(0);
    const double to_c = noted.asked["send"][Id("c")].at(0);
    different += to_b != to_c;
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(told->p, p[0]);
    EXPECT_EQ(told->p_hat,
              (std::map<NodeId, double>{{Id("b"), to_b}, {Id("c"), to_c}}));
    drawn.insert(drawn.end(), {p[0], to_b, to_c});
  }
  // Each link has its own, and but few both the least one.
  EXPECT_GT(different, 280);
  // Beta(1/2, 1/2): mean 1/2, variance 1/8, a third below 1/4.
  double sum = 0;
  double squares = 0;
  int64_t below = 0;
  for (const double p : drawn) {
    EXPECT_GE(p, 0.01);
    EXPECT_LE(p, 1);
    sum += p;
    squares += (p - 0.5) * (p - 0.5);
    below += p < 0.25;
  }
  EXPECT_NEAR(sum / 900, 0.5, 0.05);
  EXPECT_NEAR(squares / 900, 0.125, 0.015);
  EXPECT_NEAR(static_cast<double>(below) / 900, 1.0 / 3, 0.06);
}

TEST(SpodGtTest, TellsWhatItDrewWhereItDraws) {
  const KnobValues beta = {{"p_draw", std::string("beta")}};
  Machine both("spod-gt", {}, {});
  EXPECT_FALSE(DrawnBy(Directed(both, {})).has_value());
  Machine gradients("sporadic-k-gt", {}, {});
  EXPECT_TRUE(DrawnBy(Directed(gradients, beta))->p_hat.empty());
  Machine links("g-push-pull", {}, {});
  EXPECT_FALSE(DrawnBy(Directed(links, beta))->p.has_value());
  EXPECT_EQ(DrawnBy(Directed(links, beta))->p_hat.size(), 2U);
  // Others have no such knob.
  Machine other("d-psgd", {}, {});
  EXPECT_FALSE(DrawnBy(other.Plan({}, Three())).has_value());
}

// What is drawn may be tiny: it scales nothing unless asked to.
TEST(SpodGtTest, DrawnProbabilitiesScaleNothingByThemselves) {
  for (const auto& [unbias, scaled] :
       {std::pair{"auto", false}, {"on", true}}) {
    auto machine = MachineOnDigraph("spod-gt", {});
    machine->Handle(
        PlanChanged{Directed(*machine, {{"p_draw", std::string("beta")},
                                        {"unbias", std::string(unbias)}})});
    machine->Handle(StepBegins{});
    machine->gradient = {4, 8};
    machine->Handle(GradientReady{});
    EXPECT_EQ((*machine->Last<Give>().mass)[0] > 1, scaled) << unbias;
  }
}

TEST(SgpTest, TheRatioIsTheModel) {
  auto machine = MachineOnDigraph("sgp", {{"eta", 0.5}});
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  machine->gradient = {-8, -16};
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  const Give give = machine->Last<Give>();
  EXPECT_EQ(*give.mass, (FlatVector{1, 2}));
  EXPECT_EQ(give.scalars, std::vector<double>{0.25});
  machine->Handle(Delivered{Id("b"), 1, 0});
  machine->Handle(Delivered{Id("c"), 1, 0});
  MassArrived mass = Mass("a", {4, 0}, 0, 1);
  mass.model.scalars = {1.5};
  EXPECT_EQ(machine->Handle(std::move(mass)), "cancel done");
  EXPECT_EQ(machine->Gauge("omega"), 2);
  EXPECT_EQ(machine->parameters, (std::vector<float>{(4 - 2 + 4) / 2.0F, 2}));
  // A new epoch keeps the model.
  machine->Handle(EpochBegins{});
  EXPECT_EQ(machine->Gauge("omega"), 1);
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 3);
}

// A step of x moves the model by step/omega, and a share of the next model is
// the node's own: together they make no more of it than while nothing fails.
// omega, own_share, b, least_omega
TEST(SgpStepShareTest, TakesTheWholeStepWhileNothingFails) {
  EXPECT_EQ(SgpStepShare(1, 0.5, 0.5, 0.4), 1);
  EXPECT_EQ(SgpStepShare(0.4, 0.5, 0.5, 0.4), 1);  // the least it can be
  EXPECT_EQ(SgpStepShare(0.4, 0.1, 0.5, 0.4), 1);  // less of it is its own
}

TEST(SgpStepShareTest, BoundsHowFarTheModelMoves) {
  // eta times the share moves the model by share/omega, of which own_share
  // stays; with b = 1/2 and a least omega of 0.4 that may be 1.25.
  for (const double omega : {0.3, 0.1, 1e-3}) {
    for (const double own_share : {0.5, 0.7, 1.0}) {
      const double share = SgpStepShare(omega, own_share, 0.5, 0.4);
      EXPECT_NEAR(own_share * share / omega, 1.25, 1e-5)
          << omega << " " << own_share;
    }
  }
  EXPECT_NEAR(SgpStepShare(0.4, 1, 0.5, 0.4), 0.5, 1e-5);  // nobody else's
}

TEST(SgpTest, AStepOfAModelWithLittleWeightIsNoLarger) {
  auto machine = MachineOnDigraph("sgp", {{"eta", 0.5}});
  const auto with_least = [&](double least) {
    NodePlan plan = Directed(*machine, {{"eta", 0.5}});
    plan.sender_weight = 0.5;
    auto facts = std::make_shared<SgpFacts>();
    if (least > 0) facts->least_omega = {least};
    plan.facts = std::move(facts);
    machine->Handle(PlanChanged{plan});
    return machine->Gauge("step_size");
  };
  EXPECT_EQ(with_least(0.1), 0.5);  // at the start it is whole
  EXPECT_EQ(with_least(1), 0.5);
  // b_ii is 1/2: it gives a half, and gets as much.
  const auto round = [&](uint64_t number, double came) {
    machine->Handle(StepBegins{});
    machine->Handle(GradientReady{});
    machine->Handle(Delivered{Id("b"), number, 0});
    machine->Handle(Delivered{Id("c"), number, 0});
    MassArrived mass =
        Mass("a", {0, 0}, static_cast<int64_t>(number) - 1, number);
    mass.model.scalars = {came};
    machine->Handle(std::move(mass));
  };
  round(1, 0.5);
  ASSERT_EQ(machine->Gauge("omega"), 1);
  EXPECT_EQ(with_least(1), 0.5);
  // Nothing comes: all that is left is its own.
  round(2, 0);
  ASSERT_EQ(machine->Gauge("omega"), 0.5);
  EXPECT_NEAR(with_least(1), 0.5 * 0.5 * 0.5, 1e-6);
  EXPECT_NEAR(with_least(0.5), 0.5 * 0.5, 1e-6);
  // Not known: as if it were 0.2.
  EXPECT_EQ(with_least(0), with_least(0.2));
  // A new epoch begins anew.
  machine->Handle(EpochBegins{});
  EXPECT_EQ(with_least(1), 0.5);
}

// While nothing comes in it would halve its weight for ever, and end with 0/0.
TEST(SgpTest, KeepsTheLastOfItsWeight) {
  auto machine = MachineOnDigraph("sgp", {{"eta", 0.5}});
  machine->Handle(PeerDown{Id("a")});
  for (uint64_t round = 1; round <= 10; ++round) {
    machine->Handle(StepBegins{});
    ASSERT_EQ(machine->Handle(GradientReady{}), "give give wake") << round;
    machine->Handle(Delivered{Id("b"), round, 0});
    ASSERT_EQ(machine->Handle(Delivered{Id("c"), round, 0}), "cancel done");
  }
  EXPECT_EQ(machine->Gauge("omega"), 1.0 / 1024);
  for (int round = 0; round < 300; ++round) {
    machine->Handle(StepBegins{});
    ASSERT_EQ(machine->Handle(GradientReady{}), "skip cancel done");
    ASSERT_EQ(machine->Last<Skip>().peers,
              (std::vector<NodeId>{Id("b"), Id("c")}));
  }
  EXPECT_EQ(machine->Gauge("omega"), 1.0 / 1024);
  EXPECT_EQ(machine->parameters[0], 0);
  // What comes is handed on again.
  machine->Handle(PeerUp{Id("a")});
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->Handle(GradientReady{}), "skip wake");
  MassArrived mass = Mass("a", {1, 1}, 310, 1);
  mass.model.scalars = {1};
  EXPECT_EQ(machine->Handle(std::move(mass)), "cancel done");
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
}

TEST(KGtTest, CorrectionsComeFromWhatOthersDid) {
  Machine machine("k-gt", {{"eta_c", 0.5}, {"K", int64_t{2}}},
                  {{Id("a"), 0.5}});
  machine.Handle(PeerUp{Id("a")});
  EXPECT_EQ(machine.Handle(StepBegins{}), "gradient");
  machine.gradient = {2, 4};
  EXPECT_EQ(machine.Handle(GradientReady{}), "gradient");
  EXPECT_EQ(machine.Handle(GradientReady{}), "push give wake");
  EXPECT_EQ(machine.parameters, (std::vector<float>{-2, -4}));
  EXPECT_EQ(*machine.Last<Give>().mass, (FlatVector{1, 2}));  // z/2
  machine.Handle(PushArrived{Id("a"), Model({0, 0}, 0, {0})});
  machine.Handle(Mass("a", {3, 3}, 0, 1));
  EXPECT_EQ(machine.Handle(Delivered{Id("a"), 1, 0}), "cancel done");
  EXPECT_EQ(machine.parameters, (std::vector<float>{-1, -2}));
  EXPECT_EQ(RoundsOf(machine).conserved()[0], -1 + 3);
}

}  // namespace
}  // namespace dfl::core
