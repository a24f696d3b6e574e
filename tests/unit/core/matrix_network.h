// What the matrix-form tests share: plain matrices of doubles, least squares
// with full gradients, decisions that both sides read from one script, and a
// network that hands core's algorithms their events, one at a time, in an order
// drawn from a seed. Nothing is lost and no deadline passes; only messages of
// one stream of a link keep their order.
#ifndef DFL_TESTS_UNIT_CORE_MATRIX_NETWORK_H_
#define DFL_TESTS_UNIT_CORE_MATRIX_NETWORK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "gtest/gtest.h"

namespace dfl::core {

// --------------------------------------------------------------- matrices ----

// In doubles, filled with 0: X, Y, Z are [nodes x n], a row for each node; W,
// A, B are [nodes x nodes].
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns) {}

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  double& operator()(int64_t i, int64_t j) { return values_[i * columns_ + j]; }
  double operator()(int64_t i, int64_t j) const {
    return values_[i * columns_ + j];
  }
  absl::Span<const double> row(int64_t i) const {
    return absl::MakeConstSpan(values_).subspan(i * columns_, columns_);
  }
  // f of every entry.
  Matrix Each(const std::function<double(double)>& f) const;
  // The largest |entry|.
  double Largest() const;

 private:
  int64_t rows_;
  int64_t columns_;
  std::vector<double> values_;
};

Matrix operator+(Matrix a, const Matrix& b);
Matrix operator-(Matrix a, const Matrix& b);
Matrix operator*(double a, const Matrix& b);
Matrix operator*(const Matrix& a, const Matrix& b);
Matrix Identity(int64_t m);
Matrix Diagonal(const std::vector<double>& entries);

// ---------------------------------------------------------------- weights ----

// From -> to; an undirected edge is two of them.
using Arcs = std::vector<std::pair<int64_t, int64_t>>;
Arcs BothWays(const Arcs& edges);

// 1/(1 + max(d_i, d_j)) on edges, the rest on the diagonal.
Matrix Metropolis(int64_t m, const Arcs& arcs);
// 1/m everywhere.
Matrix Uniform(int64_t m);
// a_ij = 1/(1 + number of in-neighbours of i): rows sum to 1.
Matrix ReceiverWeights(int64_t m, const Arcs& arcs);
// b_ji = 1/(1 + number of out-neighbours of i): columns sum to 1.
Matrix SenderWeights(int64_t m, const Arcs& arcs);

// By what nodes weigh what they hear (row i: node i) and what they send (column
// i: node i). Of an undirected graph both are W.
struct Weights {
  Matrix hears;
  Matrix sends;
};

// Five in a ring with a chord, by Metropolis.
Weights ChordedRing();
// Five arcs round and two across; not balanced.
Weights Digraph5();
// All to all, alike.
Weights Complete(int64_t m);

// --------------------------------------------------------------- problems ----

// Node i has f_i(w) = |A_i w - b_i|^2 / (2 rows) up to a constant, kept as
// 1/2 w' H_i w - h_i' w; rows are drawn from a seed. No two nodes have one
// minimum.
class LeastSquares {
 public:
  LeastSquares(int64_t nodes, int64_t n);

  int64_t nodes() const { return static_cast<int64_t>(h_.size()); }
  int64_t n() const { return n_; }
  std::vector<double> Gradient(int64_t node, absl::Span<const double> w) const;
  // Row i: the gradient of f_i at row i.
  Matrix Gradients(const Matrix& x) const;

 private:
  int64_t n_;
  std::vector<Matrix> hessian_;
  std::vector<std::vector<double>> h_;
};

// Where nodes start, each elsewhere; exact in fp32.
Matrix Starts(int64_t nodes, int64_t n);

// ----------------------------------------------------------------- script ----

