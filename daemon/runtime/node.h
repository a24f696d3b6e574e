// The node: events in, port calls out. The same class runs in dfld and, on
// simulated ports, in tests and the simulator.
//
// It wires parts that own their state (README.md lists them) and holds the
// phases. At boundaries it does what may only be done there: adopt a plan, jump
// to a later round, pause, stop, evaluate, hand out a snapshot.
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
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/codec/mass_codec.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/algorithm_driver.h"
#include "daemon/runtime/ask_book.h"
#include "daemon/runtime/boundary.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/flat_model.h"
#include "daemon/runtime/frame_router.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/learner_driver.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/parcels.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/progress.h"
#include "daemon/runtime/pushes.h"
#include "daemon/runtime/run_in_force.h"
#include "daemon/runtime/snapshot.h"
#include "daemon/runtime/status.h"
#include "daemon/runtime/transfers.h"

namespace dfl::runtime {

struct NodeOptions {
  NodeId self;
  uint64_t incarnation = 1;  // never 0
  TransfersOptions transfers;
  JoiningOptions joining;
  // Between two tries after training failed.
  absl::Duration degraded_retry = absl::Seconds(1);
};

class Node : public LinkObserver,
             public FrameReceivers<ports::StateFrame, ports::AskFrame,
                                   ports::RefuseFrame, ports::CancelAskFrame,
                                   ports::SkipFrame>,
             private Transfers::Listener,
             private LearnerDriver::Listener,
             private Joining::Listener,
             private Actor {
 public:
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
    return pending_ ? pending_->plan.get() : run_.plan_or_null();
  }
  const ports::ModelInfo* model() const {
    return learner_.trainer() ? &learner_.trainer()->model() : nullptr;
  }

  int64_t models_received() const { return peers_.models_received(); }

  // The trained parameters and the module's buffers, for simulator and tests, on
  // the loop.
  absl::Span<const float> parameters() const { return model_.parameters(); }
  absl::Span<const float> buffers() const { return model_.buffers(); }
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
  // Transfers::Listener
  Admission Admit(const NodeId& from, const ports::TransferBegin& begin,
                  const codec::EncodedHeader* header) override;
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

  // LearnerDriver::Listener
  int64_t BatchSize() const override { return run_.plan().batch_size; }
  bool Degraded() const override { return phase_ == ports::Phase::kDegraded; }
  void OnLearnerFree() override;
  void OnGradient(absl::StatusOr<ports::GradientResult> result) override;
  void OnStoodStill() override { Handle(core::GradientReady{}); }
  void OnPredictions(absl::StatusOr<ports::Predictions> result) override;

  // Joining::Listener
  bool Starting() const override { return phase_ == ports::Phase::kJoining; }
  bool MayReplaceModel() const override {
    return Running() && boundary_.here();
  }
  int64_t OwnStep() const override { return algorithm_.step(); }
  void OnNobodyToJoin() override;
  void OnWaitEnds() override { boundary_.Schedule(); }

  // Actor
  void Do(const core::ComputeGradient& action) override;
  void Do(const core::Predict& action) override;
  void Do(const core::Ask& action) override;
  void Do(const core::CancelAsk& action) override;
  void Do(const core::Answer& action) override;
  void Do(const core::Push& action) override;
  void Do(const core::Give& action) override;
  void Do(const core::Skip& action) override;
  void Do(const core::Missed& action) override;
  void Do(const core::StepDone& action) override;
  void OnHandled() override;

  // What this node says of itself.
  ports::StateFrame MyState() const;
  void TellState();

  // Why a transfer that carries a model or mass is not taken, whatever the
  // algorithm thinks of it.
  std::optional<Refusal> Misplaced(const NodeId& from,
                                   const ports::TransferBegin& begin,
                                   const codec::EncodedHeader* header) const;
  Admission AdmitPush(const NodeId& from);
  Admission AdmitMass(const NodeId& from, const ports::TransferBegin& begin);
  // Counts and reports it.
  Refusal Reject(const NodeId& from, Refusal refusal);

