// KD-PDFL, event by event, against a naive version, and its claim that clients
// alike weigh more.
#include "daemon/core/algorithms/kd_pdfl.h"
#include "daemon/core/algorithms/catalogue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/distributions.h"
#include "daemon/base/rng.h"
#include "daemon/simports/problems.h"
#include "gtest/gtest.h"
#include "tests/support/recorded_actions.h"
#include "tests/support/test_network.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

using Vector = std::vector<double>;

KnobValues WithKnobs(KnobValues more = {}) {
  KnobValues knobs = {{"eta", 1.0}, {"T_ex", int64_t{3}}};
  for (auto& [name, value] : more) knobs[name] = value;
  return knobs;
}

std::vector<Neighbour> Members(const std::string& names) {
  std::vector<Neighbour> all;
  for (const char name : names) all.push_back({Id(std::string(1, name)), 0});
  return all;
}

const KdPdfl& At(Machine& m) { return static_cast<const KdPdfl&>(*m); }

// Rounds of local SGD with a gradient of 0 until round `r` begins.
void Until(Machine& m, int64_t r) {
  m.gradient = {0, 0};
  while (m->step() < r) {
    ASSERT_EQ(m.Handle(StepBegins{}), "gradient");
    ASSERT_EQ(m.Handle(GradientReady{}), "done");
  }
}

Predicted Saying(std::vector<Vector> probabilities, int64_t rows = 1) {
  return Predicted{rows, std::move(probabilities)};
}

TEST(KdPdflTest, TrainsByItselfBetweenItsRoundsAsStar) {
  Machine m("kd-pdfl", WithKnobs(), Members("ab"));
  for (int64_t r = 0; r < 9; ++r) {
    const bool star = r == 3 || r == 6;  // not in round 0
    EXPECT_EQ(m.Handle(StepBegins{}), star ? "ask wake" : "gradient") << r;
    if (star) {
      EXPECT_EQ(m.Last<Ask>().peers, (std::vector<NodeId>{Id("a"), Id("b")}));
      EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(2));
      const uint64_t ask = m.Last<Ask>().ask;
      EXPECT_EQ(m.Handle(AnswerMissing{Id("a"), ask}), "");
      EXPECT_EQ(m.Handle(AnswerMissing{Id("b"), ask}), "cancel done");
    } else {
      m.gradient = {1, 2};
      EXPECT_EQ(m.Handle(GradientReady{}), "done");
    }
    EXPECT_TRUE(m->parameters_settled());
  }
  EXPECT_EQ(m->gradients(), 7);
  EXPECT_EQ(m.parameters, (std::vector<float>{-7, -14}));
  EXPECT_EQ(At(m).weight(Id("a")), 1.0 / 3);
}

