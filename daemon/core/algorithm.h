// The brain: one algorithm on one node as a pure state machine.
//
// It is handed what happened (an Event) and says what to do (Actions). It never
// blocks, reads a clock, touches a socket, a thread, protobuf or torch. The
// same object runs in dfld, on the simulated ports and under the golden test.
//
//   runtime                      algorithm
//   Started{step}            ->  (nothing, or a timer)
//   StepBegins               ->  Push / Ask / ComputeGradient / WakeAfter ...
//   AnswerArrived, PushArrived, AnswerMissing, TimerFired, GradientReady
//                            ->  more of the same, and in the end StepDone
//   StepBegins               ->  the next step, unless the runtime pauses here
//
// Between StepDone and the next StepBegins the node is at a *boundary*: the
// parameters hold w^k, and plan changes, jumps and evaluation happen there and
// nowhere else. AskArrived and snapshots are only served while
// parameters_settled(), so nobody is sent a half-made step.
//
// Vectors. The node owns the flat buffers of NodeVectors; the algorithm reads
// and writes them during Handle only. Nobody else writes them while it lives.
//
// Randomness is named: see Decisions.
#ifndef DFL_CORE_ALGORITHM_H_
#define DFL_CORE_ALGORITHM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithm_state.h"
#include "daemon/core/model_values.h"
#include "daemon/core/remote_vector.h"
#include "daemon/core/run_plan.h"

