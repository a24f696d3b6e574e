// The algorithms of synchronous rounds by pushes, several nodes together on
// quadratics, against naive versions; and each claim of theirs alone.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/hubs.h"
#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"
#include "tests/support/test_network.h"
#include "tests/unit/core/machine.h"

namespace dfl::core {
namespace {

constexpr int64_t kLength = 3;
using Vector = std::vector<double>;

// f(w) = 1/2 sum_l a[l] (w[l] - c[l])^2
struct Quadratic {
  Vector a;
  Vector c;
  Vector Gradient(const Vector& w) const {
    Vector g(w.size());
    for (size_t l = 0; l < w.size(); ++l) g[l] = a[l] * (w[l] - c[l]);
    return g;
  }
};

Quadratic QuadraticOf(int64_t node) {
  const auto i = static_cast<double>(node);
  return {{0.5 + 0.25 * i, 1, 2 - 0.25 * i}, {i, -i, 1 - 0.5 * i}};
}

Vector StartOf(int64_t node) {
  return {0.5 * static_cast<double>(node), 1, -static_cast<double>(node)};
}

NodeId Name(int64_t i) { return NodeId(absl::StrCat("n", i)); }

MixingMatrix Uniform(int64_t m) {
  return MixingMatrix(m, Vector(m, 1.0 / static_cast<double>(m)));
}

// A path of four.
MixingMatrix Path() {
  return {{0.6, 0.4, 0, 0},
          {0.4, 0.3, 0.3, 0},
          {0, 0.3, 0.2, 0.5},
          {0, 0, 0.5, 0.5}};
}

// The first of those with the most neighbours.
int64_t MostNeighbours(const MixingMatrix& w) {
  const auto first = std::max_element(
      w.begin(), w.end(), [](const Vector& a, const Vector& b) {
        return std::count(a.begin(), a.end(), 0.0) >
               std::count(b.begin(), b.end(), 0.0);
      });
  return first - w.begin();
}

std::vector<NodeId> Names(size_t m) {
  std::vector<NodeId> names;
  for (size_t i = 0; i < m; ++i) names.push_back(Name(static_cast<int64_t>(i)));
  return names;
}

// Nodes that exchange at once and in full; what is lost is scripted.
class Net : public TestNetwork {
 public:
  Net(const std::string& algorithm, const KnobValues& knobs,
      const MixingMatrix& w, bool zero_gradients = false)
      : TestNetwork(Names(w.size())), zero_gradients_(zero_gradients) {
    const AlgorithmInfo& info = **BuiltInCatalogue().Find(algorithm);
    for (size_t i = 0; i < size(); ++i) {
      NodePlan plan;
      plan.self = name(i);
      plan.seed = 99;
      plan.algorithm = &info;
      plan.knobs = *Knobs::Resolve(info.knobs, knobs);
      plan.member_count = static_cast<int64_t>(size());
      if (info.derive == DeriveHubs) {
        plan.facts = std::make_shared<HubFacts>(
            std::vector<NodeId>{Name(MostNeighbours(w))});
      }
      for (size_t j = 0; j < size(); ++j) {
        if (j != i && w[i][j] > 0)
          plan.neighbours.push_back({name(j), w[i][j]});
      }
      const Vector start = StartOf(static_cast<int64_t>(i));
      Add(i, {.plan = std::move(plan),
              .decisions = std::make_unique<SeededDecisions>(1000 + i),
              .parameters = std::vector<float>(start.begin(), start.end())});
    }
    for (size_t i = 0; i < size(); ++i) {
      Handle(i, Started{0});
      LinkUp(i);
    }
  }

  // One round of everybody; whoever still waits when nothing moves any more
  // goes on at its deadline.
  void Round() {
    for (size_t i = 0; i < size(); ++i) Begin(i);
    RunAll();
    for (size_t i = 0; i < size(); ++i) {
      ASSERT_TRUE(node(i).at_boundary) << "node " << i << " waits for nothing";
    }
  }

  std::vector<float>& at(int64_t i) { return node(i).parameters; }

  // Pushes of (from, to) do not arrive.
  std::set<std::pair<size_t, size_t>> lost;
  int64_t pushes = 0;
  int64_t deadlines = 0;
  int64_t gradients = 0;

