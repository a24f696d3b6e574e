// Four nodes of one algorithm in memory, in virtual time and without any chance:
// every message takes the time of its edge, every gradient that of its number.
// Parcels of mass between two of the nodes are late. Algorithms of all kinds run
// on it, for tests of what is common to them; one that is in no catalogue does
// too.
#ifndef DFL_TESTS_UNIT_CORE_MEMORY_NETWORK_H_
#define DFL_TESTS_UNIT_CORE_MEMORY_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/simports/problems.h"

namespace dfl::core {

class MemoryNetwork {
 public:
  static constexpr size_t kNodes = 4;
  // Whose parcels to the other are late.
  static constexpr size_t kSlowGiver = 1;
  static constexpr size_t kSlowTaker = 2;

  // All nodes at step 0. Periods are short, so that they pass in a few steps.
  explicit MemoryNetwork(const AlgorithmInfo& info);
  ~MemoryNetwork();

  // Until all nodes are at a boundary and have done `steps`.
  void RunToStep(int64_t steps);
  // What is on its way arrives, for so long; no step begins.
  void Idle(double seconds);

  Algorithm& algorithm(size_t i);
  const std::vector<float>& parameters(size_t i) const;
  const std::vector<float>& buffers(size_t i) const;
  NodeId name(size_t i) const;

  // A new object over the vectors and decisions of node i, which was handed
  // nothing yet.
  std::unique_ptr<Algorithm> MakeFresh(size_t i);
  // Puts it in the place of the one that is there. What that had asked for goes
  // on.
  void Replace(size_t i, std::unique_ptr<Algorithm> algorithm);

 private:
  struct Node;

  void After(double seconds, std::function<void()> happens);
  void HandleAfter(double seconds, size_t node, Event event);
  void HappenNext();
  void Handle(size_t node, Event event);
  void MayBegin(size_t node);
  void ServeAsks(size_t node);
  size_t IndexOf(const NodeId& id) const { return index_.at(id); }
  double Latency(size_t from, size_t to) const;

  void Do(size_t node, ComputeGradient action);
  void Do(size_t node, Ask action);
  void Do(size_t node, Answer action);
  void Do(size_t node, Push action);
  void Do(size_t node, Give action);
  void Do(size_t node, Skip action);
  void Do(size_t node, WakeAfter action);
  void Do(size_t node, CancelTimer action);
  void Do(size_t node, StepDone action);
  void Do(size_t node, Predict action);
  void Do(size_t /*node*/, CancelAsk /*action*/) {}
  void Do(size_t /*node*/, Missed /*action*/) {}

  const Catalogue catalogue_;
  simports::SoftmaxSet data_;
  std::map<NodeId, size_t> index_;
  std::vector<std::unique_ptr<Node>> nodes_;
  double now_ = 0;
  uint64_t order_ = 0;
  int64_t goal_ = 0;
  std::map<std::pair<double, uint64_t>, std::function<void()>> queue_;
};

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_MEMORY_NETWORK_H_