namespace dfl::core {

class MassCode;    // mass_ledger.h
struct StepCodes;  // step_codes.h

// ---------------------------------------------------------------- events ----

// The run starts, or is taken up again, at step `step` (0 = fresh). The
// parameters already hold w^step.
struct Started {
  int64_t step = 0;
};

// The node is at a boundary and may do its next step.
struct StepBegins {};

// The gradient of ComputeGradient is in NodeVectors::gradient.
struct GradientReady {
  double loss = 0;
  int64_t rows = 0;
};

// `from` asks for our model. Answered with an Answer action.
struct AskArrived {
  NodeId from;
  uint64_t ask = 0;
};

// What a neighbour sent: its model and the floating-point module buffers.
struct RemoteModel {
  std::unique_ptr<RemoteVector> parameters;
  std::vector<float> buffers;  // [buffer count]
  // The sender's step when it was taken.
  int64_t step = 0;
  // What the sender put beside it (Push::scalars): finite, but untrusted.
  std::vector<double> scalars;
  // Of a push: how long ago the sender asked for it, as far as the two ends can
  // tell without comparing clocks. >= 0, untrusted.
  absl::Duration age;
};

struct AnswerArrived {
  NodeId from;
  uint64_t ask = 0;
  RemoteModel model;
};

// No answer will come from `from` (no link, refused, cancelled).
struct AnswerMissing {
  NodeId from;
  uint64_t ask = 0;
};

// `model.step` is the sender's round.
struct PushArrived {
  NodeId from;
  RemoteModel model;
};

// A parcel of mass (mass_ledger.h): `model.parameters` is what is given,
// [MassLength()],
// `model.step` the newest round it is of. The same `sequence` may come again.
struct MassArrived {
  NodeId from;
  uint64_t sequence = 0;
  RemoteModel model;
  // Of replicas: it is added to entries, which are not set to it.
  bool increments = false;
};

// The parcel Give{to, sequence} was taken. `taken` is the taker's sum of probes
// of all it took from us (mass_ledger.h).
struct Delivered {
  NodeId to;
  uint64_t sequence = 0;
  double taken = 0;
};

// `from` sends nothing in `round`.
struct Skipped {
  NodeId from;
  int64_t round = 0;
};

// A new tracker epoch: mass of the one before is void at every node, and so is
// what is out. May come at any time after Started.
struct EpochBegins {};

struct TimerFired {
  uint64_t timer = 0;
};

// The link to a neighbour came up or went down.
struct PeerUp {
  NodeId peer;
};
struct PeerDown {
  NodeId peer;
};

// New knobs, neighbours or weights. Only at a boundary.
struct PlanChanged {
  NodePlan plan;
};

// What Predict asked for: softmax probabilities [rows x classes] of one
// mini-batch, first by our own model, then by each of Predict::models. Empty:
// it failed.
struct Predicted {
  int64_t rows = 0;
  std::vector<std::vector<double>> probabilities;
};

using Event =
    std::variant<Started, StepBegins, GradientReady, AskArrived, AnswerArrived,
                 AnswerMissing, PushArrived, TimerFired, PeerUp, PeerDown,
                 PlanChanged, MassArrived, Delivered, Skipped, EpochBegins,
                 Predicted>;

// --------------------------------------------------------------- actions ----

// Compute the gradient at NodeVectors::parameters, of the next mini-batch or,
// with `same_batch`, of the one that the gradient before was of. One at a time;
// GradientReady may come in a later step (AlgorithmInfo::computes_on_copy; then
// it may also be at `at`, [n] when not empty, which must stay as it is until
// GradientReady).
struct ComputeGradient {
  bool same_batch = false;
  absl::Span<const float> at = {};
};

// Ask each of `peers` for its model.
struct Ask {
  uint64_t ask = 0;
  std::vector<NodeId> peers;
};

// The answers that are still out are not wanted any more (stragglers).
struct CancelAsk {
  uint64_t ask = 0;
};

// Send the parameters as they are now to `to`. `rate` in (0, 1] is the share of
// coordinates; `seed` names them. The plan's codec says how values are written.
struct Answer {
  NodeId to;
  uint64_t ask = 0;
  double rate = 1;
  uint64_t seed = 0;
};

// Send the parameters as they are now to each of `peers`, as round `round`; or
// `values`, [n] when not empty, which must stay as they are until the next call
// of Handle. Coordinates come from (edge, round), the same in both directions.
struct Push {
  std::vector<NodeId> peers;
  int64_t round = 0;
  absl::Span<const float> values = {};
  // Travel with the model: at most 8, all finite.
  std::vector<double> scalars = {};
  // On a slow link a newer push replaces one that waits, but only one that is
  // apart as well or not.
  bool apart = false;
};

// Send `mass`, [MassLength()], to `to` until it is taken, exactly once, whatever
// happens to the link; Delivered says that it was. One at a time for each `to`.
struct Give {
  NodeId to;
  uint64_t sequence = 0;  // 1, 2, ... for each `to`
  int64_t round = 0;
  std::shared_ptr<const FlatVector> mass;
  int64_t nonzeros = 0;  // entries of `mass` that are not 0; 0: not counted
  std::vector<double> scalars = {};  // as Push::scalars
  // Not null: `mass` is of increments, these ones.
  std::shared_ptr<const StepCodes> steps = nullptr;
  // Not null: what is encoded, in `format` by `seed`; `mass` is what it decodes to.
  std::shared_ptr<const FlatVector> source = nullptr;
  MessageFormat format = {};
  uint64_t seed = 0;
};

// Tell `peers` that nothing is sent to them in `round`, or they would wait.
struct Skip {
  std::vector<NodeId> peers;
  int64_t round = 0;
};

// TimerFired{timer} after `delay`; a second WakeAfter of one timer replaces it.
struct WakeAfter {
  uint64_t timer = 0;
  absl::Duration delay;
};
struct CancelTimer {
  uint64_t timer = 0;
};

// A deadline passed and the node goes on without these neighbours. Only to be
// reported.
struct Missed {
  std::vector<NodeId> peers;
  int64_t wanted = 0;  // how many neighbours were waited for
  int64_t came = 0;    // and how many of them came
};

// The parameters hold w^{k+1}.
struct StepDone {};

// Predict the next mini-batch with the parameters as they are now, which must
// stay so until Predicted, and with each of `models`. One at a time, and not
// during a gradient.
struct Predict {
  std::shared_ptr<const std::vector<ModelValues>> models;
};

using Action =
    std::variant<ComputeGradient, Ask, CancelAsk, Answer, Push, WakeAfter,
                 CancelTimer, Missed, StepDone, Give, Skip, Predict>;
using Actions = std::vector<Action>;

// ------------------------------------------------------------- interface ----

// The node's flat buffers, borrowed for the algorithm's life.
struct NodeVectors {
  absl::Span<float> parameters;  // [n] trained parameters
  absl::Span<float> gradient;    // [n]
  absl::Span<float> buffers;     // [b] floating-point module buffers
};

// What an algorithm leaves to chance, by name, so that a test can script it.
class Decisions {
 public:
  virtual ~Decisions() = default;

