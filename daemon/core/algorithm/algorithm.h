// The brain: one algorithm on one node as a pure state machine.
//
// It is handed what happened (an Event) and says what to do (Actions), one
// action after the other; each is carried out at once. It never blocks, reads a
// clock, touches a socket, a thread, protobuf or torch. The same object runs in
// dfld, on the simulated ports and under the golden test.
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
// Randomness is named: decisions.h. What a user is told of an algorithm is its
// entry in the catalogue: algorithm_info.h, algorithms/catalogue.h.
#ifndef DFL_CORE_ALGORITHM_ALGORITHM_H_
#define DFL_CORE_ALGORITHM_ALGORITHM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/algorithm_state.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/core/algorithm/edge_books.h"
#include "daemon/core/algorithm/node_plan.h"
#include "daemon/core/algorithm/pace.h"
#include "daemon/core/vector/message_format.h"
#include "daemon/core/vector/model_values.h"
#include "daemon/core/vector/remote_vector.h"

namespace dfl::core {

class MassCode;    // mass/mass_ledger.h
struct ModAnswer;  // vector/mod_code.h
struct ModOffer;   // vector/mod_code.h
struct StepCodes;  // vector/step_codes.h

// ---------------------------------------------------------------- events ----

// The run starts, or is taken up again, at iteration `step` (0 = fresh). The
// parameters already hold w^step.
struct Started {
  int64_t step = 0;
  // How far the model has come; nullopt: as far as `step` iterations of this
  // algorithm bring it (Algorithm::PaceOf).
  std::optional<Pace> pace = std::nullopt;
  // How many of these iterations had no gradient (Algorithm::idle).
  int64_t idle = 0;
};

// The node is at a boundary and may do its next step.
struct StepBegins {};

// The gradient of ComputeGradient is in NodeVectors::gradient.
struct GradientReady {
  double loss = 0;
  int64_t rows = 0;
  // No gradient could be computed; the vector is 0. The algorithm goes on with
  // its neighbours, but this is no step: it is not counted, and step sizes do
  // not move.
  bool none = false;
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
  // In `mod`, to be read against the own vector; `parameters` carry nothing
  // then. Of a push, or of mass. Null: it is none.
  std::shared_ptr<const ModOffer> offer = nullptr;
  std::shared_ptr<const ModAnswer> answer = nullptr;
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
  // True: the values are added to a replica's entries and replace none.
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

// A neighbour takes part from now on, or no more: its link, its phase or what
// it says of its run has changed.
struct PeerUp {
  NodeId peer;
  // It was silent and speaks again: it may have sent what the present round
  // waited for.
  bool heard_again = false;
};
struct PeerDown {
  NodeId peer;
  // Its link is up, but it says nothing any more.
  bool silent = false;
};

// New knobs, neighbours or weights, or other rows. Only at a boundary.
struct PlanChanged {
  NodePlan plan;
  // As AlgorithmContext's; 0: as before.
  int64_t batches_per_pass = 0;
  int64_t train_rows = 0;
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
// the gradient may also be at `at`, [n] when not null, which nobody changes
// before GradientReady).
struct ComputeGradient {
  bool same_batch = false;
  std::shared_ptr<const FlatVector> at = nullptr;
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
// `values`, [n] when not empty. Both are read before Actions::Do returns, so
// the algorithm may change them right after. Coordinates come from (edge,
// round), the same in both directions.
struct Push {
  std::vector<NodeId> peers;
  int64_t round = 0;
  absl::Span<const float> values = {};
  // Travel with the model: at most 8, all finite.
  std::vector<double> scalars = {};
  // On a slow link a newer push replaces one that waits, but only one that is
  // apart as well or not.
  bool apart = false;
  // Not null: this is sent in the place of parameters, with the buffers.
  std::shared_ptr<const ModOffer> offer = nullptr;
};

// Send `mass`, [MassLength()], to `to` until it is taken, exactly once,
// whatever happens to the link; Delivered says that it was. One at a time for
// each `to`.
struct Give {
  NodeId to;
  uint64_t sequence = 0;  // 1, 2, ... for each `to`
  int64_t round = 0;
  std::shared_ptr<const FlatVector> mass;
  int64_t nonzeros = 0;  // entries of `mass` that are not 0; 0: not counted
  std::vector<double> scalars = {};  // as Push::scalars
  // Not null: `mass` is of increments, these ones.
  std::shared_ptr<const StepCodes> steps = nullptr;
  // Not null: what is encoded, in `format` by `seed`; `mass` is what it decodes
  // to.
  std::shared_ptr<const FlatVector> source = nullptr;
  MessageFormat format = {};
  uint64_t seed = 0;
  // Not null: `mass` is its difference, and it is what is sent, with `buffers`,
  // [b].
  std::shared_ptr<const ModAnswer> answer = nullptr;
  std::vector<float> buffers = {};
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
  // Neighbours are waited for until then: where their links are slow, the
  // runtime makes it longer.
  bool for_neighbours = false;
};
struct CancelTimer {
  uint64_t timer = 0;
};

// A deadline passed and the node goes on without these neighbours. The runtime
// reports it, and asks those that are linked whether they still live.
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

// Where an algorithm's actions go: the runtime, or what stands for it in a
// test.
class Actions {
 public:
  virtual ~Actions() = default;

