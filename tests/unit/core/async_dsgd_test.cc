// Asynchronous DSGD and its baselines, event by event and against a naive
// version on quadratics.
#include "daemon/core/algorithms/async_dsgd.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

using Vector = std::vector<double>;

constexpr uint64_t kClockTimer = 3;

KnobValues Given(double q, KnobValues more = {}) {
  KnobValues knobs = {{"eta", 1.0}, {"measure_q", false}, {"q", q}};
  for (auto& [name, value] : more) knobs[name] = value;
  return knobs;
}

// "wake" of a clock or a deadline: the timer and how long.
WakeAfter Wake(const Machine& m) { return m.Last<WakeAfter>(); }

RemoteModel Said(std::vector<float> values, int64_t step,
                 std::vector<double> scalars) {
  RemoteModel model = Model(std::move(values), step, {0});
  model.scalars = std::move(scalars);
  return model;
}

// -------------------------------------------------------- StragglerRate ----

TEST(StragglerRateTest, IsTheShareOfTheLastFiftyRounds) {
  StragglerRate rate;
  EXPECT_EQ(rate.q(), 0);
  rate.Count(true);
  EXPECT_DOUBLE_EQ(rate.q(), 0.02);  // rounds to come count as on time
  for (int r = 0; r < 49; ++r) rate.Count(r % 2 == 0);
  EXPECT_DOUBLE_EQ(rate.q(), 26 / 50.0);
  for (int r = 0; r < 60; ++r) rate.Count(true);
  EXPECT_DOUBLE_EQ(rate.q(), 0.99);  // clipped
  for (int r = 0; r < 49; ++r) rate.Count(false);
  EXPECT_DOUBLE_EQ(rate.q(), 0.02);
  rate.Count(false);
  EXPECT_EQ(rate.q(), 0);
}

// ------------------------------------------------------------- one node ----

TEST(AsyncDsgdTest, AppliesTheGradientAtTheBarrierAndMixesByDegrees) {
  Machine m("async-dsgd", Given(0, {{"xi", 0.5}, {"gamma_max", 3.0}}),
            {{Id("a"), 0}, {Id("b"), 0}, {Id("c"), 0}});
  m.parameters = {4, 4};
  m.Handle(PeerUp{Id("a")});
  m.Handle(PeerUp{Id("b")});
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient wake");
  const WakeAfter clock = Wake(m);
  EXPECT_EQ(clock.delay, absl::Seconds(3));
  m.gradient = {2, 0};
  EXPECT_EQ(m.Handle(GradientReady{}), "");  // waits for the barrier
  EXPECT_EQ(m.parameters, (std::vector<float>{4, 4}));
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m.Handle(TimerFired{clock.timer}), "push wake");
  EXPECT_EQ(m.parameters, (std::vector<float>{2, 4}));  // theta'
  EXPECT_FALSE(m->parameters_settled());
  EXPECT_EQ(m.Last<Push>().peers, (std::vector<NodeId>{Id("a"), Id("b")}));
  EXPECT_EQ(m.Last<Push>().scalars, (std::vector<double>{2, 1, 0}));
  EXPECT_EQ(Wake(m).delay, absl::Seconds(2));  // deadline.exchange
  // a has one link, b has seven: weights 1/3 and 1/8.
  EXPECT_EQ(m.Handle(PushArrived{Id("a"), Said({8, 4}, 0, {1, 1, 0})}), "");
  EXPECT_EQ(m.Handle(PushArrived{Id("b"), Said({2, 20}, 0, {7, 1, 0})}),
            "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{3, 5}));  // half of 2 and 2
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m->step(), 1);
  EXPECT_EQ(m->gradients(), 1);
  EXPECT_EQ(m.Gauge("staleness"), 0);
}

