#include "tests/unit/core/matrix_network.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/vector/message_format.h"
#include "tests/support/recorded_actions.h"

namespace dfl::core {
namespace {

constexpr uint64_t kSeed = 20;

// Streams of a link; what a node tells itself has one of its own.
enum Stream { kModels, kMass };

}  // namespace

// --------------------------------------------------------------- matrices ----

Matrix Matrix::Each(const std::function<double(double)>& f) const {
  Matrix out = *this;
  std::transform(values_.begin(), values_.end(), out.values_.begin(), f);
  return out;
}

double Matrix::Largest() const {
  double largest = 0;
  for (const double value : values_) {
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

Matrix operator+(Matrix a, const Matrix& b) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t l = 0; l < a.columns(); ++l) a(i, l) += b(i, l);
  }
  return a;
}

Matrix operator-(Matrix a, const Matrix& b) { return std::move(a) + -1.0 * b; }

Matrix operator*(double a, const Matrix& b) {
  return b.Each([a](double value) { return a * value; });
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows(), b.columns());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) {
      for (int64_t l = 0; l < b.columns(); ++l) out(i, l) += a(i, j) * b(j, l);
    }
  }
  return out;
}

Matrix Identity(int64_t m) { return Diagonal(std::vector<double>(m, 1.0)); }

Matrix Diagonal(const std::vector<double>& entries) {
  const auto m = static_cast<int64_t>(entries.size());
  Matrix out(m, m);
  for (int64_t i = 0; i < m; ++i) out(i, i) = entries[i];
  return out;
}

// ---------------------------------------------------------------- weights ----

Arcs BothWays(const Arcs& edges) {
  Arcs arcs;
  for (const auto& [a, b] : edges) {
    arcs.emplace_back(a, b);
    arcs.emplace_back(b, a);
  }
  return arcs;
}

Matrix Metropolis(int64_t m, const Arcs& arcs) {
  std::vector<double> degree(m, 0.0);
  for (const auto& [from, to] : arcs) degree[from] += 1;
  Matrix w = Identity(m);
  for (const auto& [from, to] : arcs) {
    w(to, from) = 1 / (1 + std::max(degree[from], degree[to]));
    w(to, to) -= w(to, from);
  }
  return w;
}

Matrix Uniform(int64_t m) {
  return Matrix(m, m).Each([m](double) { return 1 / static_cast<double>(m); });
}

Matrix ReceiverWeights(int64_t m, const Arcs& arcs) {
  std::vector<double> heard(m, 0.0);
  for (const auto& [from, to] : arcs) heard[to] += 1;
  Matrix a(m, m);
  for (int64_t i = 0; i < m; ++i) a(i, i) = 1 / (1 + heard[i]);
  for (const auto& [from, to] : arcs) a(to, from) = 1 / (1 + heard[to]);
  return a;
}

Matrix SenderWeights(int64_t m, const Arcs& arcs) {
  std::vector<double> sends(m, 0.0);
  for (const auto& [from, to] : arcs) sends[from] += 1;
  Matrix b(m, m);
  for (int64_t i = 0; i < m; ++i) b(i, i) = 1 / (1 + sends[i]);
  for (const auto& [from, to] : arcs) b(to, from) = 1 / (1 + sends[from]);
  return b;
}

Weights ChordedRing() {
  const Matrix w =
      Metropolis(5, BothWays({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 2}}));
  return {w, w};
}

Weights Digraph5() {
  const Arcs arcs = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 3}, {2, 0}};
  return {ReceiverWeights(5, arcs), SenderWeights(5, arcs)};
}

Weights Complete(int64_t m) { return {Uniform(m), Uniform(m)}; }

// --------------------------------------------------------------- problems ----

LeastSquares::LeastSquares(int64_t nodes, int64_t n) : n_(n) {
  constexpr int64_t kRows = 8;
  Rng rng(kSeed);
  for (int64_t i = 0; i < nodes; ++i) {
    Matrix hessian(n, n);
    std::vector<double> h(n, 0.0);
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> a(n);
      for (double& value : a) value = 2 * rng.Uniform() - 1;
      const double b = static_cast<double>(i) - 2 + 2 * rng.Uniform();
      for (int64_t l = 0; l < n; ++l) {
        h[l] += a[l] * b / kRows;
        for (int64_t q = 0; q < n; ++q) hessian(l, q) += a[l] * a[q] / kRows;
      }
    }
    hessian_.push_back(std::move(hessian));
    h_.push_back(std::move(h));
  }
}

