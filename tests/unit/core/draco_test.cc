// DRACO, event by event, against a naive version; and each claim alone: the
// window, psi, gamma_max, unification. [thesis] ch. 3
#include "daemon/core/algorithms/draco.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithms/hubs.h"
#include "gtest/gtest.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

using Vector = std::vector<double>;
using Floats = std::vector<float>;

constexpr uint64_t kWindowTimer = 1;
constexpr uint64_t kSendTimer = 2;
constexpr uint64_t kPeriodTimer = 3;

KnobValues WithKnobs(KnobValues more = {}) {
  KnobValues knobs = {{"eta", 1.0}, {"B", int64_t{1}}, {"P", 0.0}};
  for (auto& [name, value] : more) knobs[name] = value;
  return knobs;
}

std::vector<Neighbour> Two() { return {{Id("a"), 0}, {Id("b"), 0}}; }

PushArrived Delta(const std::string& from, Floats values, double q = 0.5,
                  double age = 0) {
  PushArrived push{Id(from), Model(std::move(values), 0, {9})};
  push.model.scalars = {0, q};
  push.model.age = absl::Seconds(age);
  return push;
}

PushArrived Unification(const std::string& from, Floats values, double period,
                        float buffer = 9) {
  PushArrived push{Id(from), Model(std::move(values), 0, {buffer})};
  push.model.scalars = {1, period};
  push.model.age = absl::Hours(1);  // exempt from gamma_max
  return push;
}

Floats At(const Machine& m) {
  const auto at = m.Last<ComputeGradient>().at;
  return Floats(at->begin(), at->end());
}

Floats Values(const Machine& m) {
  const absl::Span<const float> values = m.Last<Push>().values;
  return Floats(values.begin(), values.end());
}

// --------------------------------------------------------------- training ----

TEST(DracoTest, AnUpdateIsRelativeToTheModelItStartedFrom) {  // Alg. 3 l. 4-9
  Machine m("draco", WithKnobs({{"eta", 0.5}, {"B", int64_t{2}}}), Two());
  m.parameters = {4, 8};
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  EXPECT_EQ(At(m), (Floats{4, 8}));
  m.Handle(Delta("a", {10, 10}));  // theta moves
  EXPECT_EQ(m.parameters, (Floats{9, 13}));
  m.gradient = {2, 0};
  EXPECT_EQ(m.Handle(GradientReady{}), "gradient");
  EXPECT_EQ(At(m), (Floats{3, 8}));  // y goes on from where it was
  EXPECT_EQ(m.parameters, (Floats{9, 13}));
  m.gradient = {0, 2};
  EXPECT_EQ(m.Handle(GradientReady{}), "push done");
  EXPECT_EQ(Values(m), (Floats{-1, -1}));
  EXPECT_EQ(m.Last<Push>().peers, (std::vector<NodeId>{Id("a"), Id("b")}));
  EXPECT_EQ(m.Last<Push>().scalars, (Vector{0, 0.5}));  // q of 2 receivers
  EXPECT_FALSE(m.Last<Push>().apart);
  EXPECT_EQ(m.parameters, (Floats{8, 12}));  // own_update
  EXPECT_EQ(m->step(), 1);
  EXPECT_EQ(m->gradients(), 2);
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  EXPECT_EQ(At(m), (Floats{8, 12}));
}

TEST(DracoTest, WithoutOwnUpdateANodeOnlySendsIt) {  // the thesis's form
  Machine m("draco", WithKnobs({{"own_update", false}}), Two());
  m.Handle(StepBegins{});
  m.gradient = {1, 2};
  EXPECT_EQ(m.Handle(GradientReady{}), "push done");
  EXPECT_EQ(Values(m), (Floats{-1, -2}));
  EXPECT_EQ(m.parameters, (Floats{0, 0}));
}

TEST(DracoTest, ANodeAloneTrainsByItself) {
  Machine m("draco", WithKnobs(), {});
  m.Handle(StepBegins{});
  m.gradient = {1, 2};
  EXPECT_EQ(m.Handle(GradientReady{}), "done");
  EXPECT_EQ(m.parameters, (Floats{-1, -2}));
}

// ---------------------------------------------------------------- sending ----