// With numbers that can be followed: m = 3, w = 1/3, d = (0.5, 0.02).
TEST(KdPdflTest, ComparesPredictionsAndMixesByTheWeights) {
  Machine m("kd-pdfl", WithKnobs({{"mu2", 0.0}}), Members("ab"));
  Until(m, 3);
  m.parameters = {4, 8};
  m.buffers = {1};
  EXPECT_EQ(m.Handle(StepBegins{}), "ask wake");
  const uint64_t ask = m.Last<Ask>().ask;
  EXPECT_EQ(m.Handle(AnswerArrived{Id("b"), ask, Model({1, 2}, 0, {5})}), "");
  EXPECT_EQ(m.Handle(AnswerArrived{Id("a"), ask, Model({9, 9}, 0, {9})}),
            "cancel predict");
  const auto models = m.Last<Predict>().models;
  ASSERT_EQ(models->size(), 2U);  // by name
  EXPECT_EQ((*models)[0].parameters, (FlatVector{9, 9}));
  EXPECT_EQ((*models)[1].parameters, (FlatVector{1, 2}));
  EXPECT_EQ((*models)[1].buffers, std::vector<float>{5});
  EXPECT_EQ(m.parameters, (std::vector<float>{4, 8}));
  // Two rows: a differs by 1/2 in each class of one, b by 1/10.
  EXPECT_EQ(
      m.Handle(Saying(
          {{0.5, 0.5, 0.5, 0.5}, {1.0, 0.0, 0.0, 1.0}, {0.6, 0.4, 0.4, 0.6}},
          2)),
      "done");
  const KdPdfl::Star& star = At(m).last_star();
  EXPECT_EQ(star.received, (std::vector<NodeId>{Id("a"), Id("b")}));
  EXPECT_NEAR(star.distances[0], 0.5, 1e-12);
  EXPECT_NEAR(star.distances[1], 0.02, 1e-12);
  EXPECT_NEAR(star.norm, std::sqrt(0.25 + 0.0004), 1e-12);
  // a's weight falls below 0; b keeps 1/3 - 0.04.
  EXPECT_EQ(At(m).weight(Id("a")), 0);
  EXPECT_NEAR(At(m).weight(Id("b")), 1.0 / 3 - 0.02 / star.norm, 1e-12);
  EXPECT_NEAR(star.own_share, 1.0 / 3, 1e-12);
  EXPECT_FLOAT_EQ(m.parameters[0], 2);  // 4/3 + 2/3
  EXPECT_FLOAT_EQ(m.parameters[1], 4);
  EXPECT_FLOAT_EQ(m.buffers[0], 1.0F / 3 + 10.0F / 3);
  EXPECT_EQ(m.Gauge("received"), 2);
  EXPECT_EQ(m.Gauge("nonzero_weights"), 1);
  EXPECT_NEAR(m.Gauge("distance"), 0.26, 1e-12);
}

// c = min(|D|/c_base, 1/(received + 1)); without c_base by the members' rows.
TEST(KdPdflTest, ANodeWithFewRowsKeepsLessOfItsOwn) {
  for (const double c_base : {0.0, 10.0}) {
    Machine m("kd-pdfl", WithKnobs({{"c_base", c_base}}), Members("a"));
    NodePlan plan = m.Plan(WithKnobs({{"c_base", c_base}}), Members("a"));
    plan.sample_weight = 0.25;
    m.Handle(PlanChanged{std::move(plan)});
    Until(m, 3);
    m.parameters = {8, 0};
    m.Handle(StepBegins{});
    m.Handle(AnswerArrived{Id("a"), m.Last<Ask>().ask, Model({0, 8}, 0, {0})});
    m.Handle(Saying({{1, 0}, {1, 0}}));
    const double c = c_base > 0 ? 0.1 : 0.25;  // the machine has one row
    EXPECT_FLOAT_EQ(At(m).last_star().own_share, c);
    EXPECT_FLOAT_EQ(m.parameters[0], 8 * c);
    EXPECT_FLOAT_EQ(m.parameters[1], 8 * (1 - c));
  }
}

TEST(KdPdflTest, MoreRowsGiveItsOwnModelMoreWeight) {
  Machine m("kd-pdfl", WithKnobs({{"c_base", 10.0}}), Members("a"));
  PlanChanged changed{m.Plan(WithKnobs({{"c_base", 10.0}}), Members("a"))};
  m.Handle(changed);  // as many as before
  changed.train_rows = 3;
  m.Handle(changed);
  Until(m, 3);
  m.Handle(StepBegins{});
  m.Handle(AnswerArrived{Id("a"), m.Last<Ask>().ask, Model({0, 8}, 0, {0})});
  m.Handle(Saying({{1, 0}, {1, 0}}));
  EXPECT_FLOAT_EQ(At(m).last_star().own_share, 0.3);
}

