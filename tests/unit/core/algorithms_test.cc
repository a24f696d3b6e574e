// The algorithms as state machines, event by event; the arithmetic they share
// against naive versions.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/pame.h"
#include "daemon/core/rounds/push_barrier.h"
#include "daemon/core/vector/flat_vector.h"
#include "gtest/gtest.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

// ------------------------------------------------------------ PushBarrier ----

class PushBarrierTest : public testing::Test {
 protected:
  PushBarrierTest() : barrier_({{Id("a"), 0.3}, {Id("b"), 0.2}}) {}

  void Up(const std::string& peer) { barrier_.SetUp(Id(peer), true); }
  void Down(const std::string& peer) { barrier_.SetUp(Id(peer), false); }
  void Begin() { barrier_.BeginRound(barrier_.peers()); }
  // `peer` pushed its value of `step`, while we are in `round`.
  void Add(const std::string& peer, int64_t step, int64_t round,
           int64_t max_lag = 1) {
    barrier_.Add(Id(peer), Model({static_cast<float>(step)}, step), round,
                 max_lag);
  }
  // The steps taken for `round`, in the order of neighbours.
  std::vector<int64_t> Take(int64_t round, int64_t max_lag = 1) {
    std::vector<int64_t> steps;
    for (const auto& arrival : barrier_.Take(round, max_lag)) {
      steps.push_back(arrival.model.step);
    }
    return steps;
  }

  PushBarrier barrier_;
};

using Steps = std::vector<int64_t>;

TEST_F(PushBarrierTest, NobodyUpIsComplete) {
  Begin();
  EXPECT_TRUE(barrier_.Complete(5));
  EXPECT_EQ(Take(5), Steps());
}

TEST_F(PushBarrierTest, WaitsForEveryNeighbourThatIsUp) {
  Up("a");
  Up("b");
  Up("stranger");  // linked, but no neighbour
  Begin();
  EXPECT_FALSE(barrier_.Complete(5));
  Add("a", 5, 5);
  EXPECT_FALSE(barrier_.Complete(5));
  const Missed missing = barrier_.Missing(5);
  EXPECT_EQ(missing.peers, std::vector<NodeId>{Id("b")});
  EXPECT_EQ(missing.wanted, 2);
  EXPECT_EQ(missing.came, 1);
  Add("b", 5, 5);
  EXPECT_TRUE(barrier_.Complete(5));
  EXPECT_EQ(Take(5), (Steps{5, 5}));
  Begin();
  EXPECT_FALSE(barrier_.Complete(6));
  EXPECT_EQ(barrier_.dropped(), 0);
}

TEST_F(PushBarrierTest,
       OneThatWasSilentWhenTheRoundBeganIsWaitedForOnceItSpeaks) {
  Up("a");
  Up("b");
  Begin();
  barrier_.SetSilent(Id("a"));
  Begin();
  EXPECT_FALSE(barrier_.Awaits(Id("a"), 6));
  Up("a");
  barrier_.AwaitAgain(Id("a"));
  EXPECT_TRUE(barrier_.Awaits(Id("a"), 6));
  // One whose link is gone knows of no round.
  Down("a");
  Begin();
  Up("a");
  barrier_.AwaitAgain(Id("a"));
  EXPECT_FALSE(barrier_.Awaits(Id("a"), 7));
}

TEST_F(PushBarrierTest, OneThatGoesDownIsNotWaitedForButItsValueIsUsed) {
  Up("a");
  Up("b");
  Begin();
  Add("a", 5, 5);
  Down("a");
  Down("b");
  EXPECT_TRUE(barrier_.Complete(5));
  EXPECT_EQ(Take(5), Steps{5});
}

TEST_F(PushBarrierTest, OneThatComesUpDuringARoundIsWaitedForInTheNext) {
  Up("a");
  Begin();
  Up("b");
  Add("a", 5, 5);
  EXPECT_TRUE(barrier_.Complete(5));
  EXPECT_EQ(Take(5), Steps{5});
  Begin();
  Add("a", 6, 6);
  EXPECT_FALSE(barrier_.Complete(6));
}

