// An entry of the catalogue: what plan, runtime, command line, simulator and
// docs know of an algorithm.
#ifndef DFL_CORE_ALGORITHM_ALGORITHM_INFO_H_
#define DFL_CORE_ALGORITHM_ALGORITHM_INFO_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/graph/topology.h"

namespace dfl::core {

// How an algorithm's models travel.
enum class Exchange { kNone, kPull, kPush };

// What graphs an algorithm is for: those whose edges run both ways, or any, an
// undirected edge being two arcs (NodePlan's in- and out-neighbours).
enum class GraphKind { kUndirected, kDirected };

// Whether nodes take equally many steps in an iteration.
enum class StepsOf {
  kAll,     // the same for all that have the same knobs
  kRows,    // whole epochs of each node's own rows
  kChance,  // as it comes, maybe none
};

// What an algorithm keeps for each neighbour at the most, in vectors of n
// floats but for `waiting`: links may lose and delay as they like, while
// neighbours keep to the algorithm. A node's whole need: runtime/memory_need.h.
struct EdgeCost {
  // For one it sends to: what was given and is not known to be taken.
  int64_t given = 0;
  // For one it hears: what was taken and waits, and its replica.
  int64_t taken = 0;
  // For one it sends to: models on their way, each of another step.
  int64_t sent = 0;
  // For one it hears: its models that wait to be mixed, as they came.
  int64_t waiting = 0;
  // Of one parcel of mass: Algorithm::MassLength(n) / n; 0: none is given.
  int64_t parcel = 0;

  friend EdgeCost operator+(const EdgeCost& a, const EdgeCost& b) {
    return {a.given + b.given, a.taken + b.taken, a.sent + b.sent,
            a.waiting + b.waiting, a.parcel + b.parcel};
  }
  friend bool operator==(const EdgeCost& a, const EdgeCost& b) {
    return a.given == b.given && a.taken == b.taken && a.sent == b.sent &&
           a.waiting == b.waiting && a.parcel == b.parcel;
  }
};

class Algorithm;          // algorithm.h
struct AlgorithmContext;  // algorithm.h
class Decisions;          // decisions.h
struct Network;           // network.h
struct NodePlan;          // node_plan.h

// What an algorithm wants to know of the whole network, beyond what NodePlan
// tells every algorithm. Each algorithm that wants something has a struct of
// its own, declared beside it; FactsOf (node_plan.h) reads it.
struct AlgorithmFacts {
  virtual ~AlgorithmFacts() = default;
};

// One entry of the catalogue. It is all that plan, runtime and programs know of
// an algorithm: nothing else names it.
struct AlgorithmInfo {
  std::string name = {};
  std::string summary = {};  // one line
  std::string source = {};   // paper, equation, listing
  std::string caveats = {};  // what a user should know; may be ""
  // What of it is a step, and what a round (pace.h).
  std::string pace = "A round is one step and one exchange.";

  // ---- what makes and instructs it ----

  // Makes the state machine; Create<Class> (algorithm.h) is one. The decisions
  // outlive it.
  std::unique_ptr<Algorithm> (*create)(AlgorithmContext context,
                                       Decisions& decisions) = nullptr;
  // The facts of a network whose plan has passed its checks, the same for every
  // member. Null: it wants none.
  std::shared_ptr<const AlgorithmFacts> (*derive)(const Network& network) =
      nullptr;
  // Why these knobs do not go together: INVALID_ARGUMENT names the knob first,
  // what it is and what is allowed. Null: all that are allowed do.
  absl::Status (*check)(const Knobs& knobs) = nullptr;
  // What a person who is about to apply a plan should be told, each with the
  // key of the plan that it is about. `window` has the edges of all rounds.
  // Null: nothing.
  std::vector<std::string> (*warnings)(const Network& network,
                                       const AnyGraph& window) = nullptr;

  // What a person should know of a node's first step under `plan`, e.g. how
  // long it is. Null: nothing.
  std::string (*first_step)(const NodePlan& plan) = nullptr;