TEST(AsyncDsgdTest, AStragglerComputesOnWhileItMixes) {
  Machine m("async-dsgd", Given(0), {{Id("a"), 0}});
  m.Handle(PeerUp{Id("a")});
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient wake");
  for (int64_t round = 0; round < 3; ++round) {
    EXPECT_EQ(m.Handle(TimerFired{Wake(m).timer}), "push wake");
    const float there = 8.0F * static_cast<float>(round + 1);
    EXPECT_EQ(
        m.Handle(PushArrived{Id("a"), Said({there, there}, round, {1, 1, 0})}),
        "cancel done");
    EXPECT_EQ(m.Handle(StepBegins{}), "wake");  // no second gradient
  }
  EXPECT_EQ(m.parameters[0], 17);  // mixed: 4, 10, 17
  EXPECT_EQ(m->gradients(), 0);
  m.gradient = {1, 2};
  EXPECT_EQ(m.Handle(GradientReady{}), "");
  // The clock of round 3 is timer 1, as ever.
  EXPECT_EQ(m.Handle(TimerFired{kClockTimer}), "push wake");
  EXPECT_EQ(m.parameters, (std::vector<float>{16, 15}));
  EXPECT_EQ(m.Gauge("staleness"), 3);
  m.Handle(PushArrived{Id("a"), Said({16, 15}, 3, {1, 1, 0})});
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient wake");
}

TEST(BarrierDsgdTest, ALateGradientIsDiscardedAndBegunAnew) {
  Machine m("barrier-dsgd", Given(0), {});
  m.parameters = {5, 5};
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient wake");
  const uint64_t clock = Wake(m).timer;
  EXPECT_EQ(m.Handle(TimerFired{clock}), "cancel done");
  EXPECT_EQ(m.Handle(StepBegins{}), "wake");
  m.gradient = {9, 9};
  // It comes in round 1, which begins its own.
  EXPECT_EQ(m.Handle(GradientReady{}), "gradient");
  EXPECT_EQ(m.parameters, (std::vector<float>{5, 5}));
  m.gradient = {1, 1};
  EXPECT_EQ(m.Handle(GradientReady{}), "");
  EXPECT_EQ(m.Handle(TimerFired{clock}), "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{4, 4}));
  EXPECT_EQ(m.Gauge("staleness"), 0);
  EXPECT_EQ(m->gradients(), 1);
}

TEST(BarrierDsgdTest, OneThatComesBetweenRoundsIsBegunAnewWithTheNext) {
  Machine m("barrier-dsgd", Given(0), {{Id("a"), 0}});
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Handle(TimerFired{Wake(m).timer}), "push wake");
  EXPECT_EQ(m.Handle(GradientReady{}), "");  // while it mixes
  EXPECT_EQ(m.Handle(PeerDown{Id("a")}), "cancel done");
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient wake");
}

TEST(SyncDsgdTest, WaitsForItsGradientHoweverLong) {
  Machine m("sync-dsgd", {{"eta", 0.5}}, {});
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  m.gradient = {2, 4};
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{-1, -2}));
  EXPECT_EQ(m.Gauge("step_size"), 0.5);
}

TEST(AsyncDsgdTest, AMissingNeighbourCountsAsNoDifference) {
  Machine m("async-dsgd", Given(0), {{Id("a"), 0}, {Id("b"), 0}});
  m.parameters = {3, 3};
  m.Handle(PeerUp{Id("a")});
  m.Handle(PeerUp{Id("b")});
  m.Handle(StepBegins{});
  m.Handle(TimerFired{Wake(m).timer});
  const uint64_t deadline = Wake(m).timer;
  m.Handle(PushArrived{Id("a"), Said({6, 9}, 0, {2, 1, 0})});
  EXPECT_EQ(m.Handle(TimerFired{deadline}), "missed cancel done");
  EXPECT_EQ(m.Last<Missed>().peers, std::vector<NodeId>{Id("b")});
  EXPECT_EQ(m.parameters, (std::vector<float>{4, 5}));
}

// The push takes the model of before the mix.
TEST(AsyncDsgdTest, AllThatCameBeforeIsMixedAfterThePush) {
  Machine m("async-dsgd", Given(0), {{Id("a"), 0}});
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  const uint64_t clock = Wake(m).timer;
  m.Handle(PushArrived{Id("a"), Said({6, 2}, 0, {1, 1, 0})});
  EXPECT_EQ(m.Handle(TimerFired{clock}), "push cancel done");
  EXPECT_EQ(m.Last<Push>().values,
            absl::MakeConstSpan(std::vector<float>{0, 0}));
  EXPECT_EQ(m.parameters, (std::vector<float>{3, 1}));
}

