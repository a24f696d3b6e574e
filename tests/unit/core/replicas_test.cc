// Compressed differences and replicas: what is sent, what everybody knows, and
// what happens when parcels are late, repeated or missing. NIDS too, whose
// flows are matched.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithms/beer.h"
#include "daemon/core/mass/matched.h"
#include "daemon/core/rounds/compressor.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "daemon/core/vector/step_codes.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

MassLedger::Share Share(FlatVector values) {
  return std::make_shared<const FlatVector>(std::move(values));
}

MassArrived Mass(const char* from, std::vector<float> values, int64_t round,
                 uint64_t sequence, double scalar = 0) {
  MassArrived arrived;
  arrived.from = Id(from);
  arrived.sequence = sequence;
  arrived.model = Model(std::move(values), round);
  if (scalar != 0) arrived.model.scalars = {scalar};
  return arrived;
}

const MassRounds& RoundsOf(Machine& machine) {
  return dynamic_cast<const MassRounds&>(*machine);
}

const ReplicaRounds& ReplicasOf(Machine& machine) {
  return dynamic_cast<const ReplicaRounds&>(*machine);
}

std::vector<Give> GivesOf(const Machine& machine) {
  std::vector<Give> gives;
  for (const Action& action : machine.actions) {
    if (const auto* give = std::get_if<Give>(&action)) gives.push_back(*give);
  }
  return gives;
}

std::vector<Neighbour> Two() { return {{Id("a"), 0.25}, {Id("b"), 0.5}}; }

// ------------------------------------------------------------ compressors ----

Compression CompressorOf(const char* compressor, double rate) {
  return CompressionOf(*Knobs::Resolve(
      CompressorKnobs(),
      {{"compressor", std::string(compressor)}, {"rate", rate}}));
}