TEST(DracoTest, OnItsSendingScheduleTheNewestUpdateReplacesUnsentOnes) {
  for (const std::string send : {"every", "poisson"}) {
    Machine m("draco", WithKnobs({{"send", send}, {"send_every", 3.0}}), Two());
    EXPECT_EQ(m.Last<WakeAfter>().timer, kSendTimer);
    EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(3));
    EXPECT_EQ(m.Handle(TimerFired{kSendTimer}), "wake");  // nothing yet
    for (const float g : {1.0F, 2.0F}) {
      m.Handle(StepBegins{});
      m.gradient = {g, g};
      EXPECT_EQ(m.Handle(GradientReady{}), "done");
    }
    EXPECT_EQ(m.Handle(TimerFired{kSendTimer}), "push wake");
    EXPECT_EQ(Values(m), (Floats{-2, -2}));
    EXPECT_EQ(m.Last<Push>().scalars, (Vector{0, 0.5}));
    EXPECT_EQ(m.Handle(TimerFired{kSendTimer}), "wake");  // sent once
    // The schedule changes while the run goes on.
    EXPECT_EQ(m.Handle(PlanChanged{m.Plan(WithKnobs(), Two())}), "cancel");
    EXPECT_EQ(m.Handle(PlanChanged{
                  m.Plan(WithKnobs({{"send", std::string("every")}}), Two())}),
              "wake");
  }
}

TEST(DracoTest, PoissonTimesHaveTheirMean) {
  SeededDecisions decisions(1);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double wait = decisions.DrawWait("send", 4);
    EXPECT_GE(wait, 0);
    sum += wait / kDraws;
    squares += wait * wait / kDraws;
  }
  // Five standard deviations of an exponential's mean; its variance is 16.
  EXPECT_NEAR(sum, 4, 5 * 4 / std::sqrt(kDraws));
  EXPECT_NEAR(squares - sum * sum, 16, 2);
}

// ----------------------------------------------------------- the window ----

TEST(DracoTest, AWindowIsOpenedByTheFirstUpdateAndAppliesAllAtOnce) {
  Machine m("draco", WithKnobs({{"window", 0.4}}), Two());
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Handle(Delta("a", {8, 0}, 0.25)), "wake");
  EXPECT_EQ(m.Last<WakeAfter>().timer, kWindowTimer);
  EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(0.4));
  EXPECT_EQ(m.Handle(Delta("b", {0, 8}, 1)), "");
  EXPECT_EQ(m.Handle(Delta("a", {8, 8}, 0.5)), "");
  EXPECT_EQ(m.parameters, (Floats{0, 0}));
  EXPECT_EQ(m.Handle(TimerFired{kWindowTimer}), "");
  // sum q delta: their weights need not sum to 1.
  EXPECT_EQ(m.parameters, (Floats{6, 12}));
  EXPECT_EQ(m.Handle(TimerFired{kWindowTimer}), "");  // an old timer
  EXPECT_EQ(m.parameters, (Floats{6, 12}));
  EXPECT_EQ(m.Handle(Delta("b", {4, 4}, 1)), "wake");  // the next
  m.Handle(TimerFired{kWindowTimer});
  EXPECT_EQ(m.parameters, (Floats{10, 16}));
}

TEST(DracoTest, WithoutAWindowAnUpdateIsAppliedAtOnce) {
  Machine m("draco", WithKnobs(), Two());
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Handle(Delta("a", {8, 0}, 0.25)), "");
  EXPECT_EQ(m.parameters, (Floats{2, 0}));
}

// ------------------------------------------------------ gamma_max and psi ----

TEST(DracoTest, AnUpdateOlderThanGammaMaxIsDropped) {
  Machine m("draco", WithKnobs({{"gamma_max", 2.0}}), Two());
  m.Handle(StepBegins{});
  m.Handle(Delta("a", {8, 8}, 1, 2.0));
  EXPECT_EQ(m.parameters, (Floats{8, 8}));
  m.Handle(Delta("a", {8, 8}, 1, 2.001));
  EXPECT_EQ(m.parameters, (Floats{8, 8}));
  EXPECT_EQ(m.Gauge("accepted"), 1);
  EXPECT_EQ(m.Gauge("dropped_late"), 1);
}

