// The nodes of a golden run on the test network. Only named decisions, batches
// and what is lost are scripted, and no step is computed here.
//
// A message takes kMessage, and a gradient no time, unless a kind of run says
// otherwise. So whoever trains before it mixes has trained after
// Run(kBeforeMessages), when nothing has arrived yet, and RunAll ends the
// round. Deadlines pass only for those that still wait then.
#ifndef DFL_TESTS_GOLDEN_GOLDEN_NETWORK_H_
#define DFL_TESTS_GOLDEN_GOLDEN_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "tests/golden/golden_case.h"
#include "tests/support/test_network.h"

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
  // What DrawAnew returns next, by purpose, and in the end the largest count.
  std::map<std::string, std::deque<int64_t>> drawn;
  // What NameCoordinates returns next; else 0.
  std::deque<uint64_t> names;
  // What Happens returns next, by purpose and peer.
  std::map<std::pair<std::string, NodeId>, std::deque<bool>> happens;

  std::vector<NodeId> ChooseNeighbours(absl::Span<const NodeId> candidates,
                                       int64_t count) override;
  uint64_t NameCoordinates(const NodeId& to) override;
  int64_t DrawFrom(absl::string_view purpose, core::IntRange range) override;
  int64_t DrawAnew(absl::string_view purpose, core::IntRange range) override;
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

class GoldenNetwork : public core::TestNetwork {
 public:
  static constexpr double kMessage = 0.1;  // s
  static constexpr double kBeforeMessages = 0.05;

  // A place for every node of the case, and its problems, which are checked.
  explicit GoldenNetwork(const Case& golden);

  const Case& golden() const { return golden_; }
  const std::vector<std::unique_ptr<simports::Problem>>& problems() const {
    return problems_;
  }

  // Puts node i where `start` says and hands it Started{step}.
  void AddNode(size_t i, core::NodePlan plan, const nlohmann::json& start,
               int64_t batches_per_pass = 1, int64_t step = 0);

  ScriptedDecisions& decisions(size_t i) { return *records_[i].decisions; }
  // What node i's next gradients are of. One that has none is not computed
  // until FinishGradient.
  std::deque<std::vector<int64_t>>& batches(size_t i) {
    return records_[i].batches;
  }

  // A round begins: forgets what was counted. Begin is still to be called.
  void NewRound();
  void NewRoundOfAll();  // and calls it for all
  // How many actions of this type node i gave in this round.
  template <typename A>
  int64_t Count(size_t i) const {
    return records_[i].counts[core::Action(A{}).index()];
  }
  // A push of this round.
  struct Pushed {
    size_t from;
    std::vector<NodeId> to;
    int64_t round;
    bool of_parameters;  // not of other values
  };
  const std::vector<Pushed>& pushes() const { return pushes_; }
  // Each push of this round is of round k and of the parameters.
  void ExpectPushesOf(int64_t k) const;
  // The parameters when node i asked for its last gradient.
  const std::vector<float>& trained_from(size_t i) const {
    return records_[i].trained_from;
  }
  // Node i has done its step and all that the script has for it, and nothing
  // else.
  void ExpectDone(size_t i) const;
  void ExpectAllDone() const;
  void ExpectNobodyMissed() const;

 protected:
  std::optional<double> Latency(size_t /*from*/, size_t /*to*/,
                                const core::Event& /*message*/) override {
    return kMessage;
  }
  std::optional<double> ComputeTime(size_t i) override;
  std::vector<int64_t> NextBatch(size_t i) override;
  void OnAction(size_t i, const core::Action& action) override;

  double compute_time_ = 0;

 private:
  struct Record {
    ScriptedDecisions* decisions = nullptr;
    std::deque<std::vector<int64_t>> batches;
    bool has_batch = false;
    std::array<int64_t, std::variant_size_v<core::Action>> counts = {};
    std::vector<float> trained_from;
  };

  GoldenNetwork(const Case& golden,
                std::vector<std::unique_ptr<simports::Problem>> problems);

  const Case& golden_;
  const std::vector<std::unique_ptr<simports::Problem>> problems_;
  std::vector<Record> records_;
  std::vector<Pushed> pushes_;
};

}  // namespace dfl::golden

#endif  // DFL_TESTS_GOLDEN_GOLDEN_NETWORK_H_
