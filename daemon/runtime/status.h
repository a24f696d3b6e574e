// What a node tells about itself: the source of `dflctl status`, of the
// metrics and of the demo's table. A plain value, copied out of the loop.
#ifndef DFL_RUNTIME_STATUS_H_
#define DFL_RUNTIME_STATUS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/learner.h"

namespace dfl::runtime {

// One neighbour of the current graph, or a peer that is linked without being a
// neighbour.
struct PeerStatus {
  NodeId node;
  std::string address;     // where it was dialled, or says it can be; may be ""
  bool neighbour = false;  // an edge of the current topology
  bool linked = false;
  double weight = 0;                         // W_ij; 0 when it is no neighbour
  ports::Phase phase = ports::Phase::kIdle;  // as it last said
  int64_t step = 0;                          // as it last said
  uint64_t plan_version = 0;                 // as it last said
  int64_t bytes_sent = 0;                    // frames, as serialised
  int64_t bytes_received = 0;
  int64_t models_sent = 0;  // answers and pushes acknowledged as complete
  int64_t models_received = 0;
  int64_t missed = 0;    // asks or rounds without an answer in time
  int64_t rejected = 0;  // its messages that were refused here
  // Models are exchanged with it; else, for a neighbour, why not.
  bool mixing = false;
  std::string not_mixing;
  // The fields of the data contract in which it differs.
  std::vector<std::string> disagrees;
  std::string last_error;  // why the link is down; "" when up
};

struct NodeStatus {
  NodeId node;
  uint64_t incarnation = 0;
  ports::Phase phase = ports::Phase::kIdle;
  std::string phase_reason;

  // The plan.
  std::string run_id;
  uint64_t plan_version = 0;          // in force
  uint64_t pending_plan_version = 0;  // waits for the boundary; 0 = none
  std::string algorithm;
  core::KnobValues knobs;  // in force on this node, overrides applied
  std::string topology;    // kind
  std::string weights;     // rule
  double spectral_gap = 0;
  int64_t member_count = 0;
  std::string format;  // e.g. "random int8"

  // The model.
  std::string model;  // kind
  // The hash of each field of the data contract, by its name, in hex.
  std::map<std::string, std::string> contract;
  int64_t parameter_count = 0;
  int64_t buffer_count = 0;
  int64_t train_rows = 0;
  int64_t test_rows = 0;

  // Progress.
  int64_t step = 0;        // finished steps, which are gradients
  int64_t stop_steps = 0;  // 0 = no limit
  int64_t round = 0;       // finished exchanges: core/algorithm/pace.h
  int64_t stop_rounds = 0;
  double epochs = 0;  // passes over the node's rows
  double stop_epochs = 0;
  int64_t gradients = 0;
  // Smoothed over about 50 gradients; nullopt: there was none yet.
  std::optional<double> loss;
  bool evaluated = false;  // whether `evaluation` holds something
  int64_t evaluated_step = 0;
  ports::Evaluation evaluation;
  double steps_per_second = 0;      // over about the last 10 s of training
  absl::Duration training_time;     // in phase training, this process
  absl::Duration longest_step_gap;  // between two steps while training
  // Of the algorithm, e.g. sigma, and "consensus_distance": root mean square
  // of PeerTable::Peer::distance over the peers.
  std::map<std::string, double> gauges;

  // Traffic of models and their control frames, as serialised.
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  // What the same models sent would have taken as dense fp32.
  int64_t dense_bytes_sent = 0;
  int64_t models_sent = 0;
  int64_t models_received = 0;
  int64_t missed = 0;
  std::map<std::string, int64_t> rejected;  // by reason

  int64_t failed_gradients = 0;
  int64_t skipped_batches = 0;  // that no gradient could be computed of
  int64_t far_models = 0;       // refused, since they lay too far away

  // Why the node learns alone although its plan gives it neighbours; "": it
  // does not.
  std::string alone;
  std::string last_error;  // of training; "" when fine
  // Steps behind the last checkpoint that was written; 0: none was. And why the
  // last one is not; "": it is.
  int64_t checkpoint_step = 0;
  std::string checkpoint_error;
  // Why data files that have changed are not taken up; "": there are none. Set
  // by whoever reads the files.
  std::string data_error;
  std::vector<PeerStatus> peers;  // sorted by name
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_STATUS_H_