  // `count` of `candidates`, uniformly without replacement, in any order;
  // 0 <= count <= candidates.size().
  virtual std::vector<NodeId> ChooseNeighbours(
      absl::Span<const NodeId> candidates, int64_t count) = 0;

  // A fresh name for the coordinates of one message to `to`.
  virtual uint64_t NameCoordinates(const NodeId& to) = 0;

  // One value of [range.lo, range.hi], uniformly. The same for every call of
  // one node with the same purpose and range: a node draws once.
  virtual int64_t DrawFrom(absl::string_view purpose, IntRange range) = 0;

  // True with `probability`: whether `purpose` happens this time, on the way to
  // `peer` or, when that is oneself, here.
  virtual bool Happens(absl::string_view purpose, const NodeId& peer,
                       double probability) = 0;

  // `count` different places of [0, candidates), uniformly, in any order. Every
  // node of the run with the seed `run_seed` that asks with the same arguments
  // is told the same, so that nodes know of each other's draws.
  virtual std::vector<int64_t> ChooseTogether(uint64_t run_seed,
                                              absl::string_view purpose,
                                              int64_t round, int64_t candidates,
                                              int64_t count) = 0;

  // A time to wait, exponential with the mean `mean` > 0: of a Poisson process.
  virtual double DrawWait(absl::string_view purpose, double mean) = 0;

  // `count` of the coordinates [0, n), uniformly without replacement, in
  // increasing order; 0 <= count <= n.
  virtual std::vector<int64_t> ChooseCoordinates(absl::string_view purpose,
                                                 int64_t n, int64_t count) = 0;
};

// Decisions from a seed: one fork for each purpose.
class SeededDecisions : public Decisions {
 public:
  // `seed` should differ between nodes: DeriveSeed(plan.seed, node name).
  // `stream` gives other neighbours and coordinates (a restarted node must not
  // repeat its own), while what is drawn once stays: DrawFrom ignores it.
  explicit SeededDecisions(uint64_t seed, uint64_t stream = 0);

  std::vector<NodeId> ChooseNeighbours(absl::Span<const NodeId> candidates,
                                       int64_t count) override;
  uint64_t NameCoordinates(const NodeId& to) override;
  int64_t DrawFrom(absl::string_view purpose, IntRange range) override;
  bool Happens(absl::string_view purpose, const NodeId& peer,
               double probability) override;
  std::vector<int64_t> ChooseTogether(uint64_t run_seed,
                                      absl::string_view purpose, int64_t round,
                                      int64_t candidates,
                                      int64_t count) override;
  double DrawWait(absl::string_view purpose, double mean) override;
  std::vector<int64_t> ChooseCoordinates(absl::string_view purpose, int64_t n,
                                         int64_t count) override;