TEST_F(PushBarrierTest, AValueOneRoundOldIsUsedAtTheDeadlineButOnlyOnce) {
  Up("a");
  Begin();
  Add("a", 4, 5);
  EXPECT_FALSE(barrier_.Complete(5));  // the present one may still come
  EXPECT_EQ(Take(5), Steps{4});
  EXPECT_EQ(Take(6), Steps());
  Add("a", 6, 7, /*max_lag=*/0);
  EXPECT_EQ(Take(7, 0), Steps());
  EXPECT_EQ(barrier_.dropped(), 1);
}

TEST_F(PushBarrierTest, OlderValuesAreCountedAndDropped) {
  Add("a", 3, 5);
  EXPECT_EQ(barrier_.dropped(), 1);
  Add("a", 4, 5);
  Add("a", 5, 5);
  EXPECT_EQ(Take(5), Steps{5});  // 4 goes unused
  EXPECT_EQ(barrier_.dropped(), 2);
  Add("stranger", 5, 5);
  EXPECT_EQ(barrier_.dropped(), 3);
}

TEST_F(PushBarrierTest, ValuesOfLaterRoundsWait) {
  Up("a");
  Begin();
  Add("a", 6, 5);
  EXPECT_TRUE(barrier_.Complete(5));  // it will not send 5 any more
  EXPECT_EQ(Take(5), Steps());
  EXPECT_TRUE(barrier_.Complete(6));
  EXPECT_EQ(Take(6), Steps{6});
}

TEST_F(PushBarrierTest, HoldsTwoValuesANeighbourAtMost) {
  for (int64_t step = 5; step < 100; ++step) Add("a", step, 5);
  EXPECT_EQ(barrier_.dropped(), 93);
  Add("a", 99, 5);  // a repeat takes the place of the first
  EXPECT_EQ(barrier_.dropped(), 93);
  EXPECT_EQ(Take(99), Steps{99});
}

TEST_F(PushBarrierTest, FormerNeighboursLeaveNothingBehind) {
  Up("a");
  Add("a", 5, 5);
  barrier_.SetNeighbours({{Id("b"), 0.5}});
  Begin();
  EXPECT_TRUE(barrier_.Complete(5));
  EXPECT_EQ(Take(5), Steps());
  barrier_.SetNeighbours({{Id("a"), 0.4}, {Id("b"), 0.5}});
  EXPECT_EQ(Take(5), Steps());  // it was dropped
  Begin();
  EXPECT_FALSE(barrier_.Complete(6));  // and a is known to be up
}

// ------------------------------------------------------------------- PaME ----

TEST(PameParticipantsTest, FollowsTheExperimentsCeiling) {
  const std::vector<std::tuple<double, int64_t, int64_t>> cases = {
      {0.5, 0, 1},  {1.0, 0, 1},  {0.5, 1, 1},  {0.01, 7, 1}, {0.5, 4, 2},
      {0.5, 5, 3},  {0.2, 5, 1},  {0.2, 6, 2},  {1.0, 7, 7},  {0.3, 10, 3},
      {0.7, 10, 7}, {0.1, 30, 3}, {0.35, 20, 7}};
  for (const auto& [nu, neighbours, want] : cases) {
    EXPECT_EQ(PameParticipants(nu, neighbours), want)
        << "nu " << nu << ", " << neighbours << " neighbours";
  }
}

KnobValues PameKnobs(KnobValues more = {}) {
  KnobValues knobs = {{"nu", 1.0},
                      {"kappa", IntRange{2, 2}},
                      {"sigma0", 2.0},
                      {"gamma", 1.5},
                      {"lookahead", int64_t{0}}};
  for (auto& [name, value] : more) knobs[name] = value;
  return knobs;
}