TEST(DracoTest, TheFirstPsiUpdatesOfAPeriodCount) {
  Machine m("draco", WithKnobs({{"psi", int64_t{2}}, {"P", 5.0}}), Two());
  EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(5));
  m.Handle(StepBegins{});
  for (const float v : {1.0F, 10.0F, 100.0F}) m.Handle(Delta("a", {v, 0}, 1));
  m.Handle(Delta("b", {1000, 0}, 1));
  EXPECT_EQ(m.parameters[0], 11);
  EXPECT_EQ(m.Gauge("dropped_full"), 2);
  m.Handle(TimerFired{kPeriodTimer});
  EXPECT_EQ(m.Gauge("period"), 1);
  // One that is late takes no place.
  m.Handle(Delta("a", {1, 0}, 1, 60));
  for (int i = 0; i < 3; ++i) m.Handle(Delta("b", {1, 0}, 1));
  EXPECT_EQ(m.parameters[0], 13);
  EXPECT_EQ(m.Gauge("accepted"), 4);
  EXPECT_EQ(m.Gauge("dropped_full"), 3);
}

TEST(DracoTest, WithoutPeriodsPsiCountsForEver) {
  Machine m("draco", WithKnobs({{"psi", int64_t{2}}}), Two());
  EXPECT_EQ(m.actions.size(), 2U);  // no timer runs: both are cancelled
  m.Handle(StepBegins{});
  for (int i = 0; i < 5; ++i) m.Handle(Delta("a", {1, 0}, 1));
  EXPECT_EQ(m.parameters[0], 2);
}

// ------------------------------------------------------------ unification ----

// The hub of period M is C[M mod |C|].
TEST(DracoTest, HubsTakeTurns) {
  const KnobValues knobs = WithKnobs({{"P", 5.0}});
  Machine m("draco", knobs, Two());
  NodePlan plan = m.Plan(knobs, Two());
  plan.facts = std::make_shared<HubFacts>(
      std::vector<NodeId>{Id("a"), plan.self, Id("b")});
  m.Handle(PlanChanged{std::move(plan)});
  m.parameters = {3, 4};
  m.Handle(StepBegins{});
  for (int64_t period = 1; period <= 6; ++period) {
    const bool leads = period % 3 == 1;
    EXPECT_EQ(m.Handle(TimerFired{kPeriodTimer}), leads ? "wake push" : "wake")
        << period;
    EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(5));
    if (!leads) continue;
    EXPECT_EQ(Values(m), (Floats{3, 4}));
    EXPECT_EQ(m.Last<Push>().scalars, (Vector{1, static_cast<double>(period)}));
    EXPECT_TRUE(m.Last<Push>().apart);
    EXPECT_EQ(m.Last<Push>().peers, (std::vector<NodeId>{Id("a"), Id("b")}));
    // Its own, come back over others.
    EXPECT_EQ(m.Handle(Unification("a", {9, 9}, static_cast<double>(period))),
              "");
    EXPECT_EQ(m.parameters, (Floats{3, 4}));
  }
}

TEST(DracoTest, AUnificationReplacesTheModelAndIsPassedOnOnce) {
  const std::vector<Neighbour> four = {
      {Id("a"), 0}, {Id("b"), 0}, {Id("c"), 0}, {Id("h"), 0}};
  const KnobValues knobs = WithKnobs({{"P", 5.0}, {"window", 0.5}});
  Machine m("draco", knobs, four);
  NodePlan plan = m.Plan(knobs, four);
  plan.facts = std::make_shared<HubFacts>(std::vector<NodeId>{Id("h")});
  m.Handle(PlanChanged{std::move(plan)});
  m.parameters = {3, 4};
  m.Handle(StepBegins{});
  m.Handle(Delta("a", {2, 2}, 1));
  // It moves the node to the period that it is of.
  EXPECT_EQ(m.Handle(Unification("b", {7, 8}, 2)), "wake push");
  EXPECT_EQ(m.Last<WakeAfter>().timer, kPeriodTimer);
  EXPECT_EQ(m.Gauge("period"), 2);
  EXPECT_EQ(m.parameters, (Floats{7, 8}));
  EXPECT_EQ(m.buffers[0], 9);
  // Not to whom it came from, nor to the hub.
  EXPECT_EQ(m.Last<Push>().peers, (std::vector<NodeId>{Id("a"), Id("c")}));
  EXPECT_EQ(m.Last<Push>().scalars, (Vector{1, 2}));
  EXPECT_TRUE(m.Last<Push>().apart);
  EXPECT_EQ(Values(m), (Floats{7, 8}));
  // By another way; and an old one.
  EXPECT_EQ(m.Handle(Unification("c", {1, 1}, 2)), "");
  EXPECT_EQ(m.Handle(Unification("c", {1, 1}, 1)), "");
  EXPECT_EQ(m.parameters, (Floats{7, 8}));
  // The window stays open and is applied afterwards.
  m.Handle(TimerFired{kWindowTimer});
  EXPECT_EQ(m.parameters, (Floats{9, 10}));
  // Training goes on, relative to the model that it started from.
  m.gradient = {1, 1};
  EXPECT_EQ(m.Handle(GradientReady{}), "push done");
  EXPECT_EQ(Values(m), (Floats{-1, -1}));
  EXPECT_EQ(m.parameters, (Floats{8, 9}));
}