// What is decided at random: a function of the node, of the peer that it is
// about (-1: nobody) and of how often that was decided before. Both sides read
// it.
namespace script {
bool Coin(absl::string_view purpose, int64_t node, int64_t peer, int64_t nth,
          double probability);
// `count` of [0, candidates), in increasing order.
std::vector<int64_t> Places(absl::string_view purpose, int64_t node,
                            int64_t nth, int64_t candidates, int64_t count);
// The name of the coordinates of the nth answer, and `count` of n that a name
// stands for.
uint64_t Name(int64_t node, int64_t to, int64_t nth);
std::vector<int64_t> Named(uint64_t name, int64_t n, int64_t count);
// What node `node` draws of a range.
int64_t Drawn(int64_t node, IntRange range);
}  // namespace script

// ---------------------------------------------------------------- network ----

// When asks reach those asked, so that models are of the step that mixes them:
// as soon as a step has begun at all nodes or, where asks go out a step ahead,
// when all nodes are done with it.
enum class Asks { kAtOnce, kAtTheEnd };

class MatrixNetwork {
 public:
  // `knobs` of each node. `problem` must outlive it.
  MatrixNetwork(const std::string& algorithm, const LeastSquares& problem,
                const Weights& weights,
                const std::function<KnobValues(int64_t)>& knobs,
                Asks asks = Asks::kAtOnce);
  MatrixNetwork(const std::string& algorithm, const LeastSquares& problem,
                const Weights& weights, const KnobValues& knobs)
      : MatrixNetwork(algorithm, problem, weights,
                      [&](int64_t) { return knobs; }) {}
  ~MatrixNetwork();

  // One round of all nodes, until nothing is under way any more.
  void Round();

  Matrix Models() const;
  Matrix Auxiliary(const std::string& symbol) const;
  double Gauge(int64_t node, const std::string& name) const;
  // Pushes, parcels and answers that were sent.
  int64_t messages() const { return messages_; }

 private:
  struct Node;
  // (from, to, stream).
  using Lane = std::tuple<int64_t, int64_t, int>;

  static NodeId NameOf(int64_t i);
  static int64_t IndexOf(const NodeId& id);
  void Send(Lane lane, std::function<void()> arrives);
  void SendEvent(Lane lane, Event event);
  bool ServeAsks();
  bool HappenNext();
  void Handle(int64_t i, Event event);

  void Do(int64_t i, ComputeGradient action);
  void Do(int64_t i, const Ask& action);
  void Do(int64_t i, const Answer& action);
  void Do(int64_t i, const Push& action);
  void Do(int64_t i, const Give& action);
  void Do(int64_t i, const Skip& action);
  void Do(int64_t i, const WakeAfter& action);
  void Do(int64_t i, const CancelTimer& action);
  void Do(int64_t i, const StepDone& action);
  void Do(int64_t i, const Missed& action);
  void Do(int64_t i, const Predict& action);
  void Do(int64_t /*i*/, const CancelAsk& /*action*/) {}

  const LeastSquares& problem_;
  const Asks asks_served_;
  bool pulls_ = false;
  Rng order_;
  int64_t messages_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<Lane, std::deque<std::function<void()>>> lanes_;
  std::vector<std::pair<int64_t, AskArrived>> asks_;  // of whom
};

// One float operation errs by at most 2^-24 = 6e-8 of its result, to either
// side. An entry sees some 40 of them in a round, and these recursions are
// stable: they do not enlarge what was wrong before. So after 40 rounds it is
// off by about sqrt(40 * 40) * 6e-8 = 2.4e-6 of the largest entry; this is four
// times that. (Measured: up to 6e-7. A wrong term, or one of another round,
// shows with 1e-3 and more within a few rounds.)
inline constexpr double kTolerance = 1e-5;

// Whether `got` is `want` up to `tolerance` of the larger of 1 and its largest
// entry; else says where they differ most.
testing::AssertionResult Close(const Matrix& got, const Matrix& want,
                               double tolerance = kTolerance);

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_MATRIX_NETWORK_H_