TEST(PameTest, AsksMixesAndSteps) {
  Machine m("pame", PameKnobs(), Three());
  m.parameters = {1, 1};
  EXPECT_EQ(m.Handle(StepBegins{}), "ask wake");
  const Ask ask = m.Last<Ask>();
  EXPECT_EQ(ask.peers.size(), 3U);
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m.Handle(AnswerArrived{Id("a"), ask.ask, Model({2, 4}, 0, {3})}),
            "");
  EXPECT_EQ(m.Handle(AnswerArrived{Id("b"), ask.ask, Model({4, 4}, 9, {3})}),
            "");
  EXPECT_EQ(m.Handle(AnswerArrived{Id("c"), ask.ask, Model({3, 4}, 1, {6})}),
            "cancel gradient");
  EXPECT_FALSE(m->parameters_settled());
  EXPECT_EQ(m.parameters, (std::vector<float>{3, 4}));
  EXPECT_EQ(m.buffers, std::vector<float>{3});  // mean of own and received
  m.gradient = {6, 12};
  EXPECT_EQ(m.Handle(GradientReady{}), "done");
  // 1/(sigma m) = 1/6.
  EXPECT_EQ(m.parameters, (std::vector<float>{2, 2}));
  EXPECT_EQ(m->step(), 1);
  EXPECT_EQ(m.Gauge("sigma"), 3);
  EXPECT_TRUE(m->parameters_settled());
  // Step 1 is no exchange: m stays.
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  m.gradient = {9, 9};
  EXPECT_EQ(m.Handle(GradientReady{}), "done");
  EXPECT_EQ(m.parameters, (std::vector<float>{1, 1}));
}

TEST(PameTest, ADeadlineWithoutAnswersKeepsModelAndM) {
  Machine m("pame", PameKnobs(), Three());
  m.parameters = {1, 2};
  EXPECT_EQ(m.Handle(StepBegins{}), "ask wake");
  const uint64_t timer = m.Last<WakeAfter>().timer;
  EXPECT_EQ(m.Handle(TimerFired{timer + 5}), "");  // another's
  EXPECT_EQ(m.Handle(TimerFired{timer}), "missed cancel cancel-ask gradient");
  EXPECT_EQ(m.Last<Missed>().peers.size(), 3U);
  EXPECT_EQ(m.Last<Missed>().wanted, 3);
  EXPECT_EQ(m.Last<Missed>().came, 0);
  EXPECT_EQ(m.parameters, (std::vector<float>{1, 2}));
  EXPECT_TRUE(m->parameters_settled());  // nothing was mixed
  EXPECT_EQ(m.Gauge("m"), 3);
  EXPECT_EQ(m.Handle(TimerFired{timer}), "");  // late
}

TEST(PameTest, WithSomeAnswersAtTheDeadlineMIsTheirNumber) {
  Machine m("pame", PameKnobs(), Three());
  m.Handle(StepBegins{});
  const uint64_t ask = m.Last<Ask>().ask;
  const uint64_t timer = m.Last<WakeAfter>().timer;
  m.Handle(AnswerArrived{Id("b"), ask, Model({8, 8}, 0, {0})});
  EXPECT_EQ(m.Handle(AnswerMissing{Id("c"), ask}), "");
  EXPECT_EQ(m.Handle(TimerFired{timer}), "missed cancel cancel-ask gradient");
  EXPECT_EQ(m.Last<Missed>().peers, std::vector<NodeId>{Id("a")});
  EXPECT_EQ(m.Last<Missed>().came, 1);
  EXPECT_EQ(m.Gauge("m"), 1);
  EXPECT_EQ(m.parameters, (std::vector<float>{8, 8}));
  // Late, twice, or from nobody who was asked: ignored.
  EXPECT_EQ(m.Handle(AnswerArrived{Id("a"), ask, Model({9, 9}, 0, {0})}), "");
  EXPECT_EQ(m.Handle(AnswerArrived{Id("b"), ask, Model({9, 9}, 0, {0})}), "");
  EXPECT_EQ(m.Handle(AnswerMissing{Id("a"), ask}), "");
  EXPECT_EQ(m.parameters, (std::vector<float>{8, 8}));
}