TEST(KdPdflTest, GoesOnWithThoseThatAnswerInTime) {
  Machine m("kd-pdfl", WithKnobs(), Members("abc"));
  Until(m, 3);
  m.Handle(StepBegins{});
  const uint64_t ask = m.Last<Ask>().ask;
  const uint64_t deadline = m.Last<WakeAfter>().timer;
  m.Handle(AnswerArrived{Id("b"), ask, Model({4, 4}, 0, {0})});
  m.Handle(AnswerArrived{Id("z"), ask, Model({9, 9}, 0, {0})});  // not asked
  EXPECT_EQ(m.Handle(TimerFired{deadline}), "missed cancel cancel-ask predict");
  EXPECT_EQ(m.Last<Missed>().peers, (std::vector<NodeId>{Id("a"), Id("c")}));
  EXPECT_EQ(m.Last<Missed>().came, 1);
  // Too late.
  EXPECT_EQ(m.Handle(AnswerArrived{Id("a"), ask, Model({9, 9}, 0, {0})}), "");
  EXPECT_EQ(m.Handle(TimerFired{deadline}), "");
  EXPECT_EQ(m.Handle(Saying({{1, 0}, {1, 0}})), "done");
  EXPECT_EQ(At(m).last_star().received, std::vector<NodeId>{Id("b")});
  EXPECT_FLOAT_EQ(m.parameters[0], 2);
}

TEST(KdPdflTest, AsksNoMoreThanItsSubset) {
  Machine m("kd-pdfl", WithKnobs({{"subset", int64_t{2}}}), Members("abcd"));
  Until(m, 3);
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Last<Ask>().peers.size(), 2U);
}

// A neighbour cannot harm the node by what its model predicts, or by sending a
// part of it; and a prediction that fails changes nothing.
TEST(KdPdflTest, WhatCannotBeComparedCountsAsNotReceived) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Machine m("kd-pdfl", WithKnobs(), Members("abc"));
  Until(m, 3);
  m.Handle(StepBegins{});
  uint64_t ask = m.Last<Ask>().ask;
  RemoteModel part;
  part.parameters = std::make_unique<PlainRemoteVector>(
      2, std::vector<int64_t>{1}, std::vector<float>{7});
  part.buffers = {0};
  m.Handle(AnswerArrived{Id("a"), ask, std::move(part)});
  m.Handle(AnswerArrived{Id("b"), ask, Model({9, 9}, 0, {0})});
  EXPECT_EQ(m.Handle(AnswerArrived{Id("c"), ask, Model({4, 4}, 0, {0})}),
            "cancel predict");
  ASSERT_EQ(m.Last<Predict>().models->size(), 2U);
  m.Handle(Saying({{1, 0}, {nan, nan}, {1, 0}}));
  EXPECT_EQ(At(m).last_star().received, std::vector<NodeId>{Id("c")});
  EXPECT_FLOAT_EQ(m.parameters[0], 2);
  EXPECT_EQ(At(m).weight(Id("b")), 0.25);
  Until(m, 6);
  m.Handle(StepBegins{});
  ask = m.Last<Ask>().ask;
  m.Handle(AnswerMissing{Id("a"), ask});
  m.Handle(AnswerMissing{Id("b"), ask});
  m.Handle(AnswerArrived{Id("c"), ask, Model({8, 8}, 0, {0})});
  const double weight = At(m).weight(Id("c"));
  const int64_t rounds = m->rounds();
  EXPECT_EQ(m.Handle(Predicted{}), "done");
  EXPECT_EQ(m->rounds(), rounds) << "it failed";
  EXPECT_FLOAT_EQ(m.parameters[0], 2);
  EXPECT_EQ(At(m).weight(Id("c")), weight);
}

TEST(KdPdflTest, AStarsModelIsAdoptedOnlyWithTheKnobAndOfOneThatAsked) {
  for (const bool adopt : {false, true}) {
    const KnobValues knobs = WithKnobs({{"adopt", adopt}});
    Machine m("kd-pdfl", knobs, Members("ab"));
    Until(m, 1);
    EXPECT_EQ(m.Handle(AskArrived{Id("a"), 1}), "answer");
    EXPECT_EQ(m.Last<Answer>().rate, 1);
    m.Handle(PushArrived{Id("b"), Model({9, 9}, 1, {9})});  // did not ask
    EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
    m.Handle(PushArrived{Id("a"), Model({3, 5}, 1, {7})});
    m.Handle(PushArrived{Id("a"), Model({8, 8}, 1, {8})});  // asked once
    EXPECT_EQ(m.Handle(GradientReady{}), "done");
    EXPECT_EQ(m.parameters, (std::vector<float>{0, 0}));
    EXPECT_EQ(m.Handle(StepBegins{}), adopt ? "done" : "gradient");
    EXPECT_EQ(m.parameters,
              adopt ? (std::vector<float>{3, 5}) : (std::vector<float>{0, 0}));
    EXPECT_EQ(m.buffers[0], adopt ? 7 : 0);
  }
}