std::vector<double> LeastSquares::Gradient(int64_t node,
                                           absl::Span<const double> w) const {
  std::vector<double> g(n_);
  for (int64_t l = 0; l < n_; ++l) {
    g[l] = -h_[node][l];
    for (int64_t q = 0; q < n_; ++q) g[l] += hessian_[node](l, q) * w[q];
  }
  return g;
}

Matrix LeastSquares::Gradients(const Matrix& x) const {
  Matrix g(nodes(), n_);
  for (int64_t i = 0; i < nodes(); ++i) {
    const std::vector<double> row = Gradient(i, x.row(i));
    for (int64_t l = 0; l < n_; ++l) g(i, l) = row[l];
  }
  return g;
}

Matrix Starts(int64_t nodes, int64_t n) {
  Rng rng(kSeed + 1);
  return Matrix(nodes, n).Each(
      [&](double) { return static_cast<float>(2 * rng.Uniform() - 1); });
}

// ----------------------------------------------------------------- script ----

namespace script {

bool Coin(absl::string_view purpose, int64_t node, int64_t peer, int64_t nth,
          double probability) {
  const uint64_t to = DeriveSeed(kSeed, purpose, node, peer + 1);
  return Rng(DeriveSeed(to, "coin", nth)).Bernoulli(probability);
}

std::vector<int64_t> Places(absl::string_view purpose, int64_t node,
                            int64_t nth, int64_t candidates, int64_t count) {
  return Named(DeriveSeed(kSeed, purpose, node, nth), candidates, count);
}

uint64_t Name(int64_t node, int64_t to, int64_t nth) {
  return DeriveSeed(DeriveSeed(kSeed, "answer", node, to), "nth", nth);
}

std::vector<int64_t> Named(uint64_t name, int64_t n, int64_t count) {
  std::vector<int64_t> places(n);
  std::iota(places.begin(), places.end(), int64_t{0});
  Rng rng(name);
  rng.Shuffle(absl::MakeSpan(places));
  places.resize(count);
  std::sort(places.begin(), places.end());
  return places;
}

int64_t Drawn(int64_t node, IntRange range) {
  return range.lo + node % (range.hi - range.lo + 1);
}

}  // namespace script

namespace {

// Reads the script.
class FollowsScript : public Decisions {
 public:
  FollowsScript(int64_t node, std::function<int64_t(const NodeId&)> index_of)
      : node_(node), index_of_(std::move(index_of)) {}

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
    const int64_t peer = index_of_(to);
    return script::Name(node_, peer, Nth("answer", peer));
  }
  int64_t DrawFrom(absl::string_view, IntRange range) override {
    return script::Drawn(node_, range);
  }
  bool Happens(absl::string_view purpose, const NodeId& peer,
               double probability) override {
    const int64_t to = index_of_(peer);
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
  const std::function<int64_t(const NodeId&)> index_of_;
  std::map<std::pair<std::string, int64_t>, int64_t> often_;
};

RemoteModel Remote(std::vector<float> values, int64_t step,
                   std::vector<double> scalars) {
  RemoteModel model;
  model.parameters = std::make_unique<PlainRemoteVector>(std::move(values));
  model.step = step;
  model.scalars = std::move(scalars);
  return model;
}

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

struct MatrixNetwork::Node {
  explicit Node(int64_t i) : decisions(i, &MatrixNetwork::IndexOf) {}