TEST(PameTest, WhenAllAnswersAreMissingItGoesOnAtOnce) {
  Machine m("pame", PameKnobs(), Three());
  m.Handle(StepBegins{});
  const uint64_t ask = m.Last<Ask>().ask;
  m.Handle(AnswerMissing{Id("a"), ask});
  m.Handle(AnswerMissing{Id("b"), ask});
  EXPECT_EQ(m.Handle(AnswerMissing{Id("c"), ask}), "cancel gradient");
}

TEST(PameTest, TheFirstAnswersCountAndStragglersAreDropped) {
  Machine m("pame", PameKnobs({{"nu", 0.3}, {"extra_asked", int64_t{5}}}),
            Three());
  m.Handle(StepBegins{});
  const Ask ask = m.Last<Ask>();
  EXPECT_EQ(ask.peers.size(), 3U);  // all there are
  EXPECT_EQ(m.Handle(AnswerArrived{Id("c"), ask.ask, Model({5, 5}, 0, {0})}),
            "cancel cancel-ask gradient");
  EXPECT_EQ(m.Gauge("m"), 1);
  EXPECT_EQ(m.parameters, (std::vector<float>{5, 5}));
}

TEST(PameTest, AsksOneStepAheadWhileItComputes) {
  Machine m("pame", PameKnobs({{"lookahead", int64_t{1}}}), Three());
  // k = 0: nothing was asked before.
  EXPECT_EQ(m.Handle(StepBegins{}), "ask wake");
  uint64_t ask = m.Last<Ask>().ask;
  for (const char* peer : {"a", "b", "c"}) {
    m.Handle(AnswerArrived{Id(peer), ask, Model({1, 1}, 0, {0})});
  }
  m.Handle(GradientReady{});
  // k = 1: the asks for 2 go out with the gradient.
  EXPECT_EQ(m.Handle(StepBegins{}), "ask gradient");
  ask = m.Last<Ask>().ask;
  for (const char* peer : {"a", "b", "c"}) {
    EXPECT_EQ(m.Handle(AnswerArrived{Id(peer), ask, Model({7, 7}, 0, {0})}),
              "");
  }
  EXPECT_EQ(m.parameters, (std::vector<float>{1, 1}));  // not mixed yet
  EXPECT_EQ(m.Handle(GradientReady{}), "done");
  // k = 2: all are there.
  EXPECT_EQ(m.Handle(StepBegins{}), "cancel gradient");
  EXPECT_EQ(m.parameters, (std::vector<float>{7, 7}));
}

TEST(PameTest, AnAskIsAnsweredWithFreshCoordinates) {
  Machine m("pame", PameKnobs({{"p", 0.25}}), Three());
  EXPECT_EQ(m.Handle(AskArrived{Id("b"), 42}), "answer");
  const Answer first = m.Last<Answer>();
  EXPECT_EQ(first.to, Id("b"));
  EXPECT_EQ(first.ask, 42U);
  EXPECT_EQ(first.rate, 0.25);
  m.Handle(AskArrived{Id("b"), 43});
  EXPECT_NE(m.Last<Answer>().seed, first.seed);
}

TEST(PameTest, ANewSigma0KeepsTheGrowthSoFar) {
  Machine m("pame", PameKnobs(), {});
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(m.Handle(StepBegins{}), "gradient");  // alone
    m.Handle(GradientReady{});
  }
  EXPECT_EQ(m.Gauge("sigma"), 2 * 1.5 * 1.5 * 1.5);
  EXPECT_EQ(m.Handle(PlanChanged{m.Plan(PameKnobs({{"sigma0", 6.0}}), {})}),
            "");
  EXPECT_DOUBLE_EQ(m.Gauge("sigma"), 6 * 1.5 * 1.5 * 1.5);
  m.Handle(PlanChanged{m.Plan(
      PameKnobs({{"sigma0", 6.0}, {"kappa", IntRange{3, 4}}}), Three())});
  EXPECT_EQ(m.Gauge("kappa"), 3);
  EXPECT_EQ(m.Handle(StepBegins{}), "ask wake");  // k = 3
}

