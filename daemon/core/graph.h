// Graphs over the sorted members of a run. Every one is a pure function of
// (spec, seed, members), so each node derives the same graph by itself.
#ifndef DFL_CORE_GRAPH_H_
#define DFL_CORE_GRAPH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/core/run_plan.h"

namespace dfl::core {

// Undirected, without self-loops or doubles. Nodes are 0 .. size() - 1, the
// places of the members in bytewise order.
class Graph {
 public:
  explicit Graph(int64_t nodes);

  // Adds {a, b}; a double or a loop is ignored.
  void AddEdge(int64_t a, int64_t b);

  int64_t size() const { return static_cast<int64_t>(neighbours_.size()); }
  // Sorted.
  const std::vector<int64_t>& neighbours(int64_t node) const {
    return neighbours_[node];
  }
  int64_t degree(int64_t node) const {
    return static_cast<int64_t>(neighbours_[node].size());
  }
  bool HasEdge(int64_t a, int64_t b) const;
  // Each edge once, (smaller, larger), sorted.
  std::vector<std::pair<int64_t, int64_t>> Edges() const;
  // The connected components, each sorted, in the order of their first nodes.
  std::vector<std::vector<int64_t>> Components() const;
  bool IsConnected() const;
  bool IsBipartite() const;

 private:
  std::vector<std::vector<int64_t>> neighbours_;
};

// complete; ring (a path of 2 for two nodes); star (hub = first member); grid
// (rows = the largest divisor <= sqrt(m)); erdos-renyi (redrawn until
// connected); explicit.
// Errors: INVALID_ARGUMENT for an unknown kind (with the nearest), a bad
// parameter, an edge to a name that is no member or to itself; FAILED_PRECONDITION when
// 1,000 Erdos-Renyi draws in a row were disconnected.
absl::StatusOr<Graph> BuildGraph(const TopologySpec& spec, uint64_t seed,
                                 absl::Span<const NodeId> members);

}  // namespace dfl::core

#endif  // DFL_CORE_GRAPH_H_