  FollowsScript decisions;
  std::vector<float> parameters;
  std::vector<float> gradient;
  std::unique_ptr<Algorithm> algorithm;
  std::map<uint64_t, int64_t> timers;  // of those that are set, a number
  int64_t timers_set = 0;
  bool done = true;
};

NodeId MatrixNetwork::NameOf(int64_t i) { return NodeId(absl::StrCat("n", i)); }

int64_t MatrixNetwork::IndexOf(const NodeId& id) {
  return std::stoll(id.name().substr(1));
}

MatrixNetwork::MatrixNetwork(const std::string& algorithm,
                             const LeastSquares& problem,
                             const Weights& weights,
                             const std::function<KnobValues(int64_t)>& knobs,
                             Asks asks)
    : problem_(problem), asks_served_(asks), order_(kSeed + 2) {
  const AlgorithmInfo& info = **FindAlgorithm(algorithm);
  pulls_ = info.exchange == Exchange::kPull;
  const int64_t m = problem.nodes();
  const Matrix starts = Starts(m, problem.n());
  Network network;
  for (int64_t i = 0; i < m; ++i) {
    network.members.push_back(NameOf(i));
    network.own_knobs[i] = *Knobs::Resolve(info.knobs, knobs(i));
  }
  network.graph = ArcsOf(weights.sends);
  for (int64_t i = 0; i < m; ++i) {
    auto node = std::make_unique<Node>(i);
    AlgorithmContext context;
    NodePlan& plan = context.plan;
    plan.self = NameOf(i);
    plan.seed = kSeed;
    plan.knobs = network.KnobsOf(i);
    plan.member_count = m;
    plan.place = i;
    if (info.derive != nullptr) plan.facts = info.derive(network);
    plan.self_weight = plan.receiver_weight = weights.hears(i, i);
    plan.sender_weight = weights.sends(i, i);
    for (int64_t j = 0; j < m; ++j) {
      const double heard = weights.hears(i, j);
      const double sent = weights.sends(j, i);
      if (j == i || (heard == 0 && sent == 0)) continue;
      plan.neighbours.push_back({NameOf(j), heard});
      if (heard > 0) plan.in_neighbours.push_back({NameOf(j), heard});
      if (sent > 0) plan.out_neighbours.push_back({NameOf(j), sent});
    }
    for (const double value : starts.row(i)) {
      node->parameters.push_back(static_cast<float>(value));
    }
    node->gradient.assign(problem.n(), 0.0F);
    context.vectors = {
        absl::MakeSpan(node->parameters), absl::MakeSpan(node->gradient), {}};
    node->algorithm =
        *CreateAlgorithm(algorithm, std::move(context), node->decisions);
    nodes_.push_back(std::move(node));
  }
  for (int64_t i = 0; i < m; ++i) {
    Handle(i, Started{0});
    for (int64_t j = 0; j < m; ++j) {
      if (j != i) Handle(i, PeerUp{NameOf(j)});
    }
  }
}

MatrixNetwork::~MatrixNetwork() = default;

Matrix MatrixNetwork::Models() const {
  Matrix x(problem_.nodes(), problem_.n());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t l = 0; l < x.columns(); ++l)
      x(i, l) = nodes_[i]->parameters[l];
  }
  return x;
}

Matrix MatrixNetwork::Auxiliary(const std::string& symbol) const {
  Matrix y(problem_.nodes(), problem_.n());
  for (int64_t i = 0; i < y.rows(); ++i) {
    const FlatVector row = nodes_[i]->algorithm->Auxiliary(symbol);
    DFL_CHECK(static_cast<int64_t>(row.size()) == y.columns());
    for (int64_t l = 0; l < y.columns(); ++l) y(i, l) = row[l];
  }
  return y;
}

double MatrixNetwork::Gauge(int64_t node, const std::string& name) const {
  return nodes_[node]->algorithm->Gauges().at(name);
}

void MatrixNetwork::Round() {
  const auto m = static_cast<int64_t>(nodes_.size());
  for (int64_t i = 0; i < m; ++i) {
    nodes_[i]->done = false;
    if (pulls_) {
      Handle(i, StepBegins{});
    } else {
      SendEvent({i, i, kModels}, StepBegins{});
    }
  }
  while (HappenNext()) {
  }
  for (int64_t i = 0; i < m; ++i) {
    EXPECT_TRUE(nodes_[i]->done) << "node " << i << " waits for a deadline";
  }
}

bool MatrixNetwork::HappenNext() {
  if (asks_served_ == Asks::kAtOnce && ServeAsks()) return true;
  if (lanes_.empty()) return ServeAsks();
  auto lane = lanes_.begin();
  std::advance(lane, static_cast<int64_t>(order_.Below(lanes_.size())));
  const std::function<void()> arrives = std::move(lane->second.front());
  lane->second.pop_front();
  if (lane->second.empty()) lanes_.erase(lane);
  arrives();
  return true;
}

bool MatrixNetwork::ServeAsks() {
  const auto asks = std::exchange(asks_, {});
  for (const auto& [of, ask] : asks) {
    EXPECT_TRUE(nodes_[of]->algorithm->parameters_settled());
    Handle(of, ask);
  }
  return !asks.empty();
}

void MatrixNetwork::Send(Lane lane, std::function<void()> arrives) {
  lanes_[lane].push_back(std::move(arrives));
}

void MatrixNetwork::SendEvent(Lane lane, Event event) {
  auto shared = std::make_shared<Event>(std::move(event));
  Send(lane, [this, to = std::get<1>(lane), shared] {
    Handle(to, std::move(*shared));
  });
}

void MatrixNetwork::Handle(int64_t i, Event event) {
  ActionsCarriedOut actions([&](const Action& action) {
    std::visit([&](const auto& a) { Do(i, a); }, action);
  });
  nodes_[i]->algorithm->Handle(std::move(event), actions);
}

