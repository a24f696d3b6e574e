// The node: events in, port calls out. The same class runs in dfld and, on
// simulated ports, in tests and the simulator.
//
// It wires parts that own their state (README.md lists them), takes orders, and
// visits the boundary between two steps, where may be done what a step must not
// see: adopt a plan, jump to a later round, pause, stop, evaluate.
//
//   idle --Start--> joining --> training <--> paused
//                                  |  \--> degraded (training fails; it mixes
//                                  |        and answers on, and tries again)
//                                  +--> finished (stop rule)
//                                  +--> stopped (by hand)
//                                  +--> failed (training failed for good)
//
// In every phase with a model it answers asks. Loop only: construct, call and
// destroy it on its loop.
#ifndef DFL_RUNTIME_NODE_H_
#define DFL_RUNTIME_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/algorithm_driver.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/checkpointing.h"
#include "daemon/runtime/contracts/contract_pulls.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/first_model.h"
#include "daemon/runtime/guards/silence.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/jumps.h"
#include "daemon/runtime/links/frame_router.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/links/offences.h"
#include "daemon/runtime/neighbourhood.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/patience.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/phase_orders.h"
#include "daemon/runtime/plan_adoption.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/restoration.h"
#include "daemon/runtime/resumption.h"
#include "daemon/runtime/status.h"
#include "daemon/runtime/timing.h"
#include "daemon/runtime/together.h"
#include "daemon/runtime/training.h"
#include "daemon/runtime/transfers/snapshot.h"
#include "daemon/runtime/transfers/transfers.h"