TEST(CompressorTest, TopKTakesTheLargestAndOfEqualsTheLower) {
  ScriptedDecisions decisions;
  const std::vector<float> v = {1, -3, 2, 3, -2, 0};
  const auto top = [&](double rate) {
    return CompressedCoordinates(CompressorOf("topk", rate), v, "", decisions);
  };
  EXPECT_EQ(top(1 / 6.0), (std::vector<int64_t>{1}));
  EXPECT_EQ(top(0.5), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(top(1), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(CompressorTest, TopKBearsWhatIsNotANumber) {
  ScriptedDecisions decisions;
  std::vector<float> v(1000, std::numeric_limits<float>::quiet_NaN());
  for (size_t l = 0; l < v.size(); l += 3) v[l] = static_cast<float>(l);
  EXPECT_EQ(
      CompressedCoordinates(CompressorOf("topk", 0.1), v, "", decisions).size(),
      100U);
}

TEST(CompressorTest, MasksAreDifferentCoordinatesEachAsOftenAsAnother) {
  SeededDecisions decisions(7);
  const std::vector<float> v(20, 1.0F);
  std::vector<int> often(v.size(), 0);
  for (int q = 0; q < 2000; ++q) {
    const std::vector<int64_t> mask =
        CompressedCoordinates(CompressorOf("mask", 0.25), v, "", decisions);
    ASSERT_EQ(mask.size(), 5U);
    ASSERT_TRUE(std::is_sorted(mask.begin(), mask.end()));
    ASSERT_EQ(std::set<int64_t>(mask.begin(), mask.end()).size(), 5U);
    for (const int64_t l : mask) ++often[l];
  }
  for (const int count : often) EXPECT_NEAR(count, 500, 100);
}

// ----------------------------------------------------------------- ledger ----

TEST(ReplicaLedgerTest, ParcelsThatWaitAreOneWithTheNewestEntries) {
  MassLedger ledger(MassLedger::Merge::kReplace);
  RecordedActions actions;
  ledger.Give(Id("a"), 1, Share({1, 0, 0}));
  ledger.Send(actions);
  ledger.Give(Id("a"), 2, Share({2, 5, 0}));
  ledger.Give(Id("a"), 3, Share({0, 6, 0}));
  ledger.OnDelivered(Delivered{Id("a"), 1, 0});
  actions.clear();
  ledger.Send(actions);
  const auto& give = std::get<Give>(actions[0]);
  EXPECT_EQ(*give.mass, (FlatVector{2, 6, 0}));
  EXPECT_EQ(give.nonzeros, 2);
  EXPECT_EQ(give.round, 3);
}

TEST(ReplicaLedgerTest, NoMoreThanTwoParcelsWaitForTheirRounds) {
  MassLedger ledger(MassLedger::Merge::kReplace);
  for (int round = 1; round <= 2; ++round) {
    const auto value = static_cast<float>(round);
    ASSERT_TRUE(ledger.Take(Mass("a", {value}, round, round, 0.5)));
    EXPECT_FALSE(ledger.TakeSurplus(Id("a")).has_value());
  }
  ASSERT_TRUE(ledger.Take(Mass("a", {3}, 3, 3)));
  const auto surplus = ledger.TakeSurplus(Id("a"));
  ASSERT_TRUE(surplus.has_value());
  EXPECT_EQ(surplus->mass, FlatVector{1});
  EXPECT_EQ(surplus->scalar, 0.5);
  EXPECT_EQ(ledger.held().size(), 2U);
  EXPECT_TRUE(ledger.TakeOut(1).empty());
  EXPECT_EQ(ledger.TakeOut(3).size(), 2U);
}

// ---------------------------------------------------------- matched flows ----

float Sum(MatchedFlows& flows) {
  std::vector<float> vector(1, 0.0F);
  flows.AddTo(absl::MakeSpan(vector));
  return vector[0];
}

TEST(MatchedFlowsTest, WhatWasGivenCountsWhenItsCounterpartCame) {
  MatchedFlows flows;
  EXPECT_TRUE(flows.MayGive(Id("a")));
  flows.Gave(Id("a"), Share({3}), 0.1);
  EXPECT_FALSE(flows.MayGive(Id("a")));
  EXPECT_TRUE(flows.MayGive(Id("b")));
  EXPECT_EQ(Sum(flows), 3);
  EXPECT_FALSE(flows.MayGive(Id("a")));
  flows.Got(Id("a"), std::vector<float>{5}, 0.1);
  EXPECT_EQ(Sum(flows), 0);
  EXPECT_TRUE(flows.MayGive(Id("a")));
}

TEST(MatchedFlowsTest, WhatCameFirstWaitsForWhatIsGiven) {
  MatchedFlows flows;
  flows.Got(Id("a"), std::vector<float>{8}, 0.2);  // of two rounds
  EXPECT_EQ(Sum(flows), -8);
  EXPECT_TRUE(flows.MayGive(Id("a")));
  flows.Gave(Id("a"), Share({3}), 0.1);
  EXPECT_EQ(Sum(flows), -4);
  flows.Gave(Id("a"), Share({3}), 0.1);
  EXPECT_EQ(Sum(flows), 0);
}

TEST(MatchedFlowsTest, TheRestOfTheLargerOneIsKept) {
  MatchedFlows flows;
  flows.Gave(Id("a"), Share({3}), 0.25);
  flows.Got(Id("a"), std::vector<float>{8}, 0.5);
  EXPECT_EQ(Sum(flows), -4);
  // A weight that no honest neighbour sends.
  flows.Got(Id("b"), std::vector<float>{1}, -1);
  EXPECT_EQ(Sum(flows), -4);
  flows.Clear();
  EXPECT_EQ(Sum(flows), 0);
}

TEST(MatchedFlowsTest, SharesThatWaitAreRenewed) {
  MatchedFlows flows;
  flows.Gave(Id("a"), Share({3}), 0.25);
  EXPECT_EQ(Sum(flows), 3);
  EXPECT_EQ(flows.Renew(Id("a"), std::vector<float>{10}, 0.5), FlatVector{2});
  EXPECT_EQ(Sum(flows), 5);
  // a renewed what we had got already: it counts at once.
  flows.Got(Id("a"), std::vector<float>{1}, 0);
  EXPECT_EQ(Sum(flows), 5);
  flows.Got(Id("a"), std::vector<float>{8}, 0.5);
  EXPECT_EQ(Sum(flows), -4);
  flows.Got(Id("a"), std::vector<float>{1}, 0);
  EXPECT_EQ(Sum(flows), -5);
}

// ------------------------------------------------------------------- nids ----

// After round 0, which mixes nothing.
std::unique_ptr<Machine> NidsAtRoundOne() {
  auto machine =
      std::make_unique<Machine>("nids", KnobValues{{"alpha", 0.5}}, Two());
  machine->Handle(PeerUp{Id("a")});
  machine->Handle(PeerUp{Id("b")});
  machine->gradient = {2, 4};
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "done");
  EXPECT_EQ(machine->parameters, (std::vector<float>{-1, -2}));
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  return machine;
}

TEST(NidsTest, GivesHalfOfWAndAddsWhatComes) {
  auto machine = NidsAtRoundOne();
  const std::vector<Give> gives = GivesOf(*machine);
  EXPECT_EQ(*gives[0].mass, (FlatVector{-0.25, -0.5}));  // W/2 phi
  EXPECT_EQ(gives[0].scalars, std::vector<double>{0.125});
  EXPECT_EQ(*gives[1].mass, (FlatVector{-0.5, -1}));
  machine->Handle(Delivered{Id("a"), 1, 0});
  machine->Handle(Delivered{Id("b"), 1, 0});
  EXPECT_EQ(machine->Handle(Mass("a", {1, 1}, 1, 1, 0.125)), "");
  EXPECT_EQ(machine->Handle(Mass("b", {2, 2}, 1, 1, 0.25)), "cancel done");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 0.75 + 3);
  EXPECT_EQ(machine->parameters[0], -2 + 0.75 + 3);
}

TEST(NidsTest, AMissingNeighbourMakesNoDifferenceAndItsShareIsRenewed) {
  auto machine = NidsAtRoundOne();
  machine->Handle(Delivered{Id("a"), 1, 0});
  EXPECT_EQ(machine->Handle(Mass("a", {1, 1}, 1, 1, 0.125)), "");
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 0.75 + 1);
  // phi + W_a/2 (phi_a - phi) alone.
  EXPECT_EQ(machine->parameters, (std::vector<float>{-0.75, -2.5}));

  // A third of the neighbours, by weight, is there: a third of the step c =
  // (1.25, 1.5). phi = (-1/3, -2).
  machine->gradient = {0, 0};
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
  EXPECT_EQ(machine->Last<Give>().to, Id("a"));
  EXPECT_NEAR((*machine->Last<Give>().mass)[0], -1 / 24.0, 1e-6);
  EXPECT_NEAR((*machine->Last<Give>().mass)[1], -0.25, 1e-6);
  // b's share goes from -1/2 to W/2 phi = -1/12, and from -1 to -1/2.
  EXPECT_NEAR(RoundsOf(*machine).conserved()[0], 1.75 + 1 / 24.0 - 5 / 12.0,
              1e-6);
  // b's share of the round before comes late, and twice; then b renews it to
  // what it is given, so x = phi.
  machine->Handle(Mass("b", {-0.5, -1}, 1, 1, 0.25));
  machine->Handle(Mass("b", {-0.5, -1}, 1, 1, 0.25));
  machine->Handle(Mass("b", {5 / 12.0F, 0.5}, 2, 2));
  machine->Handle(Mass("a", {-1 / 24.0F, -0.25}, 2, 2, 0.125));
  EXPECT_EQ(machine->Handle(Delivered{Id("b"), 1, 0}), "give");
  EXPECT_NEAR((*machine->Last<Give>().mass)[0], 5 / 12.0, 1e-6);
  EXPECT_TRUE(machine->Last<Give>().scalars.empty());
  machine->Handle(Delivered{Id("b"), 2, 0});
  EXPECT_EQ(machine->Handle(Delivered{Id("a"), 2, 0}), "cancel done");
  EXPECT_NEAR(machine->parameters[0], -1 / 3.0, 1e-6);
  EXPECT_NEAR(machine->parameters[1], -2, 1e-6);
  EXPECT_EQ(machine->Gauge("mass_repeats"), 1);
}