// At the model of now; others read the last gradient until it is ready.
void MatrixNetwork::Do(int64_t i, ComputeGradient action) {
  const std::vector<float>& at = nodes_[i]->parameters;
  std::vector<double> w(at.begin(), at.end());
  if (action.at) w.assign(action.at->begin(), action.at->end());
  Send({i, i, kModels}, [this, i, g = problem_.Gradient(i, w)] {
    std::transform(g.begin(), g.end(), nodes_[i]->gradient.begin(),
                   [](double value) { return static_cast<float>(value); });
    Handle(i, GradientReady{});
  });
}

void MatrixNetwork::Do(int64_t i, const Ask& action) {
  for (const NodeId& peer : action.peers) {
    asks_.emplace_back(IndexOf(peer), AskArrived{NameOf(i), action.ask});
  }
}

void MatrixNetwork::Do(int64_t i, const Answer& action) {
  ++messages_;
  const int64_t n = problem_.n();
  std::vector<int64_t> coordinates =
      script::Named(action.seed, n, SentCoordinates(action.rate, n));
  std::vector<float> values;
  for (const int64_t l : coordinates) {
    values.push_back(nodes_[i]->parameters[l]);
  }
  AnswerArrived answer{NameOf(i), action.ask, {}};
  answer.model.parameters = std::make_unique<PlainRemoteVector>(
      n, std::move(coordinates), std::move(values));
  answer.model.step = nodes_[i]->algorithm->step();
  SendEvent({i, IndexOf(action.to), kModels}, std::move(answer));
}

void MatrixNetwork::Do(int64_t i, const Push& action) {
  std::vector<float> values(action.values.begin(), action.values.end());
  if (values.empty()) values = nodes_[i]->parameters;
  for (const NodeId& peer : action.peers) {
    ++messages_;
    SendEvent(
        {i, IndexOf(peer), kModels},
        PushArrived{NameOf(i), Remote(values, action.round, action.scalars)});
  }
}

void MatrixNetwork::Do(int64_t i, const Give& action) {
  ++messages_;
  const int64_t to = IndexOf(action.to);
  Send({i, to, kMass}, [this, i, to, action] {
    Handle(to, MassArrived{NameOf(i), action.sequence,
                           Remote(std::vector<float>(action.mass->begin(),
                                                     action.mass->end()),
                                  action.round, action.scalars),
                           action.steps != nullptr});
    SendEvent({to, i, kMass},
              Delivered{action.to, action.sequence,
                        nodes_[to]->algorithm->MassTaken(NameOf(i))});
  });
}

void MatrixNetwork::Do(int64_t i, const Skip& action) {
  for (const NodeId& peer : action.peers) {
    SendEvent({i, IndexOf(peer), kModels}, Skipped{NameOf(i), action.round});
  }
}

void MatrixNetwork::Do(int64_t i, const WakeAfter& action) {
  if (action.delay > absl::ZeroDuration()) return;  // a deadline
  const int64_t number = ++nodes_[i]->timers_set;
  nodes_[i]->timers[action.timer] = number;
  Send({i, i, kModels}, [this, i, timer = action.timer, number] {
    const auto it = nodes_[i]->timers.find(timer);
    if (it == nodes_[i]->timers.end() || it->second != number) return;
    nodes_[i]->timers.erase(it);
    Handle(i, TimerFired{timer});
  });
}

void MatrixNetwork::Do(int64_t i, const CancelTimer& action) {
  nodes_[i]->timers.erase(action.timer);
}

void MatrixNetwork::Do(int64_t i, const StepDone& /*action*/) {
  EXPECT_FALSE(nodes_[i]->done);
  nodes_[i]->done = true;
}

void MatrixNetwork::Do(int64_t i, const Missed& /*action*/) {
  ADD_FAILURE() << "node " << i << " missed something";
}

void MatrixNetwork::Do(int64_t i, const Predict& /*action*/) {
  ADD_FAILURE() << "node " << i << " predicts";
}

// ----------------------------------------------------------------- checks ----

testing::AssertionResult Close(const Matrix& got, const Matrix& want,
                               double tolerance) {
  const double bound = tolerance * std::max(1.0, want.Largest());
  double most = 0;
  std::string where;
  for (int64_t i = 0; i < want.rows(); ++i) {
    for (int64_t l = 0; l < want.columns(); ++l) {
      const double differs = std::fabs(got(i, l) - want(i, l));
      if (differs <= most) continue;
      most = differs;
      where = absl::StrCat("node ", i, ", coordinate ", l, ": ", got(i, l),
                           " instead of ", want(i, l));
    }
  }
  if (most <= bound) return testing::AssertionSuccess();
  return testing::AssertionFailure() << where;
}

}  // namespace dfl::core