TEST(PameTest, TakenUpAtAStepItHasThatStepsSigma) {
  Machine m("pame", PameKnobs(), Three());
  m.Handle(Started{4});
  EXPECT_EQ(m->step(), 4);
  EXPECT_EQ(m->gradients(), 4) << "the model comes with them";
  EXPECT_DOUBLE_EQ(m.Gauge("sigma"), 2 * 1.5 * 1.5 * 1.5 * 1.5);
}

// ------------------------------------------------- d-psgd, decefl, local ----

TEST(DpsgdTest, PushesComputesWaitsAndMixes) {
  Machine m("d-psgd", {{"eta", 0.5}}, {{Id("a"), 0.5}, {Id("b"), 0.25}});
  m.parameters = {4, 0};
  m.Handle(PeerUp{Id("a")});
  m.Handle(PeerUp{Id("b")});
  EXPECT_EQ(m.Handle(StepBegins{}), "push gradient");
  EXPECT_EQ(m.Last<Push>().peers.size(), 2U);
  EXPECT_EQ(m.Last<Push>().round, 0);
  EXPECT_EQ(m.Handle(PushArrived{Id("a"), Model({8, 0}, 0, {2})}), "");
  m.gradient = {2, 2};
  EXPECT_EQ(m.Handle(GradientReady{}), "wake");
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m.Handle(PushArrived{Id("b"), Model({0, 4}, 0, {4})}),
            "cancel done");
  // 4 + (4)/2 + (-4)/4 - 1, 0 + 0 + 1 - 1.
  EXPECT_EQ(m.parameters, (std::vector<float>{4, 0}));
  EXPECT_EQ(m.buffers, std::vector<float>{2});  // 0 + 1 + 1
  EXPECT_EQ(m->step(), 1);
}

// A silent neighbour is not waited for; one that speaks again in the same round
// is, and one whose link is new is not.
TEST(DpsgdTest, WaitsAgainForANeighbourThatWasSilentInTheRound) {
  Machine m("d-psgd", {{"eta", 1.0}}, {{Id("a"), 0.5}});
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  m.Handle(PeerDown{Id("a"), /*silent=*/true});
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  m.Handle(PeerUp{Id("a"), /*heard_again=*/true});
  m.Handle(StepBegins{});
  m.Handle(PeerDown{Id("a"), /*silent=*/true});
  m.Handle(PeerUp{Id("a"), /*heard_again=*/true});
  EXPECT_EQ(m.Handle(GradientReady{}), "wake");
  m.Handle(PushArrived{Id("a"), Model({0, 0}, 1, {0})});
  m.Handle(StepBegins{});
  m.Handle(PeerDown{Id("a")});
  m.Handle(PeerUp{Id("a")});
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  EXPECT_EQ(m->step(), 3);
}

TEST(DpsgdTest, GoesOnAtTheDeadlineAndWhenTheLastAwaitedGoesDown) {
  Machine m("d-psgd", {{"eta", 1.0}}, {{Id("a"), 0.5}});
  m.parameters = {1, 1};
  m.gradient = {1, 1};
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Handle(GradientReady{}), "wake");
  EXPECT_EQ(m.Handle(TimerFired{m.Last<WakeAfter>().timer}),
            "missed cancel done");
  EXPECT_EQ(m.Last<Missed>().peers, std::vector<NodeId>{Id("a")});
  EXPECT_EQ(m.parameters, (std::vector<float>{0, 0}));
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Handle(GradientReady{}), "wake");
  EXPECT_EQ(m.Handle(PeerDown{Id("a")}), "cancel done");
  // Nobody up: no wait at all.
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  EXPECT_EQ(m->step(), 3);
  m->JumpTo(10);
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Last<Push>().round, 10);
}

TEST(DeceflTest, FormGradientDecaysItsStep) {
  Machine m("decefl", {{"delta", 6.0}, {"Gamma", 2.0}}, {});
  m.gradient = {1, 1};
  for (const float want : {-3.0F, -5.0F, -6.5F}) {  // 6/2, 6/3, 6/4
    EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
    EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
    EXPECT_EQ(m.parameters[0], want);
  }
}