TEST(KdPdflTest, AStarSendsItsModelInTheNextRoundWithTheKnob) {
  for (const bool adopt : {false, true}) {
    Machine m("kd-pdfl", WithKnobs({{"adopt", adopt}}), Members("ab"));
    Until(m, 3);
    m.Handle(StepBegins{});
    const uint64_t ask = m.Last<Ask>().ask;
    m.Handle(AnswerMissing{Id("a"), ask});
    m.Handle(AnswerArrived{Id("b"), ask, Model({4, 4}, 0, {0})});
    m.Handle(Saying({{1, 0}, {1, 0}}));
    EXPECT_EQ(m.Handle(StepBegins{}), adopt ? "push gradient" : "gradient");
    if (adopt) {
      EXPECT_EQ(m.Last<Push>().peers, std::vector<NodeId>{Id("b")});
    }
    m.Handle(GradientReady{});
    EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  }
}

// Alg. 4: in rounds 0 and 1 mod T_ex, from T_ex on, nobody trains.
TEST(KdPdflTest, LiteralRoundsStandStillAroundAStar) {
  const KnobValues knobs =
      WithKnobs({{"literal_rounds", true}, {"T_ex", int64_t{4}}});
  for (const bool star : {true, false}) {
    Machine m("kd-pdfl", knobs, Members("a"));
    NodePlan plan = m.Plan(knobs, Members("a"));
    plan.place = star ? 0 : 1;  // place 0 is drawn
    m.Handle(PlanChanged{std::move(plan)});
    Until(m, 4);
    EXPECT_EQ(m.Handle(StepBegins{}), star ? "ask wake" : "done");
    if (star) m.Handle(AnswerMissing{Id("a"), m.Last<Ask>().ask});
    EXPECT_EQ(m.Handle(StepBegins{}), "done");
    EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
    m.Handle(GradientReady{});
    EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
    m.Handle(GradientReady{});
    EXPECT_EQ(m.Handle(StepBegins{}), star ? "ask wake" : "done");
  }
}

// Stars that are drawn are one at a time; on their own timers nodes wake from
// different phases, each once in T_ex rounds.
TEST(KdPdflTest, StarsAreDrawnForAllOrWakeByThemselves) {
  constexpr int64_t kMembers = 5;
  for (const std::string stars : {"drawn", "own-timer"}) {
    std::map<int64_t, int64_t> woken;  // by round
    for (int64_t i = 0; i < kMembers; ++i) {
      SeededDecisions decisions(100 + i);
      AlgorithmContext context;
      context.plan.self = Id(absl::StrCat("n", i));
      context.plan.place = i;
      context.plan.seed = 4;
      context.plan.member_count = kMembers;
      context.plan.neighbours = Members("ab");
      context.plan.knobs =
          *Knobs::Resolve((*BuiltInCatalogue().Find("kd-pdfl"))->knobs,
                          {{"stars", stars}, {"T_ex", int64_t{10}}});
      std::vector<float> w(1);
      std::vector<float> g(1);
      context.vectors = {absl::MakeSpan(w), absl::MakeSpan(g), {}};
      KdPdfl node(std::move(context), decisions);
      int64_t own = 0;
      for (int64_t r = 0; r < 60; ++r) {
        RecordedActions actions;
        node.Handle(StepBegins{}, actions);
        if (const Ask* ask = std::get_if<Ask>(&actions[0])) {
          ++woken[r];
          ++own;
          for (const NodeId& peer : ask->peers) {
            node.Handle(AnswerMissing{peer, ask->ask}, actions);
          }
        } else {
          node.Handle(GradientReady{}, actions);
        }
        ASSERT_EQ(node.step(), r + 1);
      }
      if (stars == "own-timer") {
        EXPECT_EQ(own, 5) << "node " << i;
      }
    }
    if (stars == "drawn") {
      EXPECT_EQ(woken, (std::map<int64_t, int64_t>{
                           {10, 1}, {20, 1}, {30, 1}, {40, 1}, {50, 1}}));
    } else {
      EXPECT_GT(woken.size(), 10U);
    }
  }
}