TEST(NidsTest, WhoIsAloneStandsStill) {
  auto machine = NidsAtRoundOne();
  machine->Handle(TimerFired{1});
  const std::vector<float> before = machine->parameters;
  machine->Handle(PeerDown{Id("a")});
  machine->Handle(PeerDown{Id("b")});
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->Handle(GradientReady{}), "cancel done");
  EXPECT_EQ(machine->parameters, before);
}

TEST(NidsTest, ANewEpochBeginsCorrectionsAnew) {
  auto machine = NidsAtRoundOne();
  machine->Handle(Mass("a", {1, 1}, 1, 1, 0.125));
  EXPECT_EQ(machine->Handle(EpochBegins{}), "");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 0);
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  EXPECT_EQ(machine->parameters, (std::vector<float>{-2, -4}));
}

TEST(NidsTest, ANeighbourThatIsDownIsGivenNothing) {
  auto machine = NidsAtRoundOne();
  machine->Handle(TimerFired{1});
  machine->Handle(EpochBegins{});
  machine->Handle(PeerDown{Id("b")});
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
  EXPECT_EQ(machine->Last<Give>().to, Id("a"));
}

// -------------------------------------------------------------- choco-sgd ----

// In round 0, k = 2 of 4: x' = (-1, 4, -2, 0), and its largest two are given.
std::unique_ptr<Machine> ChocoAtExchange() {
  auto machine = std::make_unique<Machine>(
      "choco-sgd", KnobValues{{"eta", 0.5}, {"gamma", 0.5}, {"rate", 0.5}},
      Two(), 4);
  machine->Handle(PeerUp{Id("a")});
  machine->Handle(PeerUp{Id("b")});
  machine->gradient = {2, -8, 4, 0};
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  machine->gradient = {0, 0, 0, 0};
  return machine;
}