TEST(DeceflTest, FormLocalMixesTheRoundsStartAndKeepsTheLocalProgress) {
  Machine m("decefl",
            {{"form", std::string("local")},
             {"E", int64_t{2}},
             {"eta", 1.0},
             {"mu", 0.5}},
            {{Id("a"), 0.25}});
  m.parameters = {8, 8};
  m.gradient = {1, 2};
  m.Handle(PeerUp{Id("a")});
  EXPECT_EQ(m.Handle(StepBegins{}), "push gradient");
  EXPECT_FALSE(m->parameters_settled());
  EXPECT_EQ(m.Handle(PushArrived{Id("a"), Model({0, 16}, 0, {0})}), "");
  EXPECT_EQ(m.Handle(GradientReady{}), "gradient");
  EXPECT_EQ(m.parameters, (std::vector<float>{7, 6}));
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  // 8 - 8/4 - 0.5 * 2, 8 + 8/4 - 0.5 * 4.
  EXPECT_EQ(m.parameters, (std::vector<float>{5, 8}));
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m->gradients(), 2);
}

TEST(LocalTest, TakesTheStepsOfPameAloneWhenSigma0IsSet) {
  Machine local("local", {{"sigma0", 2.0}, {"gamma", 1.5}}, {});
  Machine pame("pame", PameKnobs(), {});
  for (int k = 0; k < 20; ++k) {
    for (Machine* m : {&local, &pame}) {
      m->gradient = {static_cast<float>(k), 1.5F};
      EXPECT_EQ(m->Handle(StepBegins{}), "gradient");
      EXPECT_EQ(m->Handle(GradientReady{}), "done");
    }
    ASSERT_EQ(local.parameters[1], pame.parameters[1]) << "step " << k;
  }
}

// ----------------------------------------------------------- flat vectors ----

std::vector<int64_t> RandomCoordinates(Rng& rng, int64_t n, int64_t s) {
  std::vector<int64_t> all(n);
  for (int64_t l = 0; l < n; ++l) all[l] = l;
  rng.Shuffle(absl::MakeSpan(all));
  all.resize(s);
  std::sort(all.begin(), all.end());
  return all;
}

// The shapes that matter to blocks: below, at and above a block's length.
class FlatVectorTest : public testing::TestWithParam<int64_t> {};