  // ---- what a plan must offer ----

  Exchange exchange = Exchange::kNone;
  GraphKind graphs = GraphKind::kUndirected;
  // True: out-of-step nodes jump to the furthest round they hear of.
  bool lock_step = false;
  // True: nothing in it happens at all nodes at once, so a plan's graph may not
  // vary from one iteration to the next.
  bool continuous = false;
  // True: every iteration (Algorithm::step()) is a round. False: only some.
  bool round_is_iteration = true;
  // Null: the same for all, and at least one.
  StepsOf (*steps_of)(const Knobs& knobs) = nullptr;
  // True: every member exchanges with every other and all count the same, so a
  // plan needs the complete graph and no explicit weights.
  bool complete_graph = false;
  // True: one member is everyone's only neighbour, so a plan needs a star.
  bool star_graph = false;
  // True: a member without data may take part (Participation::kMix). Its
  // gradient is zero, and what it holds is what it mixes.
  bool mixes_without_data = false;
  // The steps at which the proximal point of ProxKnobs() is taken; a plan needs
  // each to pass CheckProx. Null: none.
  std::vector<double> (*prox_steps)(const Knobs& knobs) = nullptr;
  // True: what it receives are models, all of one meaning, which it averages
  // with its own, so a plan may name a rule for that (AggregationSpec).
  bool mixes_models = false;
  // True: the parameters may move while a gradient is under way, so it is
  // computed at a copy of them, taken when ComputeGradient is carried out.
  bool computes_on_copy = false;
  // True: a message that carries only some coordinates would break it.
  bool dense_only = false;
  std::string why_dense = {};  // and what it does instead, if anything
  // Why coordinates must not be chosen by their size; "": they may be.
  std::string why_not_topk = {};
  // True: something is given away that must arrive exactly once
  // (mass_ledger.h), so its state is bound to a tracker epoch.
  bool gives_mass = false;
  // Why what it gives, which is all that it sends, must arrive as it is; "": a
  // plan may have it in a lossy format (CodecSpec::mass), and what is lost is
  // kept and given later.
  std::string exact_mass = {};
  // True: what it gives are replicas (replica_rounds.h), so a parcel may be of
  // increments in steps.
  bool keeps_replicas = false;
  // True: it pushes offers in `mod` and gives answers to them
  // (vector/mod_code.h), both with module buffers, and nothing else. Parcels
  // are numbered by the offers, so that some numbers are missing.
  bool offers = false;
  // True: it compares predictions, so a plan needs a model that tells classes.
  bool predicts = false;

  // ---- what can be measured, and what it costs ----

  // The vectors that its paper follows beside x, by the paper's symbols:
  // Algorithm::Auxiliary gives them.
  std::vector<std::string> auxiliary = {};
  // The one of them whose mean over the nodes estimates the mean of their
  // gradients; "": none does.
  std::string gradient_estimate = {};
  // Vectors of length n kept beside parameters and gradient.
  int64_t extra_vectors = 0;
  EdgeCost edge = {};
  // The share of coordinates that a message carries, where a knob says so in
  // place of the plan's codec. Null: the codec does.
  double (*message_rate)(const Knobs& knobs) = nullptr;
  // How many of `degree` neighbours it keeps models of at once, at the most.
  // Null: of all.
  int64_t (*heard_at_once)(const Knobs& knobs, int64_t degree) = nullptr;
  std::string cost = {};  // a sentence on gradients and messages of a round

  // Why its step is its own, so that a plan may name no optimiser
  // (optimizer_spec.h); "": it may.
  std::string own_step = {};
  // True: it may with the knob `form` at local only.
  bool optimizer_needs_local_form = false;
  // The knob whose place an optimiser takes; "": none.
  std::string optimizer_replaces = {};
  std::vector<KnobSpec> knobs = {};
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_ALGORITHM_INFO_H_