// Its periods begin anew, and nobody would heed them.
TEST(DracoTest, AHubThatRestartedIsToldWhichPeriodItIs) {
  const std::vector<Neighbour> two = {{Id("a"), 0}, {Id("h"), 0}};
  const KnobValues knobs = WithKnobs({{"P", 5.0}});
  Machine m("draco", knobs, two);
  NodePlan plan = m.Plan(knobs, two);
  plan.facts = std::make_shared<HubFacts>(std::vector<NodeId>{Id("h")});
  m.Handle(PlanChanged{std::move(plan)});
  m.Handle(StepBegins{});
  m.Handle(Unification("h", {7, 8}, 20));
  // Another's old one is as good as none.
  EXPECT_EQ(m.Handle(Unification("a", {1, 1}, 1)), "");
  EXPECT_EQ(m.Handle(Unification("h", {1, 1}, 1)), "push");
  EXPECT_EQ(m.Last<Push>().peers, (std::vector<NodeId>{Id("h")}));
  EXPECT_EQ(m.Last<Push>().scalars, (Vector{1, 20}));
  EXPECT_EQ(Values(m), (Floats{7, 8}));
  EXPECT_EQ(m.parameters, (Floats{7, 8}));
  // The hub goes on from there.
  Machine hub("draco", knobs, two);
  hub.Handle(StepBegins{});
  hub.Handle(TimerFired{kPeriodTimer});  // leads period 1
  hub.Handle(Unification("a", {7, 8}, 20));
  EXPECT_EQ(hub.Gauge("period"), 20);
  hub.Handle(TimerFired{kPeriodTimer});
  EXPECT_EQ(hub.Last<Push>().scalars, (Vector{1, 21}));
}

// However long the run has been going: what a hub led by its own count since
// it started says nothing of that.
TEST(DracoTest, AHubThatRestartedInALongRunIsUnifiedWithIt) {
  const std::vector<Neighbour> two = {{Id("a"), 0}, {Id("h"), 0}};
  const KnobValues knobs = WithKnobs({{"P", 5.0}});
  Machine hub("draco", knobs, two);
  hub.Handle(StepBegins{});
  hub.Handle(TimerFired{kPeriodTimer});  // leads period 1
  hub.Handle(Unification("a", {7, 8}, 5000));
  EXPECT_EQ(hub.Gauge("period"), 5000);
  EXPECT_EQ(hub.parameters, (Floats{7, 8}));
  hub.Handle(
      Unification("a", {1, 1}, 7000));  // and from there on within bounds
  EXPECT_EQ(hub.parameters, (Floats{7, 8}));
}

TEST(DracoTest, AUnificationThatCameBeforeTheHubsTimerReplacesItsOwn) {
  const KnobValues knobs = WithKnobs({{"P", 5.0}});
  Machine m("draco", knobs, Two());  // the only hub
  m.Handle(StepBegins{});
  m.Handle(Unification("a", {1, 1}, 1));
  EXPECT_EQ(m.Gauge("period"), 1);
  EXPECT_EQ(m.Handle(TimerFired{kPeriodTimer}), "wake push");  // of period 2
  EXPECT_EQ(m.Last<Push>().scalars[1], 2);
}