TEST_P(FlatVectorTest, PartialMeanAndMixingAgreeWithNaiveOnes) {
  const int64_t n = GetParam();
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Rng rng(kSeed);
  std::vector<float> own(n);
  for (float& value : own) value = static_cast<float>(Normal(rng));
  std::vector<std::unique_ptr<PlainRemoteVector>> vectors;
  std::vector<std::vector<double>> values;
  std::vector<std::vector<bool>> carried;
  for (int j = 0; j < 4; ++j) {
    const int64_t s = j == 0 ? n : std::max<int64_t>(1, n / (j + 1));
    const auto coordinates = RandomCoordinates(rng, n, s);
    std::vector<float> sent;
    values.emplace_back(n, 0.0);
    carried.emplace_back(n, false);
    for (const int64_t l : coordinates) {
      // Zeros that were transmitted count.
      sent.push_back(l % 7 == 0 ? 0.0F : static_cast<float>(Normal(rng)));
      values.back()[l] = sent.back();
      carried.back()[l] = true;
    }
    vectors.push_back(
        std::make_unique<PlainRemoteVector>(n, coordinates, sent));
  }
  // Without the dense one, so that some coordinates have nobody.
  std::vector<float> mean = own;
  PartialMean(std::vector<RemoteVector*>{vectors[1].get(), vectors[2].get(),
                                         vectors[3].get()},
              absl::MakeSpan(mean));
  std::vector<float> mixed = own;
  const double weights[] = {0.1, 0.2, 0.3, 0.15};
  std::vector<WeightedVector> weighted;
  for (int j = 0; j < 4; ++j) {
    weighted.push_back(WeightedVector{vectors[j].get(), weights[j]});
  }
  MixDifferences(weighted, absl::MakeSpan(mixed));
  for (int64_t l = 0; l < n; ++l) {
    double sum = 0;
    int count = 0;
    double want = own[l];
    for (int j = 0; j < 4; ++j) {
      if (!carried[j][l]) continue;
      want += weights[j] * (values[j][l] - own[l]);
      if (j > 0) {
        sum += values[j][l];
        ++count;
      }
    }
    ASSERT_NEAR(mixed[l], want, 1e-6) << "coordinate " << l;
    if (count == 0) {
      ASSERT_EQ(mean[l], own[l]) << "coordinate " << l;
    } else {
      ASSERT_NEAR(mean[l], sum / count, 1e-6) << "coordinate " << l;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, FlatVectorTest,
                         testing::Values(1, 2, 100, 2047, 2048, 2049, 5000));

TEST(FlatVector, EqualVectorsAreAFixedPoint) {
  Rng rng(6);
  std::vector<float> own(3000);
  for (float& value : own) value = static_cast<float>(Normal(rng) * 1e3);
  const std::vector<float> before = own;
  PlainRemoteVector a(own);
  PlainRemoteVector b(own);
  PartialMean(std::vector<RemoteVector*>{&a, &b}, absl::MakeSpan(own));
  EXPECT_EQ(own, before);
  MixDifferences(std::vector<WeightedVector>{{&a, 0.3}, {&b, 1.0 / 3}},
                 absl::MakeSpan(own));
  EXPECT_EQ(own, before);
}

// [PaME] Theorem 1: where somebody holds a coordinate, the partial mean is an
// unbiased estimate of the mean of the neighbours' models; the share of
// coordinates that nobody holds is (1 - s/n)^m.
TEST(FlatVector, ThePartialMeanIsUnbiased) {
  constexpr uint64_t kSeed = 7;
  constexpr int64_t kLength = 8;
  constexpr int64_t kSent = 2;
  constexpr int kNeighbours = 3;
  constexpr int kDraws = 40'000;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Rng rng(kSeed);
  std::vector<std::vector<float>> w(kNeighbours, std::vector<float>(kLength));
  std::vector<double> want(kLength, 0.0);
  for (auto& model : w) {
    for (int64_t l = 0; l < kLength; ++l) {
      model[l] = static_cast<float>(Normal(rng));
      want[l] += model[l] / kNeighbours;
    }
  }
  std::vector<double> sum(kLength, 0.0);
  std::vector<double> squares(kLength, 0.0);
  std::vector<int64_t> held(kLength, 0);
  constexpr float kOwn = 1000;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<std::unique_ptr<PlainRemoteVector>> messages;
    std::vector<RemoteVector*> pointers;
    for (const auto& model : w) {
      const auto coordinates = RandomCoordinates(rng, kLength, kSent);
      std::vector<float> values;
      for (const int64_t l : coordinates) values.push_back(model[l]);
      messages.push_back(
          std::make_unique<PlainRemoteVector>(kLength, coordinates, values));
      pointers.push_back(messages.back().get());
    }
    std::vector<float> own(kLength, kOwn);
    PartialMean(pointers, absl::MakeSpan(own));
    for (int64_t l = 0; l < kLength; ++l) {
      if (own[l] == kOwn) continue;
      ++held[l];
      sum[l] += own[l];
      squares[l] += static_cast<double>(own[l]) * own[l];
    }
  }
  const double nobody = std::pow(1 - 2.0 / 8, kNeighbours);
  for (int64_t l = 0; l < kLength; ++l) {
    const auto count = static_cast<double>(held[l]);
    EXPECT_NEAR(1 - count / kDraws, nobody, 0.01);
    const double mean = sum[l] / count;
    const double deviation =
        std::sqrt((squares[l] / count - mean * mean) / count);
    // Four deviations, and the rounding of values near 1,000.
    EXPECT_NEAR(mean, want[l], 4 * deviation + 1e-4) << "coordinate " << l;
  }
}

// -------------------------------------------------------------- decisions ----

TEST(SeededDecisions, ChoosesNeighboursUniformlyWithoutReplacement) {
  SeededDecisions decisions(8);
  std::vector<NodeId> all;
  for (int i = 0; i < 6; ++i) all.push_back(Id(absl::StrCat("n", i)));
  std::vector<int> counts(6, 0);
  for (int draw = 0; draw < 6000; ++draw) {
    auto chosen = decisions.ChooseNeighbours(all, 2);
    ASSERT_EQ(chosen.size(), 2U);
    ASSERT_NE(chosen[0], chosen[1]);
    for (const NodeId& id : chosen) {
      ++counts[std::find(all.begin(), all.end(), id) - all.begin()];
    }
  }
  for (const int count : counts) EXPECT_NEAR(count, 2000, 160);
}

TEST(SeededDecisions, DrawsItsPeriodOnceWhateverTheStream) {
  SeededDecisions first(9, 1);
  SeededDecisions second(9, 2);
  const IntRange range{5, 10};
  const int64_t kappa = first.DrawFrom("kappa", range);
  EXPECT_GE(kappa, 5);
  EXPECT_LE(kappa, 10);
  EXPECT_EQ(first.DrawFrom("kappa", range), kappa);
  EXPECT_EQ(second.DrawFrom("kappa", range), kappa);
  EXPECT_NE(first.NameCoordinates(Id("a")), second.NameCoordinates(Id("a")));
  std::vector<bool> seen(6, false);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    seen[SeededDecisions(seed).DrawFrom("kappa", range) - 5] = true;
  }
  EXPECT_EQ(seen, std::vector<bool>(6, true));
}