 private:
  uint64_t seed_;
  Rng neighbours_;
  Rng coordinates_;
  Rng happenings_;
  Rng waits_;
};

// How an algorithm's models travel.
enum class Exchange { kNone, kPull, kPush };

// What graphs an algorithm is for: those whose edges run both ways, or any, an
// undirected edge being two arcs (NodePlan's in- and out-neighbours).
enum class GraphKind { kUndirected, kDirected };

class StateFields;
struct AlgorithmContext;

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Takes one event and appends what to do to `actions`, in order. `event` is
  // consumed. Events that are out of place (a late answer, an old timer) are
  // ignored; nothing a peer sends is ever an error here.
  virtual void Handle(Event event, Actions& actions) = 0;

  // k, the number of finished steps (= the round about to be or being done).
  virtual int64_t step() const = 0;

  // True while NodeVectors::parameters holds w^k, the state a neighbour may be
  // sent; false between mixing (or a local step) and StepDone.
  virtual bool parameters_settled() const = 0;

  // Moves to round `round` > step() at a boundary, because neighbours are
  // there already. The parameters stay.
  virtual void JumpTo(int64_t round) = 0;

  // The first step from `step` >= 0 on with an exchange. Where exchanges have a
  // period, nodes run up to it each at its own pace.
  virtual int64_t NextExchange(int64_t step) const { return step; }

  // The number of local steps taken so far (gradients applied).
  virtual int64_t gradients() const = 0;

  // What Delivered::taken says to `from`; 0 where no mass is given.
  virtual double MassTaken(const NodeId& /*from*/) const { return 0; }

  // The length of a parcel of mass; `n` parameters.
  virtual int64_t MassLength(int64_t n) const { return n; }

  // Names and values worth watching, e.g. sigma and m of PaME.
  virtual std::map<std::string, double> Gauges() const = 0;

  // For measuring only: the vector that the paper calls `symbol` as it is now,
  // [n]; empty where AlgorithmInfo::auxiliary does not name it. Away from a
  // boundary it may be half of one round and half of the next.
  virtual FlatVector Auxiliary(absl::string_view /*symbol*/) const {
    return {};
  }

  // All that the next step depends on and that is the algorithm's own: steps and
  // step sizes, momentum, trackers, replicas, what was given and is not known to
  // be taken, what was taken and waits for its round. Only at a boundary.
  //
  // Not in it, since the node has it: NodeVectors, all three (the last gradient
  // is a part of a tracker y = z + beta g), the plan, the links, the Decisions,
  // and the tracker epoch that mass is of. Nor what neighbours must bear to lose
  // anyway: pushed models that wait for their round (as if their senders had been
  // late) and PaME's asks that are out (the step that mixes asks again).
  //
  // Of two states of one run only the later may be gone on from: mass given or
  // taken after the earlier would be there twice or never. What else is done with
  // one needs a new tracker epoch.
  AlgorithmState ExportState();

  // Goes on from there: takes the place of Started, on an object of the same
  // plan and over the same NodeVectors content that was handed nothing yet, or
  // Started alone. It is then at the boundary at which the state was exported; PeerUp is
  // to follow for every link that is up.
  //
  // Appends to `actions` what had been asked of the node and was not over:
  // parcels that are not known to be taken (a repeat is harmless), timers, which
  // begin anew, and a gradient that outlives its step. A node that still has
  // these under way drops them.
  // Errors, which change nothing:
  //   INVALID_ARGUMENT  another algorithm or version; a field is missing,
  //                     unknown, of another type or length, not finite or out of
  //                     range: names it, what was found and what is allowed.
  absl::Status ImportState(const AlgorithmState& state, Actions& actions);

 protected:
  // Names every field of the state: state_fields.h. A base class's first.
  virtual void VisitState(StateFields& fields) = 0;
  // A state was imported: appends what ImportState says.
  virtual void Resume(Actions& /*actions*/) {}

 private:
  friend absl::StatusOr<std::unique_ptr<Algorithm>> CreateAlgorithm(
      absl::string_view name, AlgorithmContext context, Decisions& decisions);

  std::string name_;  // in the catalogue
};