TEST(ChocoSgdTest, SendsTheLargestDifferencesAndMixesReplicas) {
  auto machine = ChocoAtExchange();
  for (const Give& give : GivesOf(*machine)) {
    EXPECT_EQ(*give.mass, (FlatVector{0, 4, -2, 0}));
    EXPECT_EQ(give.nonzeros, 2);
    EXPECT_TRUE(give.scalars.empty());
  }
  machine->Handle(Delivered{Id("a"), 1, 0});
  machine->Handle(Mass("a", {1, 0, 0, 0}, 0, 1));
  // Nothing has come of b: no difference.
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  EXPECT_EQ(machine->parameters, (std::vector<float>{-0.875, 3.5, -1.75, 0}));
  EXPECT_TRUE(RoundsOf(*machine).conserved().empty());
}

// b acknowledges late: the rounds between are one parcel, after which it knows
// what everybody knows, to the last bit.
TEST(ChocoSgdTest, ALateNeighbourCatchesUpInOneParcel) {
  auto machine = ChocoAtExchange();
  FlatVector b(*GivesOf(*machine)[1].mass);
  machine->Handle(TimerFired{1});
  for (int round = 1; round < 4; ++round) {
    machine->gradient = {0.1F, -0.7F, static_cast<float>(round), 0.3F};
    machine->Handle(Delivered{Id("a"), static_cast<uint64_t>(round), 0});
    machine->Handle(StepBegins{});
    EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
    EXPECT_EQ(machine->Last<Give>().to, Id("a"));
    machine->Handle(TimerFired{1});
  }
  EXPECT_EQ(machine->Handle(Delivered{Id("b"), 1, 0}), "give");
  const Give late = machine->Last<Give>();
  EXPECT_EQ(late.round, 3);
  for (size_t l = 0; l < b.size(); ++l) {
    if ((*late.mass)[l] != 0) b[l] = (*late.mass)[l];
  }
  EXPECT_EQ(b, ReplicasOf(*machine).replica());
}

TEST(ChocoSgdTest, ARepeatedParcelChangesNothing) {
  auto machine = ChocoAtExchange();
  machine->Handle(Mass("a", {1, 0, 0, 2}, 0, 1));
  machine->Handle(TimerFired{1});
  machine->Handle(Mass("a", {9, 9, 9, 9}, 0, 1));
  machine->Handle(StepBegins{});
  machine->Handle(GradientReady{});
  machine->Handle(TimerFired{1});
  EXPECT_EQ(*ReplicasOf(*machine).replica_of(Id("a")),
            (FlatVector{1, 0, 0, 2}));
}

