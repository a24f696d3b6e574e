// The run plan: one document for the whole network, versioned, checked as a
// whole, adopted by every node at an iteration boundary. Here as a plain
// struct; its YAML form is read and written in config/plan_yaml.h, and the same
// file runs in the simulator.
//
// A node's own settings (identity, addresses, data, device) are not here:
// config/node_settings.h.
#ifndef DFL_CORE_PLAN_RUN_PLAN_H_
#define DFL_CORE_PLAN_RUN_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/algorithm/optimizer_spec.h"
#include "daemon/core/contract/data_section.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/core/vector/aggregation.h"
#include "daemon/core/vector/message_format.h"

namespace dfl::core {

struct ModelSpec {
  // linear, logistic, svm, mlp, cnn, resnet20, resnet18, torchscript.
  std::string kind = "cnn";
  // Number of classes; 0 = regression, kClassesOfData = as the data contract
  // says (core/contract).
  int64_t classes = kClassesOfData;
  // Shape of one example, e.g. {1, 28, 28} or {123}; empty: taken from the
  // data.
  std::vector<int64_t> input;
  // mlp: widths of the hidden layers.
  std::vector<int64_t> hidden = {128};
  // mlp: probability of dropping a hidden unit, in [0, 1).
  double dropout = 0;
  // torchscript: path of the .pt file on every node.
  std::string path;
  // cross-entropy, hinge, mse, logistic, bce, huber; "" = the model's own
  // default, mse for a regression.
  std::string loss;
  // huber: where squares become absolute values, > 0.
  double huber_delta = 1;
  // cross-entropy: the weight of each class, > 0; empty: all 1.
  std::vector<double> class_weights;
  // Weight of (l2/2) ||w||^2 added to the loss, >= 0.
  double l2 = 0;

  friend bool operator==(const ModelSpec& a, const ModelSpec& b) {
    return a.kind == b.kind && a.classes == b.classes && a.input == b.input &&
           a.hidden == b.hidden && a.dropout == b.dropout && a.path == b.path &&
           a.loss == b.loss && a.huber_delta == b.huber_delta &&
           a.class_weights == b.class_weights && a.l2 == b.l2;
  }
};

struct AlgorithmSpec {
  std::string name = "pame";
  KnobValues knobs;
};

struct CodecSpec {
  MessageFormat format{Coordinates::kRandom, ValueType::kFp32};
  // Share of coordinates in a message of algorithms without a transmission
  // rate of their own (PaME has p), in (0, 1]. Ignored when dense.
  double rate = 0.1;
  // How values of mass are written (mass_ledger.h), all of them. Lossy ones
  // only where the algorithm allows it: AlgorithmInfo::exact_mass.
  ValueType mass = ValueType::kFp32;
};

struct EvaluationSpec {
  // Steps between two evaluations, each at the first boundary from there on; 0
  // = only at the end.
  int64_t every_steps = 200;
  // How many test examples (the first ones of a seeded order); 0 = all.
  int64_t examples = 2000;
};

// The first limit that is met ends the run, at the next boundary. 0: none.
struct StopRule {
  int64_t steps = 0;   // mini-batch gradients: pace.h
  int64_t rounds = 0;  // exchanges: pace.h
  // Passes over the node's own rows; may be a fraction.
  double epochs = 0;
  absl::Duration time = absl::InfiniteDuration();  // of training
  double loss_below = 0;      // local evaluation loss; 0 = off
  double accuracy_above = 0;  // local evaluation accuracy; 0 = off
};

// How long a node waits for its neighbours' answers or pushes: `exchange`, and
// on top of it what their links take, as measured; never less than `floor` nor
// more than `ceiling`.
struct DeadlineSpec {
  absl::Duration exchange = absl::Seconds(2);
  absl::Duration floor = absl::ZeroDuration();
  // Infinite: kCeilingOfExchange times `exchange`.
  absl::Duration ceiling = absl::InfiniteDuration();

  static constexpr int kCeilingOfExchange = 5;
  absl::Duration Ceiling() const {
    return ceiling == absl::InfiniteDuration() ? kCeilingOfExchange * exchange
                                               : ceiling;
  }
};

// How often nodes keep what they need to go on after a restart: about this long
// lies between two checkpoints, at steps that all nodes have in common
// (runtime/checkpoints/checkpoint_clock.h). 0: never. Each node holds the last
// `keep` of them.
struct CheckpointSpec {
  absl::Duration interval = absl::Seconds(30);
  int64_t keep = kLeastKept;

  static constexpr int64_t kLeastKept = 2;
  static constexpr int64_t kMostKept = 16;
};

// What one node does differently.
struct NodeOverrides {
  KnobValues knobs;
};

struct RunPlan {
  // Raised with every change; 0 = not applied yet.
  uint64_t version = 0;
  // Minted by the first apply; "" = not applied yet.
  std::string run_id;
  // Seeds everything random in the run; 0 = minted by the first apply.
  uint64_t seed = 0;
  ParticipantsSpec participants;
  // Who they are now, sorted bytewise, no doubles. With kFixed the document
  // names them; otherwise they follow who is there (participants.h).
  std::vector<MemberSpec> members;
  ModelSpec model;
  // What is stated of the data contract; the first apply fixes the rest.
  DataSection data;
  int64_t batch_size = 32;
  AlgorithmSpec algorithm;
  OptimizerSpec optimizer;
  AggregationSpec aggregation;
  TopologySpec topology;
  CodecSpec codec;
  EvaluationSpec evaluation;
  StopRule stop;
  DeadlineSpec deadline;
  CheckpointSpec checkpoint;
  std::map<NodeId, NodeOverrides> nodes;
};

}  // namespace dfl::core

#endif  // DFL_CORE_PLAN_RUN_PLAN_H_
