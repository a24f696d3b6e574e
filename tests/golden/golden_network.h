// The nodes of a golden run: one core::Algorithm each, handed the same events
// as the runtime hands it. Only named decisions are scripted, and no step is
// computed here.
#ifndef DFL_TESTS_GOLDEN_GOLDEN_NETWORK_H_
#define DFL_TESTS_GOLDEN_GOLDEN_NETWORK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "tests/golden/golden_case.h"

namespace dfl::golden {

// Decisions from the script of the present step.
class ScriptedDecisions : public core::Decisions {
 public:
  // What the next ChooseNeighbours must return.
  std::vector<NodeId> asked;
  bool asked_is_scripted = false;
  int64_t wrong_counts = 0;
  // The scripted coordinates are not always as many.
  bool any_count = false;
  // What ChooseTogether returns for a purpose.
  std::map<std::string, std::vector<int64_t>> together;
  // What ChooseCoordinates returns next, by purpose.
  std::map<std::string, std::deque<std::vector<int64_t>>> coordinates;
  // What Happens returns next, by purpose and peer.
  std::map<std::pair<std::string, NodeId>, std::deque<bool>> happens;

  std::vector<NodeId> ChooseNeighbours(absl::Span<const NodeId> candidates,
                                       int64_t count) override;
  uint64_t NameCoordinates(const NodeId& to) override;
  int64_t DrawFrom(absl::string_view purpose, core::IntRange range) override;
  bool Happens(absl::string_view purpose, const NodeId& peer,
               double probability) override;
  std::vector<int64_t> ChooseTogether(uint64_t run_seed,
                                      absl::string_view purpose, int64_t round,
                                      int64_t candidates,
                                      int64_t count) override;
  double DrawWait(absl::string_view purpose, double mean) override;
  std::vector<int64_t> ChooseCoordinates(absl::string_view purpose, int64_t n,
                                         int64_t count) override;
};

// One node: its vectors, its state machine, and what that asked for.
class GoldenNode {
 public:
  GoldenNode(const std::string& algorithm, core::NodePlan plan,
             std::vector<float> start, const simports::Problem& problem,
             int64_t batches_per_pass, int64_t step);

  void Handle(core::Event event);

  // Takes the first action of all; nullopt: there is none.
  std::optional<core::Action> TakeAny() {
    if (actions_.empty()) return std::nullopt;
    core::Action action = std::move(actions_.front());
    actions_.pop_front();
    return action;
  }

  // Takes the first action of type A out of the queue; false: there is none.
  template <typename A>
  bool Take(A* action) {
    for (auto it = actions_.begin(); it != actions_.end(); ++it) {
      if (auto* found = std::get_if<A>(&*it)) {
        *action = std::move(*found);
        actions_.erase(it);
        return true;
      }
    }
    return false;
  }

  // Computes the gradient that was asked for, on `batch`.
  void Gradient(const std::vector<int64_t>& batch) {
    GradientAt(parameters, batch);
  }
  // The same at a model of an earlier moment.
  void GradientAt(const std::vector<float>& model,
                  const std::vector<int64_t>& batch);
  // A gradient comes that must not be used: it is not a number.
  void SpoiltGradient();

  // The newest gradient.
  absl::Span<const float> gradient() const { return gradient_; }

  std::vector<float> parameters;
  // What the first Push sends of those for which this was not called yet.
  std::vector<float> TakePushed();
  ScriptedDecisions decisions;
  core::Algorithm& algorithm() { return *algorithm_; }

 private:
  const simports::Problem& problem_;
  std::vector<float> gradient_;
  std::unique_ptr<core::Algorithm> algorithm_;
  std::deque<core::Action> actions_;
  std::deque<std::vector<float>> pushed_;
};

// Adds the knobs that `prox` stands for: prox, lambda, theta and a.
void AddProxKnobs(const nlohmann::json& prox, core::KnobValues& knobs);

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_GOLDEN_NETWORK_H_