TEST(KdPdflTest, WeightsStayWithNeighboursThatStay) {
  Machine m("kd-pdfl", WithKnobs(), Members("ab"));
  Until(m, 3);
  m.Handle(StepBegins{});
  const uint64_t ask = m.Last<Ask>().ask;
  m.Handle(AnswerArrived{Id("a"), ask, Model({0, 0}, 0, {0})});
  m.Handle(AnswerArrived{Id("b"), ask, Model({0, 0}, 0, {0})});
  m.Handle(Saying({{1, 0}, {0, 1}, {1, 0}}));
  const double b = At(m).weight(Id("b"));
  EXPECT_EQ(At(m).weight(Id("a")), 0);
  EXPECT_GT(b, 1.0 / 3);  // mu2 keeps nodes from working alone
  m.Handle(PlanChanged{m.Plan(WithKnobs(), Members("bc"))});
  EXPECT_EQ(At(m).weight(Id("b")), b);
  m.Handle(PlanChanged{m.Plan(WithKnobs(), Members("abc"))});
  EXPECT_EQ(At(m).weight(Id("a")), 0.25);  // anew
}

// ------------------------------------------------------- a naive version ----

TEST(KdPdflTest, FollowsTheNaiveRecursion) {
  constexpr size_t kMembers = 6;  // the node, four neighbours and a stranger
  const KnobValues knobs = WithKnobs(
      {{"mu1", 0.7}, {"mu2", 0.3}, {"c_base", 4.0}, {"subset", int64_t{9}}});
  Machine m("kd-pdfl", knobs, Members("abcd"));
  NodePlan plan = m.Plan(knobs, Members("abcd"));
  plan.member_count = kMembers;
  m.Handle(PlanChanged{std::move(plan)});
  Rng rng(11);
  Vector w(kMembers, 1.0 / kMembers);  // 0 to 3 are a to d, 4 the stranger
  w[5] = 0;                            // itself
  Vector theta = {1, -1};
  m.parameters = {1, -1};
  for (int64_t turn = 0; turn < 200; ++turn) {
    while (m->step() % 3 != 0 || m->step() == 0) {
      m.Handle(StepBegins{});
      m.gradient = {0, 0};
      m.Handle(GradientReady{});
    }
    m.Handle(StepBegins{});
    const uint64_t ask = m.Last<Ask>().ask;
    std::vector<size_t> received;
    std::vector<Vector> models;
    std::vector<Vector> p = {
        {rng.Uniform(), rng.Uniform(), rng.Uniform(), rng.Uniform()}};
    for (size_t j = 0; j < 4; ++j) {
      const NodeId peer = Id(std::string(1, static_cast<char>('a' + j)));
      if (rng.Below(3) == 0) {
        m.Handle(AnswerMissing{peer, ask});
        continue;
      }
      received.push_back(j);
      models.push_back({rng.Uniform() * 4 - 2, rng.Uniform() * 4 - 2});
      p.push_back({rng.Uniform(), rng.Uniform(), rng.Uniform(), rng.Uniform()});
      m.Handle(AnswerArrived{peer, ask,
                             Model({static_cast<float>(models.back()[0]),
                                    static_cast<float>(models.back()[1])},
                                   0, {0})});
    }
    if (received.empty()) continue;
    m.Handle(Saying(p, 2));

    double row = 1e-6;
    for (const double weight : w) row += weight;
    Vector gradient;
    double norm = 0;
    for (size_t q = 0; q < received.size(); ++q) {
      double d = 0;
      for (size_t l = 0; l < 4; ++l) d += std::pow(p[0][l] - p[q + 1][l], 2);
      gradient.push_back(0.7 * d / 2 + 0.3 * (w[received[q]] - 1 / row));
      norm += std::pow(gradient[q], 2);
    }
    double sum = 0;
    for (size_t q = 0; q < received.size(); ++q) {
      w[received[q]] =
          std::max(0.0, w[received[q]] - gradient[q] / std::sqrt(norm));
      sum += w[received[q]];
    }
    const double c =
        std::min(0.25, 1 / static_cast<double>(received.size() + 1));
    if (sum > 1e-6) {
      Vector mixed = {c * theta[0], c * theta[1]};
      for (size_t q = 0; q < received.size(); ++q) {
        for (size_t l = 0; l < 2; ++l) {
          mixed[l] += (1 - c) * w[received[q]] / sum * models[q][l];
        }
      }
      theta = mixed;
    }
    for (size_t j = 0; j < 4; ++j) {
      const NodeId peer = Id(std::string(1, static_cast<char>('a' + j)));
      ASSERT_NEAR(At(m).weight(peer), w[j], 1e-9) << "turn " << turn;
      ASSERT_GE(At(m).weight(peer), 0);
    }
    for (size_t l = 0; l < 2; ++l) {
      ASSERT_NEAR(m.parameters[l], theta[l], 1e-5) << "turn " << turn;
    }
  }
}

