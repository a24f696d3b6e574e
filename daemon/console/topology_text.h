// The graph and the weights of a plan, for people and for programs.
#ifndef DFL_CONSOLE_TOPOLOGY_TEXT_H_
#define DFL_CONSOLE_TOPOLOGY_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/console/document.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::console {

// The graph of one round, and properties of all rounds together.
struct TopologyReport {
  int64_t round = 0;
  core::PlanTopology topology;
  bool connected = false;  // directed: strongly
  bool bipartite = false;  // directed: without regard to directions
  size_t edges = 0;        // directed: arcs
  bool varies = false;
  bool window_connected = false;  // the edges of all rounds together
};

// m^2 memory, as core::DeriveTopology. `round` >= 0.
// Errors: as core::DeriveTopology.
absl::StatusOr<TopologyReport> ReportTopology(const core::RunPlan& plan,
                                              int64_t round);

// `report` is that of `plan`. Both show kind, weights, edges, connectivity,
// spectral gap, each node's neighbours, and the sums of rows and columns of W,
// or of A and B for a directed graph.
Json TopologyJson(const core::RunPlan& plan, const TopologyReport& report);
std::string TopologyText(const core::RunPlan& plan,
                         const TopologyReport& report);

// A plan's graph in one line, to read before accepting the plan: "graph: ring
// of 4, 4 edges, connected, bipartite, metropolis weights, spectral gap
// 0.6667". With more than 1,000 nodes the matrices would take too long, and the
// line ends after "connected".
std::string TopologyLine(const core::CheckedPlan& checked);

}  // namespace dfl::console

#endif  // DFL_CONSOLE_TOPOLOGY_TEXT_H_