 private:
  std::optional<double> Latency(size_t from, size_t to,
                                const Event& /*message*/) override {
    if (lost.count({from, to}) > 0) return std::nullopt;
    return 0;
  }
  GradientReady Gradient(size_t i, absl::Span<const float> model,
                         const std::vector<int64_t>& /*batch*/) override {
    const Vector g = QuadraticOf(static_cast<int64_t>(i))
                         .Gradient(Vector(model.begin(), model.end()));
    for (int64_t l = 0; l < kLength; ++l) {
      node(i).gradient[l] = zero_gradients_ ? 0.0F : static_cast<float>(g[l]);
    }
    return {};
  }
  void OnAction(size_t /*i*/, const Action& action) override {
    if (std::holds_alternative<ComputeGradient>(action)) ++gradients;
    if (const auto* push = std::get_if<Push>(&action)) {
      pushes += static_cast<int64_t>(push->peers.size());
    }
  }
  void OnEvent(size_t /*i*/, const Event& event) override {
    if (std::holds_alternative<TimerFired>(event)) ++deadlines;
  }

  const bool zero_gradients_;
};

// --------------------------------------------------------- naive versions ----

using Models = std::vector<Vector>;

Models Starts(size_t m) {
  Models x;
  for (size_t i = 0; i < m; ++i) x.push_back(StartOf(i));
  return x;
}

Models MixedBy(const MixingMatrix& w, const Models& x) {
  Models out(x.size(), Vector(kLength, 0.0));
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) {
      for (int64_t l = 0; l < kLength; ++l) out[i][l] += w[i][j] * x[j][l];
    }
  }
  return out;
}

void ExpectAt(Net& net, const Models& want, const std::string& what) {
  for (size_t i = 0; i < want.size(); ++i) {
    for (int64_t l = 0; l < kLength; ++l) {
      ASSERT_NEAR(net.at(i)[l], want[i][l], 2e-5)
          << what << ", node " << i << ", coordinate " << l;
    }
  }
}

// --------------------------------------------------------------- dfedavgm ----

TEST(DfedavgmTest, FollowsTheNaiveRecursion) {
  const MixingMatrix w = Path();
  Net net("dfedavgm", {{"eta", 0.05}, {"theta", 0.8}, {"K", int64_t{3}}}, w);
  Models x = Starts(4);
  for (int r = 0; r < 15; ++r) {
    net.Round();
    for (size_t i = 0; i < 4; ++i) {
      Vector v(kLength, 0.0);
      for (int k = 0; k < 3; ++k) {
        const Vector g = QuadraticOf(i).Gradient(x[i]);
        for (int64_t l = 0; l < kLength; ++l) {
          v[l] = 0.8 * v[l] + g[l];
          x[i][l] -= 0.05 * v[l];
        }
      }
    }
    x = MixedBy(w, x);
    ExpectAt(net, x, absl::StrCat("round ", r));
  }
  EXPECT_EQ(net.deadlines, 0);
  EXPECT_EQ(net.algorithm(0).gradients(), 45);
}