// ------------------------------------------------- steps without gradients --

// Such a step is not counted, moves no step size and takes no momentum on.
TEST(NoGradientTest, IsNoStep) {
  const std::vector<std::pair<std::string, KnobValues>> all = {
      {"local", {{"sigma0", 2.0}, {"gamma", 1.5}}},
      {"pame", {{"sigma0", 2.0}, {"gamma", 1.5}}},
      {"decefl", {{"delta", 1.0}, {"Gamma", 1.0}}},
      {"dfedavgm", {{"theta", 0.9}, {"K", int64_t{1}}}},
      {"choco-sgd", {}}};
  for (const auto& [name, knobs] : all) {
    SCOPED_TRACE(name);
    Machine m(name, knobs, {});
    m.gradient = {1, 1};
    for (int k = 0; k < 3; ++k) {
      m.Handle(StepBegins{});
      m.Handle(GradientReady{0.5, 8});
    }
    EXPECT_EQ(m->gradients(), 3);
    const double step_size = m.Gauge("step_size");
    const std::vector<float> model = m.parameters;
    m.gradient = {0, 0};
    GradientReady none;
    none.none = true;
    for (int k = 0; k < 5; ++k) {
      m.Handle(StepBegins{});
      m.Handle(none);
    }
    EXPECT_EQ(m->gradients(), 3);
    EXPECT_DOUBLE_EQ(m.Gauge("step_size"), step_size);
    EXPECT_EQ(m.parameters, model);
    m.gradient = {1, 1};
    m.Handle(StepBegins{});
    m.Handle(GradientReady{0.5, 8});
    EXPECT_EQ(m->gradients(), 4);
    EXPECT_NE(m.parameters, model);
  }
}

// A neighbour's distance is measured over what came.
TEST(DistanceTest, IsOverTheCoordinatesThatCame) {
  const std::vector<float> own = {1, 2, 3, 4};
  PlainRemoteVector whole({1, 4, 3, 0});
  Distance distance = DistanceTo(whole, own);
  EXPECT_DOUBLE_EQ(distance.squares, 20);
  EXPECT_DOUBLE_EQ(distance.own_squares, 30);
  PlainRemoteVector part(4, {1}, {5});
  distance = DistanceTo(part, own);
  EXPECT_DOUBLE_EQ(distance.squares, 9);
  EXPECT_DOUBLE_EQ(distance.own_squares, 30);
}

}  // namespace
}  // namespace dfl::core
