// Members and undirected graphs for tests.
#ifndef DFL_TESTS_UNIT_CORE_GRAPHS_H_
#define DFL_TESTS_UNIT_CORE_GRAPHS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/graph/topology.h"
#include "gtest/gtest.h"

namespace dfl::core {

// n1000, n1001, ...
inline std::vector<NodeId> Members(int64_t count) {
  std::vector<NodeId> members;
  for (int64_t i = 0; i < count; ++i) {
    members.emplace_back(absl::StrCat("n", 1000 + i));
  }
  return members;
}

inline TopologySpec Kind(const std::string& kind) {
  TopologySpec spec;
  spec.kind = kind;
  return spec;
}

// BuildTopology of a spec that is not directed.
inline absl::StatusOr<Graph> BuildGraph(const TopologySpec& spec, uint64_t seed,
                                        absl::Span<const NodeId> members,
                                        int64_t round = 0) {
  absl::StatusOr<AnyGraph> graph = BuildTopology(spec, seed, members, round);
  if (!graph.ok()) return graph.status();
  return std::get<Graph>(*std::move(graph));
}

inline Graph Built(const std::string& kind, int64_t count) {
  absl::StatusOr<Graph> graph = BuildGraph(Kind(kind), 1, Members(count));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

}  // namespace dfl::core

#endif  // DFL_TESTS_UNIT_CORE_GRAPHS_H_