TEST(DfedavgmTest, PushesWhatTrainingGaveAndIsUnsettledTillTheMix) {
  Machine m("dfedavgm", {{"eta", 1.0}, {"theta", 0.5}, {"K", int64_t{2}}},
            {{Id("a"), 0.5}});
  m.parameters = {4, 4};
  m.gradient = {1, 0};
  m.Handle(PeerUp{Id("a")});
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  EXPECT_FALSE(m->parameters_settled());
  EXPECT_EQ(m.Handle(GradientReady{}), "gradient");
  EXPECT_FALSE(m.Last<ComputeGradient>().same_batch);
  EXPECT_EQ(m.parameters, (std::vector<float>{3, 4}));
  EXPECT_EQ(m.Handle(GradientReady{}), "push wake");
  EXPECT_EQ(m.parameters, (std::vector<float>{1.5, 4}));  // v = 1.5
  EXPECT_FALSE(m->parameters_settled());
  EXPECT_EQ(m.Handle(PushArrived{Id("a"), Model({3.5, 8}, 0, {2})}),
            "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{2.5, 6}));
  EXPECT_EQ(m.buffers, std::vector<float>{1});
  EXPECT_TRUE(m->parameters_settled());
  // The momentum starts anew.
  m.Handle(StepBegins{});
  m.Handle(GradientReady{});
  EXPECT_EQ(m.parameters, (std::vector<float>{1.5, 6}));
}

// The push takes the model of before the mix.
TEST(DfedavgmTest, AllThatCameBeforeIsMixedAfterThePush) {
  Machine m("dfedavgm", {{"eta", 1.0}, {"K", int64_t{1}}}, {{Id("a"), 0.5}});
  m.gradient = {-2, 0};
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  m.Handle(PushArrived{Id("a"), Model({8, 8}, 0, {2})});
  EXPECT_EQ(m.Handle(GradientReady{}), "push cancel done");
  EXPECT_EQ(m.Last<Push>().values,
            absl::MakeConstSpan(std::vector<float>{2, 0}));
  EXPECT_EQ(m.parameters, (std::vector<float>{5, 4}));
}

TEST(DfedavgmTest, AMissingNeighbourCountsAsNoDifference) {
  Net net("dfedavgm", {{"eta", 0.1}, {"K", int64_t{1}}}, Path());
  net.lost = {{1, 0}};
  net.Round();
  EXPECT_EQ(net.deadlines, 1);
  const Vector g = QuadraticOf(0).Gradient(StartOf(0));
  for (int64_t l = 0; l < kLength; ++l) {
    EXPECT_NEAR(net.at(0)[l], StartOf(0)[l] - 0.1 * g[l], 1e-6);
  }
}

// ---------------------------------------------------------------- dfedsam ----

TEST(DfedsamTest, FollowsTheNaiveRecursion) {
  const MixingMatrix w = Path();
  Net net("dfedsam", {{"eta", 0.05}, {"rho", 0.3}, {"K", int64_t{2}}}, w);
  Models x = Starts(4);
  for (int r = 0; r < 15; ++r) {
    net.Round();
    for (size_t i = 0; i < 4; ++i) {
      for (int k = 0; k < 2; ++k) {
        const Vector g = QuadraticOf(i).Gradient(x[i]);
        double norm = 0;
        for (const double value : g) norm += value * value;
        norm = std::sqrt(norm);
        Vector ascended = x[i];
        for (int64_t l = 0; l < kLength; ++l) ascended[l] += 0.3 * g[l] / norm;
        const Vector h = QuadraticOf(i).Gradient(ascended);
        for (int64_t l = 0; l < kLength; ++l) x[i][l] -= 0.05 * h[l];
      }
    }
    x = MixedBy(w, x);
    ExpectAt(net, x, absl::StrCat("round ", r));
  }
  EXPECT_EQ(net.algorithm(0).gradients(), 30);  // steps
  EXPECT_EQ(net.gradients, 4 * 60);
}

TEST(DfedsamTest, BothGradientsOfAStepAreOnOneBatch) {
  Machine m("dfedsam", {{"eta", 0.5}, {"rho", 10.0}, {"K", int64_t{2}}}, {});
  m.parameters = {1, 1};
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  EXPECT_FALSE(m.Last<ComputeGradient>().same_batch);
  m.gradient = {3, 4};
  EXPECT_EQ(m.Handle(GradientReady{}), "gradient");
  EXPECT_TRUE(m.Last<ComputeGradient>().same_batch);
  EXPECT_EQ(m.parameters, (std::vector<float>{7, 9}));  // 10 g/||g||
  m.gradient = {2, -2};
  EXPECT_EQ(m.Handle(GradientReady{}), "gradient");
  EXPECT_FALSE(m.Last<ComputeGradient>().same_batch);  // the next step
  EXPECT_EQ(m.parameters, (std::vector<float>{0, 2}));
  m.gradient = {0, 0};  // no direction: the gradient is taken where it is
  m.Handle(GradientReady{});
  EXPECT_EQ(m.parameters, (std::vector<float>{0, 2}));
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{0, 2}));
  EXPECT_EQ(m->gradients(), 2);
}

// ---------------------------------------------- fedavg, fedavg+ and swarm ----

KnobValues FedavgKnobs(const std::string& form) {
  return {{"form", form}, {"eta", 0.05}, {"E", int64_t{3}}, {"mu", 0.9}};
}