TEST(DracoTest, UnificationsDoNotCountForPsi) {
  const KnobValues knobs =
      WithKnobs({{"P", 5.0}, {"psi", int64_t{1}}, {"gamma_max", 1.0}});
  Machine m("draco", knobs, Two());
  m.Handle(StepBegins{});
  m.Handle(Delta("a", {1, 1}, 1));
  m.Handle(Unification("a", {5, 5}, 1));  // an hour old
  EXPECT_EQ(m.parameters, (Floats{5, 5}));
  m.Handle(Delta("a", {1, 1}, 1));  // the new period's first
  EXPECT_EQ(m.parameters, (Floats{6, 6}));
  m.Handle(Unification("a", {5, 5}, 2));
  EXPECT_EQ(m.parameters, (Floats{5, 5}));
}

TEST(DracoTest, WithoutPeriodsNothingIsUnified) {
  Machine m("draco", WithKnobs(), Two());
  m.Handle(StepBegins{});
  m.Handle(Unification("a", {5, 5}, 1));
  EXPECT_EQ(m.parameters, (Floats{0, 0}));
}

// ------------------------------------------------------------- boundaries ----

// Between StepDone and StepBegins the parameters hold still, whatever comes.
TEST(DracoTest, AtABoundaryTheModelHoldsStill) {
  const KnobValues knobs = WithKnobs({{"P", 5.0}, {"own_update", false}});
  Machine m("draco", knobs, Two());
  m.parameters = {3, 4};
  m.Handle(Delta("a", {1, 1}, 1));
  m.Handle(Delta("b", {1, 1}, 1));
  EXPECT_EQ(m.parameters, (Floats{3, 4}));
  EXPECT_EQ(m.Handle(TimerFired{kPeriodTimer}), "wake");  // it would lead
  EXPECT_EQ(m.parameters, (Floats{3, 4}));
  EXPECT_EQ(m.Handle(StepBegins{}), "push gradient");
  EXPECT_EQ(Values(m), (Floats{3, 4}));  // the window is applied after it
  EXPECT_EQ(m.parameters, (Floats{5, 6}));
  EXPECT_EQ(At(m), (Floats{5, 6}));
  m.Handle(GradientReady{});

  // A unification comes after a window is over: that one is gone with the model
  // it belonged to. One that comes before the update leaves it.
  m.Handle(Delta("a", {1, 1}, 1));
  EXPECT_EQ(m.Handle(Unification("a", {7, 8}, 2)), "wake");
  m.Handle(Delta("a", {1, 1}, 1));
  EXPECT_EQ(m.parameters, (Floats{5, 6}));
  EXPECT_EQ(m.Handle(StepBegins{}), "push gradient");
  EXPECT_EQ(Values(m), (Floats{7, 8}));
  EXPECT_EQ(m.Last<Push>().peers, std::vector<NodeId>{Id("b")});
  EXPECT_EQ(m.parameters, (Floats{8, 9}));
  m.Handle(GradientReady{});
  m.Handle(Delta("a", {1, 1}, 1));
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  EXPECT_EQ(m.parameters, (Floats{9, 10}));
  EXPECT_EQ(At(m), (Floats{9, 10}));
}

TEST(DracoTest, AnswersAtAnyTime) {
  Machine m("draco", WithKnobs(), Two());
  EXPECT_EQ(m.Handle(AskArrived{Id("a"), 1}), "answer");
  m.Handle(StepBegins{});
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m.Handle(AskArrived{Id("a"), 2}), "answer");
}

// -------------------------------------------------------------- untrusted ----

TEST(DracoTest, NonsenseOfNeighboursIsIgnored) {
  const double huge = std::numeric_limits<double>::max();
  Machine m("draco", WithKnobs({{"P", 5.0}}), Two());
  m.Handle(StepBegins{});
  m.Handle(Unification("a", {0, 0}, 2));
  for (const Vector& said : std::vector<Vector>{{},
                                                {0},
                                                {0, 1, 1},
                                                {0, -0.1},
                                                {0, 1.1},
                                                {0, huge},
                                                {2, 1},
                                                {-1, 1},
                                                {1, 0},
                                                {1, -3},
                                                {1, huge},
                                                {1, 1003}}) {
    PushArrived push = Delta("a", {5, 5});
    push.model.scalars = said;
    EXPECT_EQ(m.Handle(std::move(push)), "");
    EXPECT_EQ(m.parameters, (Floats{0, 0}));
  }
  m.Handle(Delta("z", {5, 5}, 1));  // no neighbour
  m.Handle(Unification("z", {5, 5}, 3));
  EXPECT_EQ(m.parameters, (Floats{0, 0}));
  m.Handle(Unification("a", {5, 5}, 1002));  // a long time alone
  EXPECT_EQ(m.parameters, (Floats{5, 5}));
}

