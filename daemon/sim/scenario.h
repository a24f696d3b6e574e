// A scenario: a run plan and the network it runs on, as one YAML document. The
// plan's keys are those of config/plan_yaml.h, read by the same code; beside
// them stands
//
//   network:
//     nodes: 20                # or [a, b, c]; left out: the plan's members
//     membership: lan          # nodes find each other; left out: given links
//     problem: {kind: linear, n: 300, rows: 50, seed: 0}  # problem_spec.h
//     links: {delay: 1ms, jitter: 0s, rate: 0, loss: 0}
//     paths:                   # single links, both directions
//       - {between: [a, b], delay: 80ms}
//     compute: {time: 10ms, extra: 0s, factor: {c: 4}}
//     hostile: {nodes: [d], attack: sign-flip, factor: 1}  # hostile.h
//     events:                  # network_event.h
//       - {at: 2s, crash: a, for: 3s}
//     plans: given             # or gossip: a change is given to one node
//     metrics_every: 10
//     metrics: [proximal_gradient]  # extra_metrics.h
//     settled_below: 0
//     limit: 1h
//
// and, if it is several runs, a section `variants` (variants.h).
//
// Times count from the moment the first node trains. docs/simulator.md says
// what each key means.
#ifndef DFL_SIM_SCENARIO_H_
#define DFL_SIM_SCENARIO_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/member_frames.h"
#include "daemon/sim/hostile.h"
#include "daemon/sim/network_event.h"
#include "daemon/sim/problem_spec.h"
#include "daemon/simports/sim_network.h"

namespace dfl::sim {

// A link that differs from the others.
struct PathSpec {
  int64_t a = 0;  // places of members
  int64_t b = 0;
  simports::SimPath path;
};

// How long a gradient takes: factor (time + E), E exponential with mean
// `extra`.
struct ComputeSpec {
  absl::Duration time = absl::Milliseconds(10);
  absl::Duration extra;
  std::map<int64_t, double> factor;  // by member; 1 where there is none
};

struct Scenario {
  std::string file;  // as it was called
  std::string text;
  std::string variant;  // the name in variants.h; "": none
  // Its seed is never 0. For a data problem the members' rows are 1 until the
  // files are read.
  core::RunPlan plan;
  // Has the algorithms that the plans name; outlives scenario and simulation.
  const core::Catalogue* catalogue = &core::BuiltInCatalogue();
  ProblemSpec problem;
  simports::SimPath links;
  std::vector<PathSpec> paths;
  ComputeSpec compute;
  // How patient the nodes' membership is; nullopt: it is switched off, and all
  // know all members from the start.
  std::optional<ports::Pace> membership;
  // Nodes keep checkpoints on their disks, as often as the plan says.
  bool checkpoints = false;
  HostileSpec hostile;
  std::vector<NetworkEvent> events;  // as written
  // A plan that changes is given to one node as a record, which the nodes pass
  // on; else each node is given it at a moment of its own.
  bool plans_by_gossip = false;
  // Steps between two rows of metrics, or rounds; >= 1.
  int64_t metrics_every = 1;
  bool metrics_by_rounds = false;
  // What is measured beside the fixed columns (extra_metrics.h).
  std::vector<std::string> metrics;
  // [PaME] sec. V: the run ends when the standard deviation of f(mean w) over
  // the last three rows of metrics is below this; 0: off.
  double settled_below = 0;
  // The run ends here whatever happens.
  absl::Duration limit = absl::Hours(1);
};

// Reads and checks a scenario, including the plans that its events make. `seed`
// != 0 replaces the plan's. `variant` is one of variants.h; "": the document
// without its variants. `catalogue` becomes the scenario's.
// Errors: INVALID_ARGUMENT with a line for each of the first ten mistakes, as
// config::ParsePlan; NOT_FOUND as ApplyVariant.
absl::StatusOr<Scenario> ParseScenario(
    absl::string_view text, absl::string_view file_name, uint64_t seed = 0,
    absl::string_view variant = "",
    const core::Catalogue& catalogue = core::BuiltInCatalogue());

}  // namespace dfl::sim

#endif  // DFL_SIM_SCENARIO_H_