TEST(FedavgTest, FollowsTheNaiveRecursion) {
  for (const bool local : {false, true}) {
    Net net("fedavg", FedavgKnobs(local ? "local" : "gradient"), Uniform(4));
    Models x = Starts(4);
    for (int r = 0; r < 15; ++r) {
      net.Round();
      Models progress = x;
      for (size_t i = 0; i < 4; ++i) {
        Vector at = x[i];
        for (int e = 0; e < (local ? 3 : 1); ++e) {
          const Vector g = QuadraticOf(i).Gradient(at);
          for (int64_t l = 0; l < kLength; ++l) at[l] -= 0.05 * g[l];
        }
        for (int64_t l = 0; l < kLength; ++l) {
          progress[i][l] = (local ? 0.9 : 1) * (at[l] - x[i][l]);
        }
      }
      x = MixedBy(Uniform(4), x);
      for (size_t i = 0; i < 4; ++i) {
        for (int64_t l = 0; l < kLength; ++l) x[i][l] += progress[i][l];
      }
      ExpectAt(net, x, absl::StrCat("local ", local, ", round ", r));
    }
    EXPECT_EQ(net.pushes, 15 * 12);  // m (m-1) a round
  }
}

TEST(SwarmTest, GivesTheModelsOfFedavgWithFewerMessages) {
  for (const std::string form : {"gradient", "local"}) {
    Net swarm("swarm", FedavgKnobs(form), Uniform(4));
    Net fedavg("fedavg", FedavgKnobs(form), Uniform(4));
    for (int r = 0; r < 15; ++r) {
      swarm.Round();
      fedavg.Round();
      Models want;
      for (int64_t i = 0; i < 4; ++i) {
        want.emplace_back(fedavg.at(i).begin(), fedavg.at(i).end());
      }
      ExpectAt(swarm, want, absl::StrCat(form, ", round ", r));
    }
    EXPECT_EQ(swarm.pushes, 15 * 6);  // 2 (m-1) a round
    EXPECT_EQ(swarm.deadlines, 0);
  }
}

TEST(SwarmTest, TheLeaderIsDrawnAnewAndAllDrawTheSame) {
  std::set<int64_t> leaders;
  for (int64_t round = 0; round < 40; ++round) {
    std::set<int64_t> drawn;
    for (uint64_t node = 0; node < 5; ++node) {
      SeededDecisions decisions(node, /*stream=*/node);
      drawn.insert(decisions.ChooseTogether(99, "leader", round, 4, 1)[0]);
    }
    EXPECT_EQ(drawn.size(), 1U) << "round " << round;
    leaders.insert(*drawn.begin());
  }
  EXPECT_EQ(leaders, (std::set<int64_t>{0, 1, 2, 3}));
}

TEST(SwarmTest, WhoseModelOrMeanIsLostCountsAsNoDifference) {
  SeededDecisions decisions(0);
  const int64_t leader = decisions.ChooseTogether(99, "leader", 0, 4, 1)[0];
  const int64_t silent = (leader + 1) % 4;
  const int64_t deaf = (leader + 2) % 4;
  const int64_t other = (leader + 3) % 4;
  Net net("swarm", FedavgKnobs("gradient"), Uniform(4));
  net.lost = {{silent, leader}, {leader, deaf}};
  net.Round();
  EXPECT_EQ(net.deadlines, 2);
  Vector mean(kLength, 0.0);
  for (const int64_t i : {leader, leader, deaf, other}) {
    for (int64_t l = 0; l < kLength; ++l) mean[l] += StartOf(i)[l] / 4;
  }
  for (int64_t i = 0; i < 4; ++i) {
    const Vector g = QuadraticOf(i).Gradient(StartOf(i));
    for (int64_t l = 0; l < kLength; ++l) {
      const double from = i == deaf ? StartOf(i)[l] : mean[l];
      EXPECT_NEAR(net.at(i)[l], from - 0.05 * g[l], 1e-6) << "node " << i;
    }
  }
}

TEST(SwarmTest, OthersWaitLongerThanTheLeader) {
  // The lowest place leads: "a" here, and ourselves as "self" never.
  Machine m("swarm", {{"form", std::string("gradient")}}, Three());
  for (const char* peer : {"a", "b", "c"}) m.Handle(PeerUp{Id(peer)});
  EXPECT_EQ(m.Handle(StepBegins{}), "push gradient");
  EXPECT_EQ(m.Last<Push>().peers, std::vector<NodeId>{Id("a")});
  EXPECT_EQ(m.Handle(GradientReady{}), "wake");
  EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(4));
  // Only the leader's is the mean.
  EXPECT_EQ(m.Handle(PushArrived{Id("b"), Model({9, 9}, 0, {9})}), "");
  EXPECT_EQ(m.Handle(PushArrived{Id("a"), Model({2, 4}, 0, {1})}),
            "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{2, 4}));
  EXPECT_EQ(m.buffers, std::vector<float>{1});
}