TEST(ChocoSgdTest, ANeighbourThatIsNewOrComesBackIsGivenTheWholeReplica) {
  auto machine = ChocoAtExchange();
  machine->Handle(TimerFired{1});
  machine->Handle(PeerUp{Id("c")});
  const KnobValues knobs = {{"eta", 0.5}, {"gamma", 0.5}, {"rate", 0.25}};
  const auto round_with = [&](std::vector<Neighbour> neighbours) {
    machine->Handle(PlanChanged{machine->Plan(knobs, std::move(neighbours))});
    machine->Handle(StepBegins{});
    machine->Handle(GradientReady{});
    const std::vector<Give> gives = GivesOf(*machine);
    machine->Handle(TimerFired{1});
    return gives;
  };
  // What was given to a and b is still out: only c's shows.
  std::vector<Give> gives = round_with({{Id("a"), 0.25}, {Id("c"), 0.25}});
  ASSERT_EQ(gives.size(), 1U);
  EXPECT_EQ(gives[0].to, Id("c"));
  EXPECT_EQ(*gives[0].mass, ReplicasOf(*machine).replica());
  EXPECT_EQ(gives[0].nonzeros, 3);  // 4 and -2 before, and one more
  machine->Handle(Delivered{Id("b"), 1, 0});
  gives = round_with(Two());
  ASSERT_EQ(gives.size(), 1U);
  EXPECT_EQ(gives[0].to, Id("b"));
  EXPECT_EQ(*gives[0].mass, ReplicasOf(*machine).replica());
}

TEST(ChocoSgdTest, ANewEpochBeginsReplicasAnew) {
  auto machine = ChocoAtExchange();
  machine->Handle(Mass("a", {1, 0, 0, 0}, 0, 1));
  machine->Handle(EpochBegins{});
  EXPECT_EQ(ReplicasOf(*machine).replica(), (FlatVector{0, 0, 0, 0}));
  EXPECT_EQ(ReplicasOf(*machine).replica_of(Id("a")), nullptr);
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  EXPECT_EQ(machine->parameters, (std::vector<float>{-1, 4, -2, 0}));
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->Handle(GradientReady{}), "give give wake");
  EXPECT_EQ(machine->Last<Give>().sequence, 1U);
}

// An entry that becomes 0 is set, and so not 0 in the parcel.
TEST(ChocoSgdTest, AnEntryThatBecomesZeroIsSent) {
  Machine machine("choco-sgd", {{"eta", 1.0}, {"rate", 1.0}}, {{Id("a"), 0.5}});
  machine.gradient = {-3, -5};
  machine.Handle(StepBegins{});
  machine.Handle(GradientReady{});
  machine.gradient = {3, 0};
  machine.Handle(Delivered{Id("a"), 1, 0});
  machine.Handle(StepBegins{});
  machine.Handle(GradientReady{});
  const Give give = machine.Last<Give>();
  EXPECT_EQ(give.nonzeros, 2);
  EXPECT_NEAR((*give.mass)[0], 0, 1e-30);
  EXPECT_EQ(machine.parameters[0], 0);
}

// What `give` does to a copy of the giver's replica.
void ApplyTo(FlatVector& replica, const Give& give) {
  ApplyParcel(*give.mass, give.steps != nullptr, absl::MakeSpan(replica));
}

