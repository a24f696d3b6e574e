#include "tests/unit/core/matrix_network.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/graph.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

constexpr uint64_t kSeed = 20;
constexpr double kTheEnd = 1000;  // s; a round takes less
constexpr double kApart = 1e-9;   // messages of one stream

NodeId NameOf(int64_t i) { return NodeId(absl::StrCat("n", i)); }

int64_t IndexOfName(const NodeId& id) {
  return std::stoll(id.name().substr(1));
}

std::vector<NodeId> Names(int64_t m) {
  std::vector<NodeId> names;
  for (int64_t i = 0; i < m; ++i) names.push_back(NameOf(i));
  return names;
}

}  // namespace

// ----------------------------------------------------------------- script ----

namespace script {

bool Coin(absl::string_view purpose, int64_t node, int64_t peer, int64_t nth,
          double probability) {
  const uint64_t to = DeriveSeed(kSeed, purpose, node, peer + 1);
  return Rng(DeriveSeed(to, "coin", nth)).Bernoulli(probability);
}

std::vector<int64_t> Places(absl::string_view purpose, int64_t node,
                            int64_t nth, int64_t candidates, int64_t count) {
  return NamedCoordinates(DeriveSeed(kSeed, purpose, node, nth), candidates,
                          count);
}

uint64_t Name(int64_t node, int64_t to, int64_t nth) {
  return DeriveSeed(DeriveSeed(kSeed, "answer", node, to), "nth", nth);
}

int64_t Drawn(int64_t node, IntRange range) {
  return range.lo + node % (range.hi - range.lo + 1);
}

}  // namespace script

namespace {

// Reads the script.
class FollowsScript : public Decisions {
 public:
  explicit FollowsScript(int64_t node) : node_(node) {}

  std::vector<NodeId> ChooseNeighbours(absl::Span<const NodeId> candidates,
                                       int64_t count) override {
    std::vector<NodeId> chosen;
    for (const int64_t place :
         script::Places("neighbours", node_, Nth("neighbours", -1),
                        static_cast<int64_t>(candidates.size()), count)) {
      chosen.push_back(candidates[place]);
    }
    return chosen;
  }
  uint64_t NameCoordinates(const NodeId& to) override {
    const int64_t peer = IndexOfName(to);
    return script::Name(node_, peer, Nth("answer", peer));
  }
  int64_t DrawFrom(absl::string_view, IntRange range) override {
    return script::Drawn(node_, range);
  }
  int64_t DrawAnew(absl::string_view, IntRange range) override {
    return range.lo;
  }
  bool Happens(absl::string_view purpose, const NodeId& peer,
               double probability) override {
    const int64_t to = IndexOfName(peer);
    return script::Coin(purpose, node_, to, Nth(purpose, to), probability);
  }
  std::vector<int64_t> ChooseTogether(uint64_t, absl::string_view purpose,
                                      int64_t round, int64_t candidates,
                                      int64_t count) override {
    return script::Places(purpose, -1, round, candidates, count);
  }
  double DrawWait(absl::string_view, double mean) override { return mean; }
  std::vector<int64_t> ChooseCoordinates(absl::string_view purpose, int64_t n,
                                         int64_t count) override {
    return script::Places(purpose, node_, Nth(purpose, -1), n, count);
  }

 private:
  int64_t Nth(absl::string_view purpose, int64_t peer) {
    return often_[{std::string(purpose), peer}]++;
  }

  const int64_t node_;
  std::map<std::pair<std::string, int64_t>, int64_t> often_;
};

// As a plan has it, so that the step of sgp is seen not to be touched by it.
Digraph ArcsOf(const Matrix& b) {
  Digraph graph(b.rows());
  for (int64_t to = 0; to < b.rows(); ++to) {
    for (int64_t from = 0; from < b.rows(); ++from) {
      if (to != from && b(to, from) != 0) graph.AddArc(from, to);
    }
  }
  return graph;
}

}  // namespace

// ---------------------------------------------------------------- network ----