TEST(FedavgPlusTest, FineTunesAloneFromItsRoundOn) {
  KnobValues knobs = FedavgKnobs("local");
  Net fedavg("fedavg", knobs, Uniform(4));
  knobs["fine_tune_from"] = int64_t{10};
  Net net("fedavg+", knobs, Uniform(4));
  for (int r = 0; r < 10; ++r) {
    net.Round();
    fedavg.Round();
  }
  EXPECT_EQ(net.pushes, fedavg.pushes);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(net.at(i), fedavg.at(i));
  for (int r = 0; r < 200; ++r) net.Round();
  EXPECT_EQ(net.pushes, fedavg.pushes);
  EXPECT_EQ(net.deadlines, 0);
  // The fixed point of a local method: everyone at the minimum of its own loss.
  Models own;
  for (int64_t i = 0; i < 4; ++i) own.push_back(QuadraticOf(i).c);
  ExpectAt(net, own, "fine-tuned");
}

TEST(FedavgPlusTest, NoRoundOfFineTuningIsJumpedOver) {
  Machine m("fedavg+", {{"fine_tune_from", int64_t{10}}}, Three());
  m->JumpTo(7);
  EXPECT_EQ(m->step(), 7);
  m->JumpTo(30);
  EXPECT_EQ(m->step(), 10);
  m->JumpTo(31);
  EXPECT_EQ(m->step(), 10);
  for (const char* peer : {"a", "b", "c"}) m.Handle(PeerUp{Id(peer)});
  // A late value of the last average is not mixed any more.
  m.Handle(PushArrived{Id("a"), Model({8, 8}, 9, {8})});
  EXPECT_EQ(m.Handle(StepBegins{}), "gradient");
  EXPECT_EQ(m.Handle(GradientReady{}), "cancel done");
  EXPECT_EQ(m.parameters, (std::vector<float>{0, 0}));
}

// --------------------------------------------------------------- epidemic ----

// places[j]: whom j sends to in `round`.
std::vector<std::set<int64_t>> Sends(int64_t round, int64_t m, int64_t s) {
  SeededDecisions decisions(0);
  std::vector<std::set<int64_t>> sends(m);
  for (int64_t j = 0; j < m; ++j) {
    for (const int64_t place : decisions.ChooseTogether(
             99, absl::StrCat("receivers of n", j), round, m - 1, s)) {
      sends[j].insert(place < j ? place : place + 1);
    }
  }
  return sends;
}

TEST(EpidemicTest, FollowsTheNaiveRecursionInBothOrders) {
  for (const bool step_first : {false, true}) {
    Net net("epidemic",
            {{"eta", 0.05}, {"s", int64_t{2}}, {"step_first", step_first}},
            Uniform(5));
    Models x = Starts(5);
    const auto step = [&x] {
      for (size_t i = 0; i < 5; ++i) {
        const Vector g = QuadraticOf(i).Gradient(x[i]);
        for (int64_t l = 0; l < kLength; ++l) x[i][l] -= 0.05 * g[l];
      }
    };
    for (int r = 0; r < 20; ++r) {
      net.Round();
      if (step_first) step();
      const auto sends = Sends(r, 5, 2);
      Models average = x;
      for (int64_t i = 0; i < 5; ++i) {
        double count = 1;
        for (int64_t j = 0; j < 5; ++j) {
          if (sends[j].count(i) == 0) continue;
          ++count;
          for (int64_t l = 0; l < kLength; ++l) average[i][l] += x[j][l];
        }
        for (int64_t l = 0; l < kLength; ++l) average[i][l] /= count;
      }
      x = average;
      if (!step_first) step();
      ExpectAt(net, x, absl::StrCat("step first ", step_first, ", round ", r));
    }
    EXPECT_EQ(net.pushes, 20 * 5 * 2);
    EXPECT_EQ(net.deadlines, 0);  // everyone knew whom to wait for
  }
}

TEST(EpidemicTest, WaitsForThoseThatChoseItOnly) {
  // The lowest places: with s = 2 everybody sends to two of a, b and c.
  Machine m("epidemic", {{"eta", 1.0}, {"s", int64_t{2}}}, Three());
  for (const char* peer : {"a", "b", "c"}) m.Handle(PeerUp{Id(peer)});
  EXPECT_EQ(m.Handle(StepBegins{}), "push cancel gradient");
  EXPECT_EQ(m.Last<Push>().peers, (std::vector<NodeId>{Id("a"), Id("b")}));
  EXPECT_EQ(m.Handle(GradientReady{}), "done");
}