  // Carries `action` out, as far as it can be done at once, before it returns:
  // actions happen in the order in which they are given, at the parameters of
  // that moment. Never calls Handle; events that come up meanwhile are queued.
  // It may read the algorithm's const methods, which are up to date whenever an
  // action is given.
  virtual void Do(Action action) = 0;
};

// ------------------------------------------------------------- interface ----

// The node's flat buffers, borrowed for the algorithm's life.
struct NodeVectors {
  absl::Span<float> parameters;  // [n] trained parameters
  absl::Span<float> gradient;    // [n]
  absl::Span<float> buffers;     // [b] floating-point module buffers
};

class StateFields;
struct AlgorithmContext;

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Takes one event and gives `actions` what to do. `event` is consumed. Events
  // that are out of place (a late answer, an old timer) are ignored; nothing a
  // peer sends is ever an error here.
  virtual void Handle(Event event, Actions& actions) = 0;

  // k, the number of finished iterations (= the one about to be or being done).
  // It is what nodes compare with each other; it is no count of gradients, and
  // what people are told is pace().
  virtual int64_t step() const = 0;

  // How far the model has come, in steps and rounds. Iterations that were
  // jumped over, or that the model came with, count as if they had been taken
  // here: so nodes that take the same steps count the same.
  const Pace& pace() const { return pace_; }
  int64_t gradients() const { return pace_.steps; }
  int64_t rounds() const { return pace_.rounds; }
  // In how many iterations a gradient was none. A step size that shrinks with
  // the iterations leaves them out.
  int64_t idle() const { return idle_; }
  // What pace() will be at iteration `k`, if all goes on as the knobs say.
  Pace PaceAt(int64_t k) const;

  // True while NodeVectors::parameters holds w^k, the state a neighbour may be
  // sent; false between mixing (or a local step) and StepDone.
  virtual bool parameters_settled() const = 0;

  // Moves to iteration `k` > step() at a boundary, because neighbours are there
  // already; to an earlier one where some must not be jumped over. The
  // parameters stay.
  void JumpTo(int64_t k);

  // The first step from `step` >= 0 on with an exchange. Where exchanges have a
  // period, nodes run up to it each at its own pace.
  virtual int64_t NextExchange(int64_t step) const { return step; }

  // What Delivered::taken says to `from`; 0 where no mass is given.
  virtual double MassTaken(const NodeId& /*from*/) const { return 0; }
  // The books of the edge to `peer`, in the present epoch; all 0 where no mass
  // is given.
  virtual EdgeBooks BooksWith(const NodeId& /*peer*/) const { return {}; }

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

