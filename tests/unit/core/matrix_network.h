// The network of the matrix-form tests: it hands the algorithms of core their
// events one at a time, in an order drawn from a seed. Nothing is lost and no
// deadline passes; only messages of one stream of a link keep their order. What
// is decided at random stands in a script, which both sides read.
#ifndef DFL_TESTS_UNIT_CORE_MATRIX_NETWORK_H_
#define DFL_TESTS_UNIT_CORE_MATRIX_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm/algorithm.h"
#include "tests/support/test_network.h"
#include "tests/unit/core/matrix.h"

namespace dfl::core {

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
// The name of the coordinates of the nth answer (NamedCoordinates).
uint64_t Name(int64_t node, int64_t to, int64_t nth);
// What node `node` draws of a range.
int64_t Drawn(int64_t node, IntRange range);
}  // namespace script

// ---------------------------------------------------------------- network ----

// When asks reach those asked, so that models are of the step that mixes them:
// as soon as a step has begun at all nodes or, where asks go out a step ahead,
// when all nodes are done with it.
enum class Asks { kAtOnce, kAtTheEnd };

class MatrixNetwork : public TestNetwork {
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

  // One round of all nodes, until nothing is under way any more.
  void Round();

  Matrix Models() const;
  Matrix Auxiliary(const std::string& symbol) const;
  double Gauge(int64_t node, const std::string& name) const;
  // Pushes, parcels and answers that were sent.
  int64_t messages() const { return messages_; }

 private:
  std::optional<double> Latency(size_t from, size_t to,
                                const Event& message) override;
  std::optional<double> ComputeTime(size_t /*i*/) override {
    return order_.Uniform();
  }
  std::optional<double> TimerTime(size_t /*i*/,
                                  const WakeAfter& /*deadline*/) override {
    return std::nullopt;
  }
  GradientReady Gradient(size_t i, absl::Span<const float> model,
                         const std::vector<int64_t>& batch) override;
  void OnAction(size_t i, const Action& action) override;
  NodePlan PlanOf(const Network& network, const AlgorithmInfo& info,
                  const Weights& weights, int64_t i) const;

  const LeastSquares& problem_;
  const Asks asks_served_;
  bool pulls_ = false;
  Rng order_;
  int64_t messages_ = 0;
  // When the last message of (from, to, stream) arrives.
  std::map<std::tuple<size_t, size_t, bool>, double> last_;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_MATRIX_NETWORK_H_