// Whoever joins a run in its 5000th period is unified with it.
TEST(DracoTest, AJoinerBelievesTheFirstPeriodItHearsOf) {
  Machine m("draco", WithKnobs({{"P", 5.0}}), Two());
  m.Handle(StepBegins{});
  m.Handle(Unification("a", {5, 5}, 5000));
  EXPECT_EQ(m.parameters, (Floats{5, 5}));
  EXPECT_EQ(m.Gauge("period"), 5000);
}

// ------------------------------------------------------- a naive version ----

// One node under random events. Times are whole and windows two long.
TEST(DracoTest, FollowsTheNaiveVersion) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    Rng rng(seed);
    constexpr int64_t kPsi = 4;
    constexpr int64_t kPeriod = 12;
    const KnobValues knobs = WithKnobs({{"eta", 0.1},
                                        {"B", int64_t{2}},
                                        {"window", 2.0},
                                        {"psi", kPsi},
                                        {"P", 1.0 * kPeriod},
                                        {"gamma_max", 3.0}});
    Machine m("draco", knobs, Two());
    NodePlan plan = m.Plan(knobs, Two());
    plan.facts = std::make_shared<HubFacts>(std::vector<NodeId>{Id("a")});
    m.Handle(PlanChanged{std::move(plan)});

    Vector theta = {0, 0};
    Vector started = {0, 0};
    Vector y = {0, 0};
    std::optional<int64_t> closes;  // when the window does
    std::vector<std::pair<double, Vector>> window;
    int64_t accepted = 0;
    int64_t batches = 0;
    int64_t unified = 0;
    m.Handle(StepBegins{});
    for (int64_t t = 0; t < 400; ++t) {
      if (t > 0 && t % kPeriod == 0) {
        accepted = 0;
        m.Handle(TimerFired{kPeriodTimer});
      }
      if (closes == t) {
        for (const auto& [q, delta] : window) {
          for (size_t l = 0; l < 2; ++l) theta[l] += q * delta[l];
        }
        window.clear();
        closes.reset();
        m.Handle(TimerFired{kWindowTimer});
      }
      const uint64_t what = rng.Below(4);
      const Vector v = {rng.Uniform() - 0.5, rng.Uniform() - 0.5};
      const Floats floats(v.begin(), v.end());
      if (what == 0) {  // a gradient at y
        m.gradient = {static_cast<float>(y[0] - 1),
                      static_cast<float>(2 * y[1] + 1)};
        m.Handle(GradientReady{});
        y = {y[0] - 0.1 * (y[0] - 1), y[1] - 0.1 * (2 * y[1] + 1)};
        if (++batches % 2 == 0) {
          const Floats sent = Values(m);
          for (size_t l = 0; l < 2; ++l) {
            ASSERT_NEAR(sent[l], y[l] - started[l], 1e-5);
            theta[l] += y[l] - started[l];
          }
          m.Handle(StepBegins{});
          started = y = theta;
        }
      } else if (what == 1 && rng.Below(6) == 0) {
        const int64_t period = t / kPeriod;
        m.Handle(Unification("a", floats, static_cast<double>(period)));
        if (period > unified) theta = v;
        unified = std::max(unified, period);
      } else if (what >= 2) {
        const double q = rng.Uniform();
        const auto age = static_cast<double>(rng.Below(6));
        m.Handle(Delta("b", floats, q, age));
        if (age <= 3 && accepted < kPsi) {
          ++accepted;
          window.emplace_back(q, v);
          if (!closes) closes = t + 2;
        }
      }
      for (size_t l = 0; l < 2; ++l) {
        ASSERT_NEAR(m.parameters[l], theta[l], 1e-4)
            << "seed " << seed << " time " << t;
      }
    }
    EXPECT_GT(unified, 0);
    EXPECT_GT(m.Gauge("accepted"), 50);
    EXPECT_GT(m.Gauge("dropped_late"), 20);
    EXPECT_GT(m.Gauge("dropped_full"), 5);
  }
}

}  // namespace
}  // namespace dfl::core