// x' = (-1, 4, -2, 0): |x'|_1 / 4 = 1.75.
TEST(ChocoSgdTest, SignsAreIncrementsOfOneMagnitude) {
  Machine machine("choco-sgd",
                  {{"eta", 0.5}, {"compressor", std::string("sign")}}, Two(),
                  4);
  machine.Handle(PeerUp{Id("a")});
  machine.Handle(PeerUp{Id("b")});
  machine.gradient = {2, -8, 4, 0};
  machine.Handle(StepBegins{});
  EXPECT_EQ(machine.Handle(GradientReady{}), "give give wake");
  for (const Give& give : GivesOf(machine)) {
    ASSERT_NE(give.steps, nullptr);
    EXPECT_EQ(give.steps->bits, 1);
    EXPECT_EQ(give.steps->steps, std::vector<float>{3.5});
    EXPECT_EQ(*give.mass, (FlatVector{-1.75, 1.75, -1.75, 1.75}));
  }
  EXPECT_EQ(ReplicasOf(machine).replica(),
            (FlatVector{-1.75, 1.75, -1.75, 1.75}));
  // a's increments add up to its replica; what it sets replaces it.
  const auto came = [&](std::vector<float> values, uint64_t sequence,
                        bool increments) {
    MassArrived arrived = Mass("a", std::move(values), 0, sequence);
    arrived.increments = increments;
    machine.Handle(std::move(arrived));
  };
  came({1, 1, 1, 1}, 1, true);
  came({2, -1, 2, 2}, 2, true);
  came({0, 0, 0, 9}, 3, false);
  machine.Handle(TimerFired{1});
  const FlatVector& replica = *ReplicasOf(machine).replica_of(Id("a"));
  EXPECT_EQ(replica[0], 3);
  EXPECT_NEAR(replica[1], 0, 1e-30);
  EXPECT_NE(replica[1], 0);  // 0 would mean that it was never set
  EXPECT_EQ(replica[3], 9);
}

// b's link is down for a while: what waited is what entries are set to, and
// increments go on from there. At the end both know the same to the last bit.
TEST(ChocoSgdTest, IncrementsGoOnAfterALateParcel) {
  Machine machine("choco-sgd",
                  {{"eta", 0.5}, {"compressor", std::string("sign")}}, Two(),
                  4);
  machine.Handle(PeerUp{Id("a")});
  machine.Handle(PeerUp{Id("b")});
  std::map<NodeId, FlatVector> copies;
  std::map<NodeId, uint64_t> out;
  std::vector<bool> increments_to_b;
  const auto note = [&] {
    for (const Give& give : GivesOf(machine)) {
      FlatVector& copy = copies[give.to];
      copy.resize(4, 0.0F);
      ApplyTo(copy, give);
      out[give.to] = give.sequence;
      if (give.to == Id("b")) increments_to_b.push_back(give.steps != nullptr);
    }
  };
  for (int round = 0; round < 8; ++round) {
    const auto r = static_cast<float>(round);
    machine.gradient = {0.1F * r, -0.7F, r - 4, 0.3F};
    machine.Handle(StepBegins{});
    machine.Handle(GradientReady{});
    note();
    machine.Handle(Delivered{Id("a"), out[Id("a")], 0});
    note();
    if (round == 3 || round > 4) {
      machine.Handle(Delivered{Id("b"), out[Id("b")], 0});
      note();
    }
    machine.Handle(TimerFired{1});
    EXPECT_EQ(copies[Id("a")], ReplicasOf(machine).replica());
  }
  EXPECT_EQ(copies[Id("b")], ReplicasOf(machine).replica());
  // Rounds 0; 1 to 3 at once; 4 and 5, each when the one before was taken; ...
  EXPECT_EQ(increments_to_b,
            (std::vector<bool>{true, false, false, true, true}));
}

TEST(StepCodesTest, SignsContract) {
  Rng rng(91);
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<int64_t>(1 + rng.Below(1000));
    std::vector<float> v(n);
    for (float& value : v) {
      value = static_cast<float>(rng.Uniform() - 0.5) *
              (rng.Bernoulli(0.05) ? 100.0F : 1.0F);
    }
    StepCodes codes(1, 1, n);
    CodeSigns(0, v, std::vector<float>(n, 0.0F), codes);
    double whole = 0;
    double rest = 0;
    for (int64_t l = 0; l < n; ++l) {
      const double missing = static_cast<double>(v[l]) - codes.values[l];
      whole += static_cast<double>(v[l]) * v[l];
      rest += missing * missing;
    }
    EXPECT_LE(rest, (1 - 1 / 256.0) * whole * (1 + 1e-6)) << "n " << n;
  }
}

