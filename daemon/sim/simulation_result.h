// What a simulated run comes to.
#ifndef DFL_SIM_SIMULATION_RESULT_H_
#define DFL_SIM_SIMULATION_RESULT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/ids.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/sim/metrics.h"
#include "daemon/sim/tasks/task.h"

namespace dfl::sim {

enum class End {
  kFinished,     // every node that is up has met its stop rule
  kSettled,      // network.settled_below holds
  kLimit,        // network.limit has passed
  kDiverged,     // loss or gradient of a node are not finite
  kStalled,      // nothing will ever happen again
  kInterrupted,  // by the caller
};

// "finished", "settled", ...
const char* Name(End end);

// A node by itself, when the last row of metrics was taken.
struct NodeScore {
  std::string name;
  int64_t step = 0;
  int64_t round = 0;
  uint64_t plan_version = 0;           // in force there
  std::vector<uint64_t> incarnations;  // of all its starts so far
  Score own;  // f_i(w_i), and the accuracy of its own model
};

// A change of the plan.
struct PlanChange {
  uint64_t version = 0;
  double time_s = 0;  // virtual, when it was given out
  // When the last of the nodes in the run had it in force; none: never.
  std::optional<double> in_force_s;
};

struct Result {
  End end = End::kFinished;
  std::string why;      // one sentence
  bool failed = false;  // the run did not get where its plan said
  uint64_t digest = 0;
  std::vector<MetricsRow> rows;  // of network.metrics_every, and the last state
  std::vector<NodeScore> nodes;  // of the last row
  std::vector<PlanChange> changes;
  // The probabilities that nodes drew (p_draw of Spod-GT), to the
  // out-neighbours of the first round; of those that drew any.
  std::map<NodeId, core::DrawnProbabilities> drawn;
  int64_t parameters = 0;  // of a model
  int64_t edges = 0;       // directed ones by themselves; of the first round
  // Finished, of all nodes together; with those that were jumped over.
  int64_t steps = 0;
  int64_t events = 0;
  int64_t links_lost = 0;
  int64_t neighbours_missed = 0;  // deadlines that passed without an answer
  int64_t messages_rejected = 0;
  int64_t crashes = 0;
  int64_t writes_failed = 0;  // of a node's state
  // Starts that found no whole state on the disk, but for a node's first.
  int64_t states_lost = 0;
  // Models and parcels that nodes took: answers, pushes, mass.
  int64_t models_received = 0;
  // For each finished iteration, the node's contacts that were in the run and
  // that no event had cut off from it: whom it could have exchanged with.
  int64_t reachable = 0;
  // The longest time, in virtual seconds, that a node that trained took from
  // one finished iteration to the next, or to the first.
  double longest_step_gap_s = 0;
};

struct Progress {
  double share = 0;  // of the work, in [0, 1], as far as it can be told
  MetricsRow last;   // the newest, with step and bytes as they are now
  int64_t steps = 0;
};
}  // namespace dfl::sim

#endif  // DFL_SIM_SIMULATION_RESULT_H_