// ------------------------------------------------------------ the claim ----

// Six clients of two kinds, whose labels mean opposite things: after some
// rounds as star each weighs those of its kind more. [thesis] sec. 4
TEST(KdPdflTest, ClientsAlikeWeighMore) {
  constexpr size_t kClients = 6;
  constexpr int64_t kRows = 40;
  Rng rng(3);
  std::vector<std::unique_ptr<simports::Softmax>> problems;
  for (size_t i = 0; i < kClients; ++i) {
    std::vector<double> x;
    std::vector<int64_t> labels;
    for (int64_t row = 0; row < kRows; ++row) {
      const double a = Normal(rng);
      const double b = Normal(rng);
      x.push_back(a);
      x.push_back(b);
      labels.push_back((a + b > 0) == (i < 3) ? 1 : 0);
    }
    problems.push_back(std::make_unique<simports::Softmax>(
        std::move(x), std::move(labels), 2));
  }
  std::vector<NodeId> names;
  for (size_t i = 0; i < kClients; ++i) {
    names.push_back(Id(absl::StrCat("n", i)));
  }
  TestNetwork network(names);
  for (size_t i = 0; i < kClients; ++i) {
    NodePlan plan;
    plan.self = names[i];
    plan.algorithm = *BuiltInCatalogue().Find("kd-pdfl");
    plan.knobs = *Knobs::Resolve(plan.algorithm->knobs,
                                 {{"eta", 0.5}, {"T_ex", int64_t{5}}});
    plan.member_count = kClients;
    for (const NodeId& name : names) {
      if (name != names[i]) plan.neighbours.push_back({name, 0});
    }
    network.Add(i, {.plan = std::move(plan),
                    .decisions = std::make_unique<ScriptedDecisions>(),
                    .parameters = std::vector<float>(problems[i]->n()),
                    .problem = problems[i].get()});
    network.Handle(i, Started{0});
  }
  for (int64_t r = 0; r < 60; ++r) {
    for (size_t i = 0; i < kClients; ++i) network.Begin(i);
    network.RunAll();
    ASSERT_EQ(network.algorithm(0).step(), r + 1);
  }
  for (size_t i = 0; i < kClients; ++i) {
    double alike = 0;
    double unlike = 0;
    for (size_t j = 0; j < kClients; ++j) {
      if (j == i) continue;
      const double weight =
          dynamic_cast<const KdPdfl&>(network.algorithm(i)).weight(names[j]);
      ((i < 3) == (j < 3) ? alike : unlike) += weight;
    }
    EXPECT_GT(alike, 10 * unlike) << "client " << i;
  }
}

}  // namespace
}  // namespace dfl::core