TEST(EpidemicTest, AveragesWhatCameAtTheDeadline) {
  Machine m("epidemic", {{"eta", 1.0}, {"s", int64_t{3}}}, Three());
  for (const char* peer : {"a", "b", "c"}) m.Handle(PeerUp{Id(peer)});
  m.parameters = {3, 3};
  EXPECT_EQ(m.Handle(StepBegins{}), "push wake");
  const uint64_t timer = m.Last<WakeAfter>().timer;
  m.Handle(PushArrived{Id("a"), Model({6, 0}, 0, {3})});
  m.Handle(PushArrived{Id("c"), Model({0, 9}, 0, {3})});
  EXPECT_TRUE(m->parameters_settled());
  EXPECT_EQ(m.Handle(TimerFired{timer}), "missed cancel gradient");
  EXPECT_EQ(m.Last<Missed>().peers, std::vector<NodeId>{Id("b")});
  EXPECT_FALSE(m->parameters_settled());
  EXPECT_EQ(m.parameters, (std::vector<float>{3, 4}));
  EXPECT_EQ(m.buffers, std::vector<float>{2});
  m.gradient = {1, 1};
  EXPECT_EQ(m.Handle(TimerFired{timer}), "");  // late
  EXPECT_EQ(m.Handle(GradientReady{}), "done");
  EXPECT_EQ(m.parameters, (std::vector<float>{2, 3}));  // the step at the mean
  EXPECT_TRUE(m->parameters_settled());
}

TEST(EpidemicTest, SendsToNoMoreThanThereAre) {
  Machine m("epidemic", {{"s", int64_t{50}}}, Three());
  m.Handle(StepBegins{});
  EXPECT_EQ(m.Last<Push>().peers.size(), 3U);
  Machine alone("epidemic", {{"s", int64_t{50}}}, {});
  EXPECT_EQ(alone.Handle(StepBegins{}), "cancel gradient");
  EXPECT_EQ(alone.Handle(GradientReady{}), "done");
}

// ----------------------------------------------------------------- fedmid ----

// n2 is the centre.
MixingMatrix Star() {
  return {{0.5, 0, 0.5, 0},
          {0, 0.5, 0.5, 0},
          {0.25, 0.25, 0.25, 0.25},
          {0, 0, 0.5, 0.5}};
}

// `bend` is theta of mcp and a of scad.
double NaiveProx(const std::string& h, double lambda, double bend, double alpha,
                 double v) {
  const double size = std::fabs(v);
  const double sign = v < 0 ? -1 : 1;
  const double soft = sign * std::max(size - alpha * lambda, 0.0);
  if (h == "l1") return soft;
  if (size > bend * lambda) return v;
  if (h == "mcp") return soft / (1 - alpha / bend);
  if (size <= lambda + alpha * lambda) return soft;
  // z - v + alpha (bend lambda - z)/(bend - 1) = 0 for z > 0.
  return sign * (size - alpha * bend * lambda / (bend - 1)) /
         (1 - alpha / (bend - 1));
}

class FedmidTest : public testing::TestWithParam<std::string> {};

TEST_P(FedmidTest, FollowsTheNaiveRecursion) {
  Net net("fedmid",
          {{"eta_c", 0.05},
           {"eta_s", 1.5},
           {"K", int64_t{3}},
           {"prox", GetParam()},
           {"lambda", 0.7},
           {"theta", 2.0},
           {"a", 2.5}},
          Star());
  const double bend = GetParam() == "scad" ? 2.5 : 2;
  const auto prox = [&](double alpha, double v) {
    return NaiveProx(GetParam(), 0.7, bend, alpha, v);
  };
  Vector w = StartOf(2);
  for (int64_t i = 0; i < 4; ++i) net.at(i).assign(w.begin(), w.end());
  for (int r = 0; r < 40; ++r) {
    net.Round();
    Vector mean(kLength, 0.0);
    for (int64_t i = 0; i < 4; ++i) {
      Vector z = w;
      for (int k = 0; k < 3; ++k) {
        const Vector g = QuadraticOf(i).Gradient(z);
        for (int64_t l = 0; l < kLength; ++l) {
          z[l] = prox(0.05, z[l] - 0.05 * g[l]);
        }
      }
      for (int64_t l = 0; l < kLength; ++l) mean[l] += (z[l] - w[l]) / 4;
    }
    for (int64_t l = 0; l < kLength; ++l) {
      w[l] = prox(1.5 * 0.05 * 3, w[l] + 1.5 * mean[l]);
    }
    ExpectAt(net, {w, w, w, w}, absl::StrCat("round ", r));
  }
  EXPECT_EQ(net.deadlines, 0);
  EXPECT_EQ(net.pushes, 40 * (3 + 3));
  EXPECT_EQ(net.algorithm(1).gradients(), 120);
  // h makes the model sparse, on every node.
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(net.at(i)[2], 0) << "node " << i;
}