// Whatever a neighbour says of its degree, weights stay those of an average.
TEST(AsyncDsgdTest, AnAbsurdDegreeDoesNoHarm) {
  for (const double degree : {-1e300, -1.0, 0.0, 1e300}) {
    Machine m("async-dsgd", Given(0), {{Id("a"), 0}});
    m.Handle(PeerUp{Id("a")});
    m.Handle(StepBegins{});
    m.Handle(TimerFired{Wake(m).timer});
    m.Handle(PushArrived{Id("a"), Said({6, 6}, 0, {degree, 1, 0})});
    EXPECT_EQ(m.parameters[0], degree > 1 ? 0 : 3) << degree;
  }
  // A value of one that came up after our push: still an average.
  Machine m("async-dsgd", Given(0), {{Id("a"), 0}, {Id("b"), 0}});
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  m.Handle(TimerFired{Wake(m).timer});
  m.Handle(PushArrived{Id("b"), Said({6, 6}, 0, {1, 1, 0})});
  m.Handle(PushArrived{Id("a"), Said({6, 6}, 0, {1, 1, 0})});
  EXPECT_FLOAT_EQ(m.parameters[0], 4);  // thirds
}

// ---------------------------------------------------------- step sizes ----

TEST(AsyncDsgdTest, AGivenQScalesTheStep) {  // [thesis] Theorem 2.1
  Machine m("async-dsgd", Given(0.2), {});
  NodePlan plan = m.Plan(Given(0.2), {});
  auto facts = std::make_shared<StragglerFacts>();
  facts->largest_q = 0.6;
  plan.facts = std::move(facts);
  m.Handle(PlanChanged{std::move(plan)});
  EXPECT_DOUBLE_EQ(m.Gauge("step_size"), 0.4 / 0.8);
  EXPECT_EQ(m.Gauge("q"), 0.2);
}

// One round without neighbours or with what "a" says; late or not.
void Round(Machine& m, bool late, std::vector<double> said = {}) {
  m.Handle(StepBegins{});
  if (!late) m.Handle(GradientReady{});
  if (!said.empty()) {
    m.Handle(
        PushArrived{Id("a"), Said(m.parameters, m->step(), std::move(said))});
  }
  m.Handle(TimerFired{kClockTimer});
  ASSERT_TRUE(m->parameters_settled());
}

TEST(AsyncDsgdTest, MeasuresQAndTellsTheLeast) {
  Machine m("async-dsgd", {{"eta", 1.0}}, {{Id("a"), 0}});
  for (int r = 0; r < 10; ++r) Round(m, /*late=*/true);
  EXPECT_DOUBLE_EQ(m.Gauge("q"), 0.2);
  EXPECT_DOUBLE_EQ(m.Gauge("step_size"), 1);  // nobody straggles more
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  m.Handle(TimerFired{kClockTimer});
  EXPECT_EQ(m.Last<Push>().scalars, (std::vector<double>{1, 0.78, 0}));
}

TEST(AsyncDsgdTest, TheLeastHeardScalesTheStepAndIsForgotten) {
  Machine m("async-dsgd", {{"eta", 1.0}}, {{Id("a"), 0}});
  Round(m, false, {1, 0.3, 7});
  EXPECT_DOUBLE_EQ(m.Gauge("step_size"), 0.3);
  // It is passed on with its age.
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  m.Handle(GradientReady{});
  m.Handle(TimerFired{kClockTimer});
  EXPECT_EQ(m.Last<Push>().scalars[1], 0.3);
  EXPECT_EQ(m.Last<Push>().scalars[2], 9);
  EXPECT_EQ(m.Handle(PeerDown{Id("a")}), "cancel done");
  // Echoes of it do not keep it alive.
  for (int r = 0; r < 91; ++r) {
    Round(m, false, {1, 0.3, static_cast<double>(r + 10)});
    ASSERT_DOUBLE_EQ(m.Gauge("step_size"), 0.3) << r;
  }
  Round(m, false, {1, 0.3, 101});
  EXPECT_DOUBLE_EQ(m.Gauge("step_size"), 1);
}

TEST(AsyncDsgdTest, NonsenseOfNeighboursIsNotHeard) {
  Machine m("async-dsgd", {{"eta", 1.0}}, {{Id("a"), 0}});
  for (const std::vector<double>& said :
       std::vector<std::vector<double>>{{1, 0, 0},
                                        {1, -5, 0},
                                        {1, 0.5, -1},
                                        {1, 0.5},
                                        {1, 0.5, 0, 0},
                                        {1, 1.5, 0}}) {
    Round(m, false, said);
    EXPECT_EQ(m.Gauge("step_size"), 1);
  }
}