namespace dfl::runtime {

struct NodeOptions {
  NodeId self;
  uint64_t incarnation = 1;  // never 0
  TransfersOptions transfers;
  JoiningOptions joining;
  OffenceOptions offences;  // of the links that it stands on
  CheckpointOptions checkpoints;
  Forge forge;
  // Null: nobody measures. It outlives the node.
  TimingSink* timing = nullptr;
  // Between two tries after training failed.
  absl::Duration degraded_retry = absl::Seconds(1);
};

class Node : public LinkObserver,
             public FrameReceiver<ports::StateFrame>,
             private Actor,
             private Silence::Listener {
 public:
  // All must outlive it. What happens to links, its frames and those that
  // asks(), pushes() and models() receive must be handed on: see LinkedNode.
  Node(NodeOptions options, ports::Loop& loop, Links& links,
       ports::Worker& worker, ports::EventSink& events);

  // Takes the plan, derived for this node, over at the next boundary (at once
  // when not training). `trainer` is given when the model or its data are new
  // to this node, which starts a new run; null keeps the present one.
  // Errors: FAILED_PRECONDITION without any trainer, unless the node takes no
  // part in the plan.
  absl::Status SetPlan(core::DerivedPlan plan,
                       std::unique_ptr<ports::Trainer> trainer) {
    absl::Status status = plans_.Set(std::move(plan), std::move(trainer));
    orders_.Look();
    together_.Look();
    return status;
  }

  // The plan that was given last, derived for other members: theirs have
  // changed, and nothing that its document says. Taken over like SetPlan's, but
  // nobody is told of another plan.
  // Errors: as SetPlan.
  absl::Status FollowView(core::DerivedPlan plan) {
    absl::Status status = plans_.FollowView(std::move(plan));
    orders_.Look();
    together_.Look();
    return status;
  }

  // The present model on other rows of this node: `trainer` takes the place of
  // the present one at the next boundary at which no gradient is under way (at
  // once when not training). Model, algorithm, steps and rounds stay; epochs
  // count on, by the new rows.
  // Errors: FAILED_PRECONDITION without a trainer; INVALID_ARGUMENT when
  // lengths or contract of the model are other ones. Nothing changes.
  absl::Status RenewTrainer(std::unique_ptr<ports::Trainer> trainer) {
    return plans_.Renew(std::move(trainer));
  }

  // Orders. One to start or resume that comes while this node takes no part in
  // its plan is carried out once it does.
  // Errors: FAILED_PRECONDITION names the phase and what is possible.
  // Start: from idle; goes on from paused, stopped, finished. Rest: pauses for
  // this reason, until an order or EndRest; nothing where it does not train.
  absl::Status Start() { return orders_.Start(); }
  absl::Status Pause() { return orders_.Pause(); }
  absl::Status Resume() { return orders_.Resume(); }
  absl::Status Stop() { return orders_.Stop(); }
  void Rest(std::string why) { orders_.Rest(std::move(why)); }
  void EndRest() { orders_.EndRest(); }

  // After a restart, once the plan is in force and before Start: goes on from a
  // checkpoint, if there is one, in `phase`: kIdle, kPaused or kStopped. Start
  // then trains from there. Returns whether there was one.
  bool TakeUpCheckpoint(ports::Phase phase);
  // As Checkpointing's.
  void SaveCheckpoint(Checkpointing::SaveDone done) {
    checkpointing_.Save(std::move(done));
  }
  void Suspend(std::function<void(absl::Status)> done) {
    checkpointing_.Suspend(std::move(done));
  }
  // As Restoration's.
  absl::StatusOr<RestoreTarget> MayRestore() const {
    return restoration_.MayRestore();
  }
  void Restore(std::shared_ptr<const RestoreOrder> order,
               std::function<void(absl::Status)> done) {
    restoration_.Restore(std::move(order), std::move(done));
  }

  // Calls `done` once with a copy of the model, at a boundary.
  // Errors: FAILED_PRECONDITION when there is no model yet.
  void CopyModel(std::function<void(absl::StatusOr<SnapshotPtr>)> done);

  // Replaces the model, or parts of it, at a boundary. Before Start it is what
  // the run starts from; the rest of parts is then the plan's seeded start.
  // `done` is called once.
  // Errors: INVALID_ARGUMENT for other lengths; FAILED_PRECONDITION without a
  // plan.
  void ReplaceModel(std::shared_ptr<const Snapshot> model,
                    std::function<void(absl::Status)> done,
                    ModelParts parts = {}) {
    first_model_.Replace(std::move(model), std::move(done), std::move(parts));
  }

  // The links it was given: addresses to dial.
  Links& links() { return links_; }

  // Its receivers of frames, but for itself.
  Transfers& models() { return exchange_.transfers(); }
  AskExchange& asks() { return exchange_.asks(); }
  PushExchange& pushes() { return exchange_.pushes(); }
  ContractPulls& contracts() { return contracts_; }

  // Is told of members that are not linked.
  MassExchange& mass() { return exchange_.mass(); }

  // Who is told of a peer that may know other members.
  void SetOtherView(std::function<void(const NodeId&)> other_view) {
    exchange_.SetOtherView(std::move(other_view));
  }

  // Counts and reports a frame that another receiver refused.
  void NoteBadMessage(const NodeId& from, const std::string& text) {
    exchange_.rejections().Note(from, {ports::RefuseReason::kBadMessage, text});
  }

  // A frame of `from` has come; it is handed on next.
  void OnSpeech(const NodeId& from) { silence_.Heard(from); }

  // LinkObserver
  void OnPeerUp(const NodeId& peer, bool restarted) override;
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override;
  void OnPeerWritable(const NodeId& peer) override;
  void OnAddressFailed(const std::string& address) override;

  // FrameReceiver
  void OnFrame(const NodeId& peer, ports::StateFrame frame) override;

  NodeStatus Status() const;
  ports::Phase phase() const { return own_.phases.now(); }

  // The plan that waits, or else the one in force; null: none.
  const core::RunPlan* plan() const {
    return plans_.pending() ? plans_.pending() : own_.run.plan_or_null();
  }
  // The plan in force, and its trainer; null: none.
  const core::RunPlan* plan_in_force() const { return own_.run.plan_or_null(); }
  ports::Trainer* trainer() { return training_.learner().trainer(); }
  const ports::ModelInfo* model() const {
    const ports::Trainer* trainer = training_.learner().trainer();
    return trainer ? &trainer->model() : nullptr;
  }

  int64_t models_received() const { return peers_.models_received(); }

  // The trained parameters and the module's buffers, for simulator and tests,
  // on the loop.
  absl::Span<const float> parameters() const { return own_.model.parameters(); }
  absl::Span<const float> buffers() const { return own_.model.buffers(); }
  // For tests of its bounds, and of what it conserves (null before Start).
  const Transfers& transfers() const { return exchange_.transfers(); }
  const core::Algorithm* algorithm() const { return own_.algorithm.get(); }
  const Parcels& parcels() const { return exchange_.mass().parcels(); }

 private:
  // Actor
  void Do(const core::ComputeGradient& a) override { training_.Do(a); }
  void Do(const core::Predict& a) override { training_.Do(a); }
  void Do(const core::StepDone& a) override {
    jumps_.OnRound();
    training_.Do(a);
  }
  void Do(const core::Ask& a) override { exchange_.asks().Do(a); }
  void Do(const core::CancelAsk& a) override { exchange_.asks().Do(a); }
  void Do(const core::Answer& a) override { exchange_.asks().Do(a); }
  void Do(const core::Missed& a) override;
  void Do(const core::Push& a) override;
  void Do(const core::Skip& a) override { exchange_.pushes().Do(a); }
  void Do(const core::Give& a) override;
  void OnHandled() override { exchange_.asks().Serve(); }
  absl::Duration Patience(absl::Duration deadline) const override {
    return PatienceWith(own_.run, links_, deadline);
  }

  // Silence::Listener
  void OnSilent(const NodeId& peer, bool unanswered) override;
  void OnHeard(const NodeId& peer) override { presence_.OnHeard(peer); }
  void Probe(const NodeId& peer) override { presence_.Probe(peer); }

  // Has to acknowledge what it is sent, or no round waits for it.
  void Expect(const NodeId& peer);
  void VisitBoundary();

  const NodeOptions options_;
  ports::Loop& loop_;
  Links& links_;
  OwnState own_;
  PeerTable peers_;
  Presence presence_;
  Silence silence_;
  Exchange exchange_;
  Training training_;
  Evaluations evaluations_;
  Jumps jumps_;
  Joining joining_;
  AlgorithmLives lives_;
  FirstModel first_model_;
  Checkpointing checkpointing_;
  Resumption resumption_;
  Restoration restoration_;
  PhaseOrders orders_;
  PlanAdoption plans_;
  ContractPulls contracts_;
  Neighbourhood neighbourhood_;
  Together together_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_NODE_H_
