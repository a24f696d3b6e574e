// A network as an algorithm's entry sees it: all members with their knobs, and
// the graph. AlgorithmInfo::derive and AlgorithmInfo::warnings are given one,
// so that an algorithm need not know the run plan.
#ifndef DFL_CORE_ALGORITHM_NETWORK_H_
#define DFL_CORE_ALGORITHM_NETWORK_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/graph/topology.h"

namespace dfl::core {

struct Network {
  // Sorted. The places of graphs are those of this list.
  std::vector<NodeId> members;
  // What the plan gives to all, and the sets of those that have one of their
  // own, by place. All sets are complete.
  Knobs knobs;
  std::map<int64_t, Knobs> own_knobs;
  // The graph of the round that facts are derived for.
  AnyGraph graph = Graph(0);
  // True: the graph changes from round to round.
  bool varies = false;
  // What ends the run (the plan's section `stop`); 0: nothing.
  int64_t stop_steps = 0;
  int64_t stop_rounds = 0;
  double stop_epochs = 0;

  const Knobs& KnobsOf(int64_t place) const;

  // Every value that members have of the number `name`, each at least once.
  std::vector<double> Numbers(absl::string_view name) const;

  // How many members `place` sends to.
  int64_t Degree(int64_t place) const;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_NETWORK_H_