// What an algorithm keeps for each neighbour at the most, in vectors of n floats
// but for `waiting`: links may lose and delay as they like, while neighbours keep
// to the algorithm. A node's whole need: runtime/memory_need.h.
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

// One entry of the catalogue.
struct AlgorithmInfo {
  std::string name;
  std::string summary;  // one line
  std::string source;   // paper, equation, listing
  std::string caveats;  // what a user should know; may be ""
  Exchange exchange = Exchange::kNone;
  GraphKind graphs = GraphKind::kUndirected;
  // True: out-of-step nodes jump to the furthest round they hear of.
  bool lock_step = false;
  // True: it has no rounds, so a plan's graph may not vary from one to the next.
  bool continuous = false;
  // True: every member exchanges with every other and all count the same, so a
  // plan needs the complete graph and no explicit weights.
  bool complete_graph = false;
  // True: one member is everyone's only neighbour, so a plan needs a star.
  bool star_graph = false;
  // True: NodePlan::hubs is wanted.
  bool wants_hubs = false;
  // True: NodePlan::least_omega is wanted.
  bool wants_omega = false;
  // The steps at which the proximal point of ProxKnobs() is taken; a plan needs
  // each to pass CheckProx. Null: none.
  std::vector<double> (*prox_steps)(const Knobs& knobs) = nullptr;
  // True: the parameters may move while a gradient is under way, so it is
  // computed at a copy of them, taken when ComputeGradient is carried out.
  bool computes_on_copy = false;
  // True: a message that carries only some coordinates would break it.
  bool dense_only = false;
  std::string why_dense;  // and how, or what is for that in its stead
  // True: something is given away that must arrive exactly once
  // (mass_ledger.h), so its state is bound to a tracker epoch.
  bool gives_mass = false;
  // Why what it gives, which is all that it sends, must arrive as it is; "": a
  // plan may have it in a lossy format (CodecSpec::mass), what is lost being kept
  // and given later.
  std::string exact_mass;
  // True: what it gives are replicas (replica_rounds.h), so a parcel may be of
  // increments in steps.
  bool keeps_replicas = false;
  // True: it compares predictions, so a plan needs a model that tells classes.
  bool predicts = false;
  // The vectors that its paper follows beside x, by the paper's symbols:
  // Algorithm::Auxiliary gives them.
  std::vector<std::string> auxiliary;
  // The one of them whose mean over the nodes estimates the mean of their
  // gradients; "": none does.
  std::string gradient_estimate;
  // Costs: vectors of length n kept beside parameters and gradient, what is kept
  // for each neighbour, and a sentence on messages and steps a round.
  int64_t extra_vectors = 0;
  EdgeCost edge;
  // Of `degree` neighbours, how many it has models of at the most; null: of all.
  int64_t (*heard_at_once)(const Knobs& knobs, int64_t degree) = nullptr;
  std::string cost;
  std::vector<KnobSpec> knobs;
};

// All algorithms, by name.
absl::Span<const AlgorithmInfo> AlgorithmCatalogue();

// The entry called `name`.
// Errors: NOT_FOUND with the nearest name and all that there are.
absl::StatusOr<const AlgorithmInfo*> FindAlgorithm(absl::string_view name);

// What a new algorithm needs. `batches_per_pass` = ceil(rows / batch size), for
// algorithms that count in epochs; `train_rows` = this node's rows.
struct AlgorithmContext {
  NodePlan plan;
  NodeVectors vectors;
  int64_t batches_per_pass = 1;
  int64_t train_rows = 1;
  // How mass is written, where it may be lossy; outlives the algorithm. Null: in
  // fp32.
  const MassCode* mass_code = nullptr;
};

// A new state machine; `decisions` must outlive it.
// Errors: NOT_FOUND as FindAlgorithm.
absl::StatusOr<std::unique_ptr<Algorithm>> CreateAlgorithm(
    absl::string_view name, AlgorithmContext context, Decisions& decisions);

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_H_