// ------------------------------------------------------ several together ----

// f_i(w) = 1/2 a_i |w - c_i|^2; node i's gradients take i + 1 rounds.
class Clocked : public testing::TestWithParam<bool> {};

TEST_P(Clocked, FollowsTheNaiveRecursion) {
  const bool discard = GetParam();
  constexpr int kNodes = 3;
  constexpr double kEta = 0.1;
  constexpr double kXi = 0.8;
  const auto gradient = [](int i, const Vector& w) {
    return Vector{(1 + i) * (w[0] - i), (2 - 0.5 * i) * (w[1] + i)};
  };
  std::vector<std::unique_ptr<Machine>> nodes;
  for (int i = 0; i < kNodes; ++i) {
    std::vector<Neighbour> others;
    for (int j = 0; j < kNodes; ++j) {
      if (j != i) others.push_back({Id(absl::StrCat("n", j)), 0});
    }
    nodes.push_back(std::make_unique<Machine>(
        discard ? "barrier-dsgd" : "async-dsgd",
        Given(0, {{"eta", kEta}, {"xi", kXi}}), others));
    nodes[i]->parameters = {static_cast<float>(i), 1};
    for (const Neighbour& other : others) nodes[i]->Handle(PeerUp{other.node});
  }
  std::vector<Vector> x = {{0, 1}, {1, 1}, {2, 1}};
  std::vector<Vector> begun = x;
  std::vector<int> since(kNodes, 0);
  std::vector<std::vector<float>> at(kNodes);  // of the machines' gradients
  int64_t applied = 0;
  for (int r = 0; r < 30; ++r) {
    std::vector<std::pair<int, Push>> pushes;
    for (int i = 0; i < kNodes; ++i) {
      Machine& m = *nodes[i];
      std::string asked = m.Handle(StepBegins{});
      // A discarded gradient comes late in the round after.
      if (discard && asked == "wake" && r > 0) {
        m.gradient = {1e9F, 1e9F};
        asked = m.Handle(GradientReady{});
      }
      if (asked.find("gradient") != std::string::npos) at[i] = m.parameters;
      const bool ready = discard ? i == 0 : r - since[i] == i;
      if (ready) {
        const Vector g = gradient(i, Vector(at[i].begin(), at[i].end()));
        m.gradient = {static_cast<float>(g[0]), static_cast<float>(g[1])};
        m.Handle(GradientReady{});
        const Vector stale = gradient(i, begun[i]);
        for (int l = 0; l < 2; ++l) x[i][l] -= kEta * stale[l];
        ++applied;
      }
      m.Handle(TimerFired{kClockTimer});
      pushes.emplace_back(i, m.Last<Push>());
      if (ready || discard) since[i] = r + 1;
    }
    std::vector<std::vector<float>> sent;
    for (const auto& node : nodes) sent.push_back(node->parameters);
    for (const auto& [from, push] : pushes) {
      for (const NodeId& to : push.peers) {
        nodes[std::stoll(to.name().substr(1))]->Handle(
            PushArrived{Id(absl::StrCat("n", from)),
                        Said(sent[from], push.round, push.scalars)});
      }
    }
    std::vector<Vector> mixed = x;
    for (int i = 0; i < kNodes; ++i) {
      for (int l = 0; l < 2; ++l) {
        const double mean = (x[0][l] + x[1][l] + x[2][l]) / 3;
        mixed[i][l] = (1 - kXi) * x[i][l] + kXi * mean;
      }
    }
    x = mixed;
    for (int i = 0; i < kNodes; ++i) {
      if (since[i] == r + 1) begun[i] = x[i];
      for (int l = 0; l < 2; ++l) {
        ASSERT_NEAR(nodes[i]->parameters[l], x[i][l], 1e-5)
            << "round " << r << ", node " << i;
      }
    }
  }
  EXPECT_EQ(applied, discard ? 30 : 30 + 15 + 10);
}

INSTANTIATE_TEST_SUITE_P(AsyncDsgd, Clocked, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "discarding" : "keeping";
                         });

}  // namespace
}  // namespace dfl::core