  // Mass. The present algorithm gives some.
  bool GivesMass() const;
  // It announces steps (core/vector/step_codes.h) where they have no business.
  std::optional<Refusal> MisplacedSteps(
      const ports::TransferBegin& begin,
      const codec::EncodedHeader* header) const;
  // Parcels may travel to `peer`, whatever its phase.
  bool MayGive(const NodeId& peer) const;
  // Our trackers begin anew, and so shall everybody's.
  void EnterEpoch(uint64_t epoch);
  void EnterNextEpoch() { EnterEpoch(parcels_.epoch() + 1); }
  // Enters the epoch of `peer` when it is a higher one.
  void FollowEpoch(const NodeId& peer, uint64_t epoch);
  // Tells the algorithm when it has changed whether `peer` takes part.
  void RefreshActive(const NodeId& peer);
  void RefreshAll();

  // Phases.
  void SetPhase(ports::Phase phase, const std::string& reason);
  bool Running() const {
    return phase_ == ports::Phase::kTraining ||
           phase_ == ports::Phase::kDegraded;
  }
  // The parameters hold w^k.
  bool Settled() const;
  void BeginJoin();
  void BeginTraining(const std::string& reason);
  // Takes the model of `from` over and begins to train.
  void TakeState(const NodeId& from, int64_t step,
                 const codec::DecodedMessage& message);
  void Finish(const std::string& why);

  // Boundaries.
  void OnBoundary();
  // Pauses or stops, if that is wanted. Returns whether it was.
  bool ObeyWanted();
  // Evaluates, or finishes, if that is due. Returns whether it is.
  bool EvaluateOrFinish();
  void LeaveBoundary();
  void AdoptPending();
  void BeginRun(std::unique_ptr<ports::Trainer> trainer);
  void InstallTrainer(std::unique_ptr<ports::Trainer> trainer);
  // The round to jump to from this boundary; at most where the run stops.
  int64_t FurthestRound() const;
  // Where the topology varies: takes over neighbours and weights of the round
  // that begins, and the pushes of this graph that came early.
  void FollowTopology();
  bool IsOfLaterGraph(int64_t round) const {
    return algorithm_.get() && run_.IsOfLaterGraph(round, algorithm_.step());
  }
  bool StopRuleMet(std::string* why) const;
  bool EvaluationDue() const;
  void Evaluate(int64_t rows, std::function<void()> then);

  // The algorithm.
  void RestartAlgorithm(int64_t step);
  void StopAlgorithm();
  void MakeAlgorithm(int64_t step);
  void Handle(core::Event event) { algorithm_.Handle(std::move(event)); }
  void ReportLearnerFailed(const absl::Status& status);

  // Models out and in.
  void ServeAsks();
  void MissAnswer(const NodeId& from, uint64_t ask);
  SnapshotPtr TakeSnapshot();
  // Of the parameters as they are now, or of `values` when not empty.
  SnapshotPtr TakePushSnapshot(absl::Span<const float> values);
  Outgoing MakeOutgoing(const NodeId& to, ports::TransferKind kind,
                        core::MessageFormat format, double rate,
                        SnapshotPtr snapshot);
  void TakePush(const NodeId& from, core::RemoteModel model);

  const NodeOptions options_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  Links& links_;
  RunInForce run_;
  PeerTable peers_;
  AskBook asks_;
  Transfers transfers_;
  Pushes pushes_;
  EarlyPushes early_;
  Parcels parcels_;
  codec::MassCodec mass_codec_;  // of the plan
  // Before the learner and the algorithm, which hold views of it.
  FlatModel model_;
  LearnerDriver learner_;
  AlgorithmDriver algorithm_;
  Boundary boundary_;
  Joining joining_;
  std::optional<PendingPlan> pending_;

  ports::Phase phase_ = ports::Phase::kIdle;
  std::string phase_reason_;
  // kPaused or kStopped: to become so at the next boundary; else kIdle.
  ports::Phase wanted_ = ports::Phase::kIdle;
  std::string last_error_;
  Progress progress_;
  Evaluations evaluations_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_NODE_H_