TEST(StepCodesTest, IncrementsStayFiniteAndNeverEndAtNothing) {
  FlatVector replica = {3e38F, -3e38F, 1, 5, 0};
  AddIncrements({3e38F, -3e38F, -1, 0, 0}, absl::MakeSpan(replica));
  EXPECT_EQ(replica[0], std::numeric_limits<float>::max());
  EXPECT_EQ(replica[1], std::numeric_limits<float>::lowest());
  EXPECT_EQ(replica[2], std::numeric_limits<float>::min());
  EXPECT_EQ(replica[3], 5);
  EXPECT_EQ(replica[4], 0);
}

// ------------------------------------------------------------------- beer ----

// Each of the two vectors has its own magnitude.
TEST(BeerTest, SignsOfBothReplicasTravelTogether) {
  Machine machine(
      "beer",
      {{"eta", 0.5}, {"gamma", 0.5}, {"compressor", std::string("sign")}},
      {{Id("a"), 0.25}});
  machine.Handle(PeerUp{Id("a")});
  machine.gradient = {2, 4};
  machine.Handle(StepBegins{});
  machine.Handle(GradientReady{});
  machine.gradient = {8, -4};
  EXPECT_EQ(machine.Handle(GradientReady{}), "give wake");
  const Give give = machine.Last<Give>();
  ASSERT_NE(give.steps, nullptr);
  EXPECT_EQ(give.steps->vectors, 2);
  EXPECT_EQ(*give.mass, (FlatVector{-1.5, -1.5, 6, -6}));
  // What goes from z is gamma W times the replica as it is now.
  EXPECT_EQ(RoundsOf(machine).conserved()[1], 0.125F * 6);
  machine.Handle(Delivered{Id("a"), 1, 0});
  MassArrived arrived = Mass("a", {1, 1, 4, 4}, 0, 1, 0.125);
  arrived.increments = true;
  EXPECT_EQ(machine.Handle(std::move(arrived)), "cancel done");
  EXPECT_EQ(RoundsOf(machine).conserved()[1], 0.125F * 6 + 0.5F);
}

// In round 0, everything is sent: x = (-1, -2), v = (1, 1).
std::unique_ptr<Machine> BeerAtExchange() {
  auto machine = std::make_unique<Machine>(
      "beer", KnobValues{{"eta", 0.5}, {"gamma", 0.5}, {"rate", 1.0}},
      std::vector<Neighbour>{{Id("a"), 0.25}});
  machine->Handle(PeerUp{Id("a")});
  machine->gradient = {2, 4};
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  EXPECT_EQ(machine->Handle(GradientReady{}), "gradient");
  EXPECT_EQ(machine->parameters, (std::vector<float>{-1, -2}));
  machine->gradient = {1, 1};
  EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
  return machine;
}

TEST(BeerTest, BothReplicasTravelInOneParcelAndMassWithThem) {
  auto machine = BeerAtExchange();
  EXPECT_EQ((*machine)->MassLength(2), 4);
  const Give give = machine->Last<Give>();
  EXPECT_EQ(*give.mass, (FlatVector{-1, -2, 1, 1}));
  EXPECT_EQ(give.scalars, std::vector<double>{0.125});  // gamma W
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -0.125);
  EXPECT_EQ(ReplicasOf(*machine).MassOf(give), (FlatVector{0.125, 0.125}));
  machine->Handle(Delivered{Id("a"), 1, 0});
  EXPECT_EQ(machine->Handle(Mass("a", {-1, -2, 3, 5}, 0, 1, 0.125)),
            "cancel done");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -0.125 + 3 * 0.125);
  // The mass of this round's g is not in the v that moves x.
  EXPECT_EQ(machine->Handle(StepBegins{}), "gradient");
  EXPECT_EQ(machine->parameters, (std::vector<float>{-1.5, -2.5}));
  EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
  EXPECT_EQ((*machine)->Auxiliary("v"), (FlatVector{1.25, 1.5}));
}