MatrixNetwork::MatrixNetwork(const std::string& algorithm,
                             const LeastSquares& problem,
                             const Weights& weights,
                             const std::function<KnobValues(int64_t)>& knobs,
                             Asks asks)
    : TestNetwork(Names(problem.nodes())),
      problem_(problem),
      asks_served_(asks),
      order_(kSeed + 2) {
  const AlgorithmInfo& info = **BuiltInCatalogue().Find(algorithm);
  pulls_ = info.exchange == Exchange::kPull;
  const int64_t m = problem.nodes();
  const Matrix starts = Starts(m, problem.n());
  Network network;
  network.members = Names(m);
  for (int64_t i = 0; i < m; ++i) {
    network.own_knobs[i] = *Knobs::Resolve(info.knobs, knobs(i));
  }
  network.graph = ArcsOf(weights.sends);
  for (int64_t i = 0; i < m; ++i) {
    const absl::Span<const double> start = starts.row(i);
    Add(i, {.plan = PlanOf(network, info, weights, i),
            .decisions = std::make_unique<FollowsScript>(i),
            .parameters = std::vector<float>(start.begin(), start.end())});
  }
  for (int64_t i = 0; i < m; ++i) {
    Handle(i, Started{0});
    LinkUp(i);
  }
}

NodePlan MatrixNetwork::PlanOf(const Network& network,
                               const AlgorithmInfo& info,
                               const Weights& weights, int64_t i) const {
  NodePlan plan;
  plan.self = NameOf(i);
  plan.seed = kSeed;
  plan.algorithm = &info;
  plan.knobs = network.KnobsOf(i);
  plan.member_count = problem_.nodes();
  plan.place = i;
  if (info.derive != nullptr) plan.facts = info.derive(network);
  plan.self_weight = plan.receiver_weight = weights.hears(i, i);
  plan.sender_weight = weights.sends(i, i);
  for (int64_t j = 0; j < problem_.nodes(); ++j) {
    const double heard = weights.hears(i, j);
    const double sent = weights.sends(j, i);
    if (j == i || (heard == 0 && sent == 0)) continue;
    plan.neighbours.push_back({NameOf(j), heard});
    if (heard > 0) plan.in_neighbours.push_back({NameOf(j), heard});
    if (sent > 0) plan.out_neighbours.push_back({NameOf(j), sent});
  }
  return plan;
}

Matrix MatrixNetwork::Models() const {
  Matrix x(problem_.nodes(), problem_.n());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t l = 0; l < x.columns(); ++l) x(i, l) = parameters(i)[l];
  }
  return x;
}

Matrix MatrixNetwork::Auxiliary(const std::string& symbol) const {
  Matrix y(problem_.nodes(), problem_.n());
  for (int64_t i = 0; i < y.rows(); ++i) {
    const FlatVector row = algorithm(i).Auxiliary(symbol);
    DFL_CHECK(static_cast<int64_t>(row.size()) == y.columns());
    for (int64_t l = 0; l < y.columns(); ++l) y(i, l) = row[l];
  }
  return y;
}

double MatrixNetwork::Gauge(int64_t node, const std::string& name) const {
  return algorithm(node).Gauges().at(name);
}

void MatrixNetwork::Round() {
  for (size_t i = 0; i < size(); ++i) {
    HandleAfter(pulls_ ? 0 : order_.Uniform(), i, StepBegins{});
  }
  RunAll();
  for (size_t i = 0; i < size(); ++i) {
    EXPECT_TRUE(node(i).at_boundary) << "node " << i << " waits for a deadline";
  }
  EXPECT_EQ(asks_waited(), 0);
}

std::optional<double> MatrixNetwork::Latency(size_t from, size_t to,
                                             const Event& message) {
  if (std::holds_alternative<AskArrived>(message)) {
    return asks_served_ == Asks::kAtOnce ? 0 : kTheEnd;
  }
  const bool mass = std::holds_alternative<MassArrived>(message) ||
                    std::holds_alternative<Delivered>(message);
  double& last = last_[{from, to, mass}];
  last = std::max(last + kApart, now() + order_.Uniform());
  return last - now();
}

GradientReady MatrixNetwork::Gradient(size_t i, absl::Span<const float> model,
                                      const std::vector<int64_t>& /*batch*/) {
  const std::vector<double> w(model.begin(), model.end());
  const std::vector<double> g = problem_.Gradient(static_cast<int64_t>(i), w);
  std::transform(g.begin(), g.end(), node(i).gradient.begin(),
                 [](double value) { return static_cast<float>(value); });
  return {};
}

void MatrixNetwork::OnAction(size_t i, const Action& action) {
  if (const auto* push = std::get_if<Push>(&action)) {
    messages_ += static_cast<int64_t>(push->peers.size());
  } else if (std::holds_alternative<Give>(action) ||
             std::holds_alternative<Answer>(action)) {
    ++messages_;
  } else if (std::holds_alternative<StepDone>(action)) {
    EXPECT_FALSE(node(i).at_boundary);
  }
  EXPECT_FALSE(std::holds_alternative<Missed>(action)) << "node " << i;
  EXPECT_FALSE(std::holds_alternative<Predict>(action)) << "node " << i;
}

}  // namespace dfl::core