INSTANTIATE_TEST_SUITE_P(Regularisers, FedmidTest,
                         testing::Values("l1", "mcp", "scad"));

TEST(FedmidLossTest, WhoseModelIsLostCountsAsNoDifference) {
  const KnobValues knobs = {{"eta_c", 0.1}, {"K", int64_t{1}}};
  Net net("fedmid", knobs, Star());
  const Vector w = StartOf(2);
  for (int64_t i = 0; i < 4; ++i) net.at(i).assign(w.begin(), w.end());
  net.lost = {{0, 2}, {2, 3}};
  net.Round();
  Vector want = w;
  for (const int64_t i : {1, 2, 3}) {
    const Vector g = QuadraticOf(i).Gradient(w);
    for (int64_t l = 0; l < kLength; ++l) want[l] -= 0.1 * g[l] / 4;
  }
  // Without the hub's w a spoke stays where it was.
  ExpectAt(net, {want, want, want, w}, "one lost each way");
  EXPECT_EQ(net.deadlines, 2);
}

TEST(FedmidLossTest, SpokesWaitLongerThanTheHub) {
  for (const bool hub : {true, false}) {
    Machine m("fedmid", {{"K", int64_t{1}}}, {{Id("a"), 0.5}});
    NodePlan plan = m.Plan({{"K", int64_t{1}}}, {{Id("a"), 0.5}});
    plan.facts = std::make_shared<HubFacts>(
        std::vector<NodeId>{hub ? plan.self : Id("a")});
    m.Handle(PlanChanged{std::move(plan)});
    m.Handle(PeerUp{Id("a")});
    m.Handle(StepBegins{});
    EXPECT_FALSE(m->parameters_settled());
    EXPECT_EQ(m.Handle(GradientReady{}), hub ? "wake" : "push wake");
    EXPECT_EQ(m.Last<WakeAfter>().delay, absl::Seconds(hub ? 2 : 4));
    // A model of another round is of no use.
    EXPECT_EQ(m.Handle(TimerFired{m.Last<WakeAfter>().timer}),
              hub ? "missed cancel push done" : "missed cancel done");
    m.Handle(StepBegins{});
    m.Handle(PushArrived{Id("a"), Model({9, 9}, 0, {2})});
    m.Handle(GradientReady{});
    m.Handle(TimerFired{m.Last<WakeAfter>().timer});
    EXPECT_EQ(m.parameters, (std::vector<float>{0, 0}));
  }
}

// Buffers: the mean of all at the hub, the hub's at the spokes; eta_s is the
// model's alone.
TEST(FedmidLossTest, BuffersAreAveragedWhateverTheStep) {
  const KnobValues knobs = {{"K", int64_t{1}}, {"eta_s", 10.0}};
  Machine m("fedmid", knobs, {{Id("a"), 0.5}});
  NodePlan plan = m.Plan(knobs, {{Id("a"), 0.5}});
  plan.facts = std::make_shared<HubFacts>(std::vector<NodeId>{plan.self});
  m.Handle(PlanChanged{plan});
  m.Handle(PeerUp{Id("a")});
  m.Handle(StepBegins{});
  m.Handle(GradientReady{});
  EXPECT_EQ(m.Handle(PushArrived{Id("a"), Model({1, 2}, 0, {2})}),
            "cancel push done");
  EXPECT_EQ(m.buffers[0], 1);
  EXPECT_EQ(m.parameters, (std::vector<float>{5, 10}));
  EXPECT_EQ(m.Last<Push>().values, absl::MakeConstSpan(m.parameters));
  plan.facts = std::make_shared<HubFacts>(std::vector<NodeId>{Id("a")});
  m.Handle(PlanChanged{plan});
  m.Handle(StepBegins{});
  m.Handle(GradientReady{});
  m.Handle(PushArrived{Id("a"), Model({3, 3}, 1, {7})});
  EXPECT_EQ(m.buffers[0], 7);
  EXPECT_EQ(m.parameters, (std::vector<float>{3, 3}));
}

