// The node: events in, port calls out. The same class runs in dfld and, on
// simulated ports, in tests and the simulator.
//
// It owns the flat vectors and the algorithm, carries out what the algorithm
// asks for, and does at boundaries what may only be done there: adopt a plan,
// jump to a later round, pause, stop, evaluate, hand out a snapshot.
//
//   idle --Start--> joining --> training <--> paused
//                                  |  \--> degraded (training fails; it mixes
//                                  |        and answers on, and tries again)
//                                  +--> finished (stop rule) / stopped (by hand)
//
// In every phase with a model it answers asks. Loop only: construct, call and
// destroy it on its loop.
#ifndef DFL_RUNTIME_NODE_H_
#define DFL_RUNTIME_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/ids.h"
#include "daemon/codec/edge_reference.h"
#include "daemon/codec/mass_codec.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/frame_router.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/parcels.h"
#include "daemon/runtime/progress.h"
#include "daemon/runtime/snapshot.h"
#include "daemon/runtime/status.h"
#include "daemon/runtime/transfers.h"

namespace dfl::runtime {

struct NodeOptions {
  NodeId self;
  uint64_t incarnation = 1;  // never 0
  TransfersOptions transfers;
  // How long a starting node looks for a neighbour that is ahead.
  absl::Duration join_within = absl::Seconds(2);
  // A neighbour's model for a joiner may take long, but must keep moving.
  absl::Duration join_stall = absl::Seconds(10);
  // Between two asks of a neighbour that is ahead and did not give its model.
  absl::Duration join_retry = absl::Milliseconds(500);
  // Between two tries after training failed.
  absl::Duration degraded_retry = absl::Seconds(1);
};

class Node : public LinkObserver,
             public FrameReceivers<ports::StateFrame, ports::AskFrame,
                                   ports::RefuseFrame, ports::CancelAskFrame,
                                   ports::SkipFrame>,
             private Transfers::Listener {
 public:
  // Pushes of graphs that are still to come that are kept of each neighbour.
  static constexpr size_t kMostEarly = 2;

  // All must outlive it. What happens to links, the frames above and those that
  // models() receives must be handed on to it: see LinkedNode.
  Node(NodeOptions options, ports::Loop& loop, Links& links,
       ports::Worker& worker, ports::EventSink& events);
  ~Node() override;

  // Takes the plan, derived for this node, over at the next boundary (at once
  // when not training). `trainer` is given when the model or its data are new to
  // this node, which starts a new run; null keeps the present one.
  // Errors: FAILED_PRECONDITION without a trainer for the first plan.
  absl::Status SetPlan(core::DerivedPlan plan,
                       std::unique_ptr<ports::Trainer> trainer);

  // Orders. Errors: FAILED_PRECONDITION names the phase and what is possible.
  absl::Status Start();  // from idle; goes on from paused, stopped, finished
  absl::Status Pause();
  absl::Status Resume();
  absl::Status Stop();

  // Calls `done` once with a copy of the model, at a boundary.
  // Errors: FAILED_PRECONDITION when there is no model yet.
  void CopyModel(std::function<void(absl::StatusOr<SnapshotPtr>)> done);

  // Replaces the model at a boundary. Before Start it is what the run starts
  // from. `done` is called once.
  // Errors: INVALID_ARGUMENT for other lengths; FAILED_PRECONDITION without a
  // plan.
  void ReplaceModel(std::shared_ptr<const Snapshot> model,
                    std::function<void(absl::Status)> done);

  // The links it was given: addresses to dial.
  Links& links() { return links_; }

  // Receives the frames that models travel in.
  Transfers& models() { return transfers_; }

  // LinkObserver
  void OnPeerUp(const NodeId& peer, bool restarted) override;
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override;
  void OnPeerWritable(const NodeId& peer) override;
  void OnAddressFailed(const std::string& address) override;

  // FrameReceivers
  void OnFrame(const NodeId& peer, ports::StateFrame frame) override;
  void OnFrame(const NodeId& peer, ports::AskFrame ask) override;
  void OnFrame(const NodeId& peer, ports::RefuseFrame refuse) override;
  void OnFrame(const NodeId& peer, ports::CancelAskFrame dropped) override;
  void OnFrame(const NodeId& peer, ports::SkipFrame skip) override;

  NodeStatus Status() const;
  ports::Phase phase() const { return phase_; }

  // The plan in force or waiting; null: none.
  const core::RunPlan* plan() const {
    return pending_ ? pending_->plan.get() : plan_.get();
  }
  const ports::ModelInfo* model() const {
    return trainer_ ? &trainer_->model() : nullptr;
  }

  int64_t models_received() const { return models_received_; }

  // The trained parameters and the module's buffers, for simulator and tests, on
  // the loop.
  absl::Span<const float> parameters() const { return parameters_; }
  absl::Span<const float> buffers() const { return buffers_; }
  // For tests of its bounds.
  const Transfers& transfers() const { return transfers_; }
  // For tests of what it conserves; null before Start.
  const core::Algorithm* algorithm() const { return algorithm_.get(); }
  const Parcels& parcels() const { return parcels_; }

 private:
  struct PendingPlan {
    std::shared_ptr<const core::RunPlan> plan;
    core::NodePlan node;
    std::unique_ptr<ports::Trainer> trainer;
  };
  // What a peer last said of itself, and what happened with it.
  struct PeerState {
    ports::StateFrame state;
    bool known = false;   // `state` came
    bool agrees = false;  // `state` is of our run, model and algorithm
    bool active = false;  // as the algorithm was last told
    int64_t models_sent = 0;
    int64_t models_received = 0;
    int64_t missed = 0;
    int64_t rejected = 0;
    uint64_t push = 0;                           // the push under way; 0: none
    std::optional<Outgoing> next_push;           // and this one comes after it
    std::optional<Outgoing> next_apart;          // before that (Push::apart)
    std::shared_ptr<codec::EdgeReference> sent;  // top-k
  };
  struct PendingAsk {
    NodeId from;
    ports::AskFrame ask;
  };
  // Looking for a neighbour to start from.
  struct Join {
    absl::Time since;
    ports::TimerId timer = 0;
    uint64_t ask = 0;  // the ask that is out; 0: none
    NodeId asked;
    std::map<NodeId, int64_t> failures;  // asks that gave nothing
    absl::Time retry_at;                 // no second ask of one before
  };

  // Transfers::Listener
  bool Admit(const NodeId& from, const ports::TransferBegin& begin,
             int64_t* parameters, int64_t* buffers,
             Transfers::Refusal* refusal) override;
  void OnModel(const NodeId& from, ports::TransferKind kind, uint64_t ask,
               int64_t step, std::vector<double> scalars, absl::Duration age,
               std::unique_ptr<codec::DecodedMessage> message) override;
  double OnMass(const NodeId& from, uint64_t tracker_epoch, uint64_t sequence,
                int64_t round, std::vector<double> scalars,
                std::unique_ptr<codec::DecodedMessage> message) override;
  void OnTransferLost(const NodeId& from, ports::TransferKind kind,
                      uint64_t ask, const std::string& why) override;
  void OnBadMessage(const NodeId& from, ports::RefuseReason reason,
                    const std::string& text) override;

  // Frames of peers.
  // Why `peer` may not mix with us; nullopt: it may.
  std::optional<Transfers::Refusal> Mismatch(const NodeId& peer,
                                             bool same_algorithm) const;
  std::optional<Transfers::Refusal> Mismatch(const PeerState& peer,
                                             bool same_algorithm) const;
  // Its state, our plan or our model is new.
  void Compare(PeerState& peer) const;
  ports::StateFrame MyState() const;
  void TellState();
  void HearStep(const NodeId& peer, int64_t step);
  bool IsNeighbour(const NodeId& peer) const;
  // A neighbour; where the topology varies any member, since what it pushes may
  // be of a round in which it is one.
  bool MayPush(const NodeId& peer) const;
  bool IsMember(const NodeId& peer) const;

  bool AdmitMass(const NodeId& from, const ports::TransferBegin& begin,
                 int64_t* parameters, int64_t* buffers,
                 Transfers::Refusal* refusal);
  // Mass. The present algorithm gives some.
  bool GivesMass() const;
  // It announces steps (core/vector/step_codes.h) where they have no business.
  std::optional<Transfers::Refusal> MisplacedSteps(
      const ports::TransferBegin& begin) const;
  // Parcels may travel to `peer`, whatever its phase.
  bool MayGive(const NodeId& peer) const;
  // Our trackers begin anew, and so shall everybody's.
  void EnterEpoch(uint64_t epoch);
  void EnterNextEpoch() { EnterEpoch(parcels_.epoch() + 1); }
  // Enters the epoch of `peer` when it is a higher one.
  void FollowEpoch(const NodeId& peer, uint64_t epoch);
  // A peer takes part in rounds: linked, in our run, and training.
  bool Active(const NodeId& peer) const;
  // Tells the algorithm when Active(peer) has changed.
  void RefreshActive(const NodeId& peer);
  bool HasSentThisRound(const NodeId& peer) const;
  bool AwaitsStart();

  // Phases.
  void SetPhase(ports::Phase phase, const std::string& reason);
  bool Running() const {
    return phase_ == ports::Phase::kTraining ||
           phase_ == ports::Phase::kDegraded;
  }
  bool Settled() const;
  double SpectralGap() const;

  // Joining.
  void BeginJoin();
  void ContinueJoin();
  // ContinueJoin() at `when`, in place of what the join's timer was set to.
  void ContinueJoinAt(absl::Time when);
  void AskForState(const NodeId& peer);
  void WatchJoin(uint64_t ask);
  void JoinFailed(NodeId peer);
  void TakeState(const NodeId& from, int64_t step,
                 const codec::DecodedMessage& message);
  void StartFresh();
  // Whom it knows counts as heard of.
  void NoteHeard();
  void BeginTraining(const std::string& reason);
  void EndJoin();

  // Steps.
  void ScheduleBoundary();
  void OnBoundary();
  // The parameters are in use from here on until at_boundary_ is set again.
  void LeaveBoundary();
  void AdoptPending();
  void InstallTrainer(std::unique_ptr<ports::Trainer> trainer);
  // From here on the learner has vectors of its own (compute_parameters_).
  void ComputeOnCopy();
  bool computes_on_copy() const { return !compute_parameters_.empty(); }
  // The model, or `at` when not empty, to the learner's vectors, and back.
  void CopyToLearner(absl::Span<const float> at = {});
  void CopyFromLearner();
  void RestartAlgorithm(int64_t step);
  void StopAlgorithm();
  int64_t FurthestRound() const;
  // Where the topology varies: takes over neighbours and weights of the round
  // that begins, and the pushes of this graph that came early.
  void FollowTopology();
  // Of a graph that comes after that of the present round.
  bool IsOfLaterGraph(int64_t round) const;
  bool StopRuleMet(std::string* why) const;
  bool EvaluationDue() const;
  void Evaluate(int64_t rows, std::function<void()> then);
  void Finish(const std::string& why);
  void ServeAsks();
  // What was put off to a boundary, on the model that it was meant for.
  void DoBoundaryWork();

  // Algorithm.
  void Handle(core::Event event);
  void Do(core::Action action);
  void Do(const core::ComputeGradient& action);
  void Do(const core::Ask& action);
  void Do(const core::CancelAsk& action);
  void Do(const core::Answer& action);
  void Do(const core::Push& action);
  void Do(const core::WakeAfter& action);
  void Do(const core::CancelTimer& action);
  void Do(const core::Missed& action);
  void Do(const core::StepDone& action);
  void Do(const core::Give& action);
  void Do(const core::Skip& action);
  void Do(const core::Predict& action);
  void OnGradient(uint64_t gradient, uint64_t epoch,
                  absl::StatusOr<ports::GradientResult> result);
  void OnPredictions(uint64_t prediction, uint64_t epoch,
                     absl::StatusOr<ports::Predictions> result);
  // What was asked for while the learner was busy.
  void DoNext();
  // Degraded: a zero gradient, after the time that one takes.
  void StandStill();
  void MissAnswer(const NodeId& from, uint64_t ask);

  // Models out.
  SnapshotPtr TakeSnapshot();
  // Of the parameters as they are now, or of `values` when not empty.
  SnapshotPtr TakePushSnapshot(absl::Span<const float> values);
  void AnswerState(const PendingAsk& asked);
  void StartPush(const NodeId& peer, Outgoing outgoing);
  void ForgetPushes();
  Outgoing MakeOutgoing(const NodeId& to, ports::TransferKind kind,
                        core::MessageFormat format, double rate,
                        SnapshotPtr snapshot);
  uint64_t EdgeSeed(const NodeId& peer, int64_t round) const;
  // Ask ids on the wire: those of one algorithm object never meet another's.
  uint64_t WireAsk(uint64_t ask) const { return (epoch_ << 32) | ask; }
  // Epoch 0 asks for a state to start from.
  static bool IsStateAsk(uint64_t wire_ask) { return (wire_ask >> 32) == 0; }

  const NodeOptions options_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  Links& links_;
  Transfers transfers_;
  Parcels parcels_;
  codec::MassCodec mass_codec_;  // of plan_

  // The plan.
  std::shared_ptr<const core::RunPlan> plan_;  // null: none yet
  core::NodePlan node_plan_;
  int64_t graph_number_ = 0;  // the graph that node_plan_ is of
  // Of plan_, computed when somebody first asks.
  mutable std::optional<double> spectral_gap_;
  std::optional<PendingPlan> pending_;

  // The model. Declared before the trainer and the algorithm, which hold views.
  FlatVector parameters_;
  FlatVector gradient_;
  FlatVector buffers_;
  // As they were when the boundary was left: a gradient changes buffers_ while
  // snapshots of w^k are still being taken.
  FlatVector boundary_buffers_;
  // What the learner is bound to when an algorithm lets the parameters move
  // during a gradient; empty: it is bound to parameters_ and buffers_.
  FlatVector compute_parameters_;
  FlatVector compute_buffers_;
  FlatVector copied_buffers_;  // as they were when the gradient began
  bool initialised_ = false;
  std::unique_ptr<ports::Trainer> trainer_;
  std::unique_ptr<core::SeededDecisions> decisions_;
  std::unique_ptr<core::Algorithm> algorithm_;
  std::weak_ptr<const Snapshot> snapshot_;
  int64_t snapshot_generation_ = -1;
  int64_t generation_ = 0;  // counts changes of the parameters

  // Progress.
  ports::Phase phase_ = ports::Phase::kIdle;
  std::string phase_reason_;
  std::string last_error_;
  bool at_boundary_ = true;  // parameters hold w^k and nothing is running
  bool boundary_posted_ = false;
  // Until then the first round waits for neighbours that are about to train.
  absl::Time start_until_ = absl::InfinitePast();
  ports::TimerId start_timer_ = 0;
  std::optional<ports::Evaluation> evaluation_;
  int64_t evaluated_step_ = -1;
  int64_t evaluated_rows_ = -1;    // asked for; 0: all
  int64_t gradients_ = 0;          // of this run on this node, seeds dropout
  uint64_t last_gradient_ = 0;     // or prediction, asked of the trainer
  uint64_t running_gradient_ = 0;  // under way; 0: none
  // Asked for while one of an algorithm that is gone was under way.
  std::optional<core::ComputeGradient> next_gradient_;
  std::optional<core::Predict> next_prediction_;
  bool evaluation_owed_ = false;  // it waits until no gradient is under way
  absl::Time gradient_began_;
  absl::Duration gradient_time_ = absl::Milliseconds(100);  // of the last one
  absl::Time retry_at_;  // degraded: nothing is tried before
  // kPaused or kStopped: to become so at the next boundary; else kIdle.
  ports::Phase wanted_ = ports::Phase::kIdle;
  Progress progress_;
  std::optional<Join> join_;
  // Started without having heard of everyone: a neighbour of the run that is
  // heard of for the first time and is ahead of us still gives its model; where
  // one has given us its own, only one that is more than twice as far.
  bool unconfirmed_start_ = false;
  bool joined_ = false;
  std::set<NodeId> heard_since_start_;
  // No longer active, but what they sent of this round is still to come.
  std::set<NodeId> leaving_;

  // Events that came up while one was being handled.
  std::deque<core::Event> queue_;
  bool handling_ = false;
  uint64_t epoch_ = 0;  // of the algorithm object

  // Exchange.
  std::map<NodeId, PeerState> peers_;
  std::map<uint64_t, std::set<NodeId>> asks_;  // out, by our ask id
  uint64_t last_state_ask_ = 0;
  uint64_t last_push_ = 0;
  std::map<uint64_t, ports::TimerId> timers_;  // the algorithm's
  std::vector<PendingAsk> waiting_asks_;       // for settled parameters
  // Pushes of graphs that are still to come, by sender and round; the newest
  // kMostEarly of each.
  std::map<NodeId, std::map<int64_t, core::RemoteModel>> early_;
  std::vector<std::function<void()>> at_boundary_do_;
  int64_t dense_bytes_sent_ = 0;
  int64_t models_sent_ = 0;
  int64_t models_received_ = 0;
  int64_t missed_ = 0;
  std::map<std::string, int64_t> rejected_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_NODE_H_