TEST(BeerTest, WhoHasNotGotTheLastParcelIsGivenNoMoreMass) {
  auto machine = BeerAtExchange();
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  machine->Handle(StepBegins{});
  machine->gradient = {3, 3};
  EXPECT_EQ(machine->Handle(GradientReady{}), "wake");
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -0.125);
  // The replica is brought up to date all the same.
  EXPECT_EQ(machine->Handle(Delivered{Id("a"), 1, 0}), "give");
  EXPECT_TRUE(machine->Last<Give>().scalars.empty());
  EXPECT_EQ(*machine->Last<Give>().mass, ReplicasOf(*machine).replica());
  // a's late parcel, and a repeat, count once.
  machine->Handle(Mass("a", {0, 0, 8, 8}, 0, 1, 0.125));
  machine->Handle(Mass("a", {0, 0, 8, 8}, 0, 1, 0.125));
  machine->Handle(TimerFired{1});
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -0.125 + 1);
}

// Parcels of later rounds wait, and the sum over nodes sees them; the third is
// too many.
TEST(BeerTest, MassThatWaitsForItsRoundIsNotLost) {
  auto machine = BeerAtExchange();
  std::vector<float> held(2, 0.0F);
  machine->Handle(Mass("a", {0, 0, 8, 8}, 5, 1, 0.125));
  machine->Handle(Mass("a", {0, 0, 16, 0}, 6, 2, 0.125));
  EXPECT_EQ(RoundsOf(*machine).AddUnsettled(absl::MakeSpan(held)), 0.25);
  EXPECT_EQ(held, (std::vector<float>{1 + 2, 1 + 1}));
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -0.125);
  machine->Handle(Mass("a", {0, 0, 24, 0}, 7, 3, 0.125));
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], -0.125 + 1);
}

TEST(BeerTest, ANewEpochBeginsTrackersAtTheGradient) {
  auto machine = BeerAtExchange();
  machine->Handle(Mass("a", {5, 5, 3, 5}, 0, 1, 0.125));
  machine->Handle(EpochBegins{});
  EXPECT_EQ(RoundsOf(*machine).conserved()[0], 0);
  EXPECT_EQ(machine->Handle(TimerFired{1}), "missed cancel done");
  machine->Handle(StepBegins{});
  EXPECT_EQ(machine->parameters, (std::vector<float>{-1.5, -2.5}));
  machine->gradient = {7, 7};
  EXPECT_EQ(machine->Handle(GradientReady{}), "give wake");
  EXPECT_EQ((*machine)->Auxiliary("v"), (FlatVector{7, 7}));
}

// --------------------------------------------------------------- anq-nids ----

// Two bits: l in {-2, .., 1}, d = 2 R/3.
TEST(AnqNidsTest, SendsCodesInARangeThatShrinksOrWidens) {
  const KnobValues knobs = {
      {"alpha", 1.0}, {"R0", 1.5}, {"rho", 0.5}, {"bits", int64_t{2}}};
  Machine machine("anq-nids", knobs, {{Id("a"), 0.5}}, 3);
  machine.Handle(PeerUp{Id("a")});
  machine.gradient = {-0.4F, 1.4F, 0};
  machine.Handle(StepBegins{});
  EXPECT_EQ(machine.Handle(GradientReady{}), "give wake");
  EXPECT_EQ(ReplicasOf(machine).replica(), (FlatVector{0.5, -1.5, 0.5}));
  const Give give = machine.Last<Give>();
  ASSERT_NE(give.steps, nullptr);
  EXPECT_EQ(give.steps->bits, 2);
  EXPECT_EQ(*give.mass, ReplicasOf(machine).replica());
  EXPECT_EQ(machine.Gauge("range"), 0.75);
  // u gives W/2 h.
  EXPECT_EQ(RoundsOf(machine).conserved()[1], 0.25F * 1.5F);
  // a's is the same: no difference.
  machine.Handle(Delivered{Id("a"), 1, 0});
  machine.Handle(Mass("a", {0.5, -1.5, 0.5}, 0, 1, 0.25));
  EXPECT_EQ(machine.parameters[1], -1.4F);
  machine.gradient = {0, 100, 0};
  machine.Handle(StepBegins{});
  machine.Handle(GradientReady{});
  EXPECT_EQ(machine.Gauge("range"), 1.5);
  machine.Handle(EpochBegins{});
  EXPECT_EQ(machine.Gauge("range"), 1.5);
  EXPECT_EQ(RoundsOf(machine).conserved()[1], 0);
}

}  // namespace
}  // namespace dfl::core