// Of every algorithm with a proximal step, whatever its rounds look like.
TEST(SparsityGaugeTest, IsTheShareOfParametersThatThePenaltyMadeZero) {
  for (const AlgorithmInfo& info : BuiltInCatalogue().entries()) {
    SCOPED_TRACE(info.name);
    if (info.prox_steps == nullptr) {
      Machine machine(info.name, {}, {});
      EXPECT_EQ(machine->Gauges().count("sparsity"), 0U);
      continue;
    }
    for (const bool penalised : {false, true}) {
      Machine machine(
          info.name,
          {{"prox", std::string(penalised ? "l1" : "none")}, {"lambda", 1.0}},
          {}, /*n=*/4);
      machine.parameters = {1, -1e-4F, 1e-4F, 1e-4F};
      ASSERT_EQ(machine->Gauges().count("sparsity"), 1U);
      EXPECT_EQ(machine.Gauge("sparsity"), 0);
      machine.Handle(StepBegins{});
      bool done = false;
      for (int i = 0; i < 10 && !done; ++i) {
        machine.Handle(GradientReady{});
        done = std::any_of(
            machine.actions.begin(), machine.actions.end(),
            [](const auto& a) { return std::holds_alternative<StepDone>(a); });
      }
      ASSERT_TRUE(done);
      EXPECT_EQ(machine.Gauge("sparsity"), penalised ? 0.75 : 0);
    }
  }
}

TEST(SeededDecisionsTest, ChooseTogetherIsUniformAndDistinct) {
  constexpr int kRounds = 6000;
  std::map<int64_t, int> counts;
  std::map<std::set<int64_t>, int> pairs;
  for (int round = 0; round < kRounds; ++round) {
    SeededDecisions decisions(round);
    const std::vector<int64_t> chosen =
        decisions.ChooseTogether(7, "purpose", round, 4, 2);
    const std::set<int64_t> distinct(chosen.begin(), chosen.end());
    ASSERT_EQ(distinct.size(), 2U);
    for (const int64_t place : distinct) {
      ASSERT_GE(place, 0);
      ASSERT_LT(place, 4);
      ++counts[place];
    }
    ++pairs[distinct];
    EXPECT_EQ(SeededDecisions(5).ChooseTogether(7, "purpose", round, 4, 2),
              chosen);
  }
  // Five standard deviations.
  for (const auto& [place, count] : counts) {
    EXPECT_NEAR(count, kRounds / 2.0, 5 * std::sqrt(kRounds / 4.0));
  }
  EXPECT_EQ(pairs.size(), 6U);
  for (const auto& [pair, count] : pairs) {
    EXPECT_NEAR(count, kRounds / 6.0, 5 * std::sqrt(kRounds / 6.0));
  }
  SeededDecisions decisions(0);
  EXPECT_NE(decisions.ChooseTogether(7, "purpose", 0, 1000, 5),
            decisions.ChooseTogether(8, "purpose", 0, 1000, 5));
  EXPECT_NE(decisions.ChooseTogether(7, "purpose", 0, 1000, 5),
            decisions.ChooseTogether(7, "other", 0, 1000, 5));
}

// -------------------------------------------------------------------- all ----

class AllPushAlgorithms : public testing::TestWithParam<std::string> {};

TEST_P(AllPushAlgorithms, AgreementIsAFixedPoint) {
  Net net(GetParam(), {}, Uniform(4), /*zero_gradients=*/true);
  const std::vector<float> model = {0.1F, -1e-30F, 3e8F};
  for (int64_t i = 0; i < 4; ++i) net.at(i) = model;
  for (int r = 0; r < 10; ++r) net.Round();
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(net.at(i), model);
  EXPECT_GT(net.pushes, 0);
}

INSTANTIATE_TEST_SUITE_P(Push, AllPushAlgorithms,
                         testing::Values("dfedavgm", "dfedsam", "fedavg",
                                         "swarm", "fedavg+", "epidemic",
                                         "fedmid"),
                         [](const auto& info) {
                           return info.param == "fedavg+" ? "fedavgplus"
                                                          : info.param;
                         });

}  // namespace
}  // namespace dfl::core