  // All that the next step depends on and that is the algorithm's own: steps
  // and step sizes, momentum, trackers, replicas, what was given and is not
  // known to be taken, what was taken and waits for its round. Only at a
  // boundary.
  //
  // Not in it, since the node has it: NodeVectors, all three (the last gradient
  // is a part of a tracker y = z + beta g), the plan, the links, the Decisions,
  // and the tracker epoch that mass is of. Nor what neighbours must bear to
  // lose anyway: pushed models that wait for their round (as if their senders
  // had been late) and PaME's asks that are out (the step that mixes asks
  // again).
  //
  // Of two states of one run only the later may be gone on from: mass given or
  // taken after the earlier would be there twice or never. What else is done
  // with one needs a new tracker epoch.
  AlgorithmState ExportState();

  // Goes on from there: takes the place of Started, on an object of the same
  // plan and over the same NodeVectors content that was handed nothing yet, or
  // Started alone. It is then at the boundary at which the state was exported;
  // PeerUp is to follow for every link that is up.
  //
  // Gives `actions` what had been asked of the node and was not over: parcels
  // that are not known to be taken (a repeat is harmless), timers, which begin
  // anew, and a gradient that outlives its step. A node that still has these
  // under way drops them. Errors, which change nothing:
  //   INVALID_ARGUMENT  another algorithm or version; a field is missing,
  //                     unknown, of another type or length, not finite or out
  //                     of range: names it, what was found and what is allowed.
  absl::Status ImportState(const AlgorithmState& state, Actions& actions);

 protected:
  // JumpTo without the pace.
  virtual void MoveTo(int64_t k) = 0;
  // What the first `k` iterations of a run come to with the present knobs; on
  // average, where chance decides. Never falls with k.
  virtual Pace PaceOf(int64_t k) const { return {k, k}; }
  // Started: the pace begins there.
  void BeginPace(const Started& event) {
    pace_ = event.pace ? *event.pace : PaceOf(event.step);
    idle_ = event.idle;
    idle_at_ = -1;
  }
  // A mini-batch's gradient was taken into the model, if there was one.
  void CountGradient() {
    if (has_gradient_) ++pace_.steps;
  }
  void CountRound() { ++pace_.rounds; }
  // To be called first for every GradientReady.
  void NoteGradient(const GradientReady& event) {
    has_gradient_ = !event.none;
    if (event.none && std::exchange(idle_at_, step()) != step()) ++idle_;
  }
  // Whether the gradient that came last was one.
  bool has_gradient() const { return has_gradient_; }

  // Names every field of the state: state_fields.h. A base class's first.
  virtual void VisitState(StateFields& fields) = 0;
  // A state was imported: gives the actions that ImportState names.
  virtual void Resume(Actions& /*actions*/) {}

 private:
  friend std::unique_ptr<Algorithm> CreateAlgorithm(const AlgorithmInfo& info,
                                                    AlgorithmContext context,
                                                    Decisions& decisions);

  void Visit(StateFields& fields);

  std::string name_;  // in the catalogue
  Pace pace_;
  bool has_gradient_ = true;
  int64_t idle_ = 0;
  int64_t idle_at_ = -1;  // the last iteration that idle_ counts; -1: none
};

// What a new algorithm needs. `batches_per_pass` = the steps of an epoch, for
// algorithms that count in epochs; `train_rows` = this node's rows.
struct AlgorithmContext {
  NodePlan plan;
  NodeVectors vectors;
  int64_t batches_per_pass = 1;
  int64_t train_rows = 1;
  // How mass is written, where it may be lossy; outlives the algorithm. Null:
  // in fp32.
  const MassCode* mass_code = nullptr;
};

// A new state machine of the entry `info`; `decisions` must outlive it.
std::unique_ptr<Algorithm> CreateAlgorithm(const AlgorithmInfo& info,
                                           AlgorithmContext context,
                                           Decisions& decisions);

// AlgorithmInfo::create of the class `A`, whose constructor takes a context
// and, where it leaves something to chance, the decisions.
template <typename A>
std::unique_ptr<Algorithm> Create(AlgorithmContext context,
                                  Decisions& decisions) {
  if constexpr (std::is_constructible_v<A, AlgorithmContext, Decisions&>) {
    return std::make_unique<A>(std::move(context), decisions);
  } else {
    return std::make_unique<A>(std::move(context));
  }
}

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_ALGORITHM_H_
