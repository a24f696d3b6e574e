// Puts a checkpoint that a person brings in place of what the node has, while
// it does not train.
//
// Its neighbours know what the node exchanged since that checkpoint, and the
// node does not. After a restart the two ends compare their books. Here nobody
// would, for the links stay up; and what a neighbour last said of its books may
// be as old as the checkpoint, and agree with it. So a node that has exchanged
// mass since its start raises the tracker epoch. One that has not, as on
// another machine, goes on as after a restart.
//
// Loop only.
#ifndef DFL_RUNTIME_RESTORATION_H_
#define DFL_RUNTIME_RESTORATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/checkpointing.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/checkpoints/restore_check.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/resumption.h"
#include "daemon/runtime/training.h"
#include "daemon/runtime/transfers/snapshot.h"

namespace dfl::runtime {

// A checkpoint that a person wants the node to go on from.
struct RestoreOrder {
  Checkpoint checkpoint;
  // Steps of the other checkpoints of its run that are kept.
  std::vector<int64_t> older;
  bool other_version = false;  // as CheckRestorable has it
};

class Restoration {
 public:
  // All must outlive it.
  Restoration(OwnState& own, Checkpointing& checkpointing,
              Resumption& resumption, Evaluations& evaluations,
              Training& training, Exchange& exchange, Presence& presence,
              const Links& links)
      : own_(own),
        checkpointing_(checkpointing),
        resumption_(resumption),
        evaluations_(evaluations),
        training_(training),
        exchange_(exchange),
        presence_(presence),
        links_(links) {}

  // What a checkpoint must be of.
  // Errors: FAILED_PRECONDITION says why none can be restored now, and what
  // helps; UNAVAILABLE: the node is about to end.
  absl::StatusOr<RestoreTarget> MayRestore() const;

  // Takes `order` as soon as the learner is free. The phase stays; one in which
  // a run has ended becomes paused. `done` is told once, on the loop.
  // Errors: as MayRestore and CheckRestorable; DATA_LOSS and INVALID_ARGUMENT
  // say what of it cannot be used. The node is then as it was before.
  void Restore(std::shared_ptr<const RestoreOrder> order,
               std::function<void(absl::Status)> done);

  // Says to all that are linked how this node is, and asks how they are: what
  // they said of their books may be of another moment.
  void ProbePeers();

 private:
  // What a checkpoint takes the place of.
  struct Before {
    std::shared_ptr<const Checkpoint> whole;  // null: no algorithm was there
    SnapshotPtr model;                        // null: none was there
    int64_t gradients = 0;
    std::optional<ports::BatchPosition> position;
  };

  // Whether the phase is one to restore in.
  absl::Status CheckPhase() const;
  absl::Status RestoreNow(const RestoreOrder& order, const RestoreTarget& here);
  Before Keep();
  void PutBack(const Before& before);

  OwnState& own_;
  Checkpointing& checkpointing_;
  Resumption& resumption_;
  Evaluations& evaluations_;
  Training& training_;
  Exchange& exchange_;
  Presence& presence_;
  const Links& links_;
};

inline absl::Status Restoration::CheckPhase() const {
  if (own_.suspended) {
    return absl::UnavailableError("the daemon is about to end");
  }
  if (own_.phases.Running()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the node is ", ports::PhaseName(own_.phases.now()),
                     "; a checkpoint is restored while it does not train: "
                     "dflctl train pause"));
  }
  if (own_.phases.Is(ports::Phase::kJoining)) {
    return absl::FailedPreconditionError(
        "the node is joining, and will train then; a checkpoint is restored "
        "while it does not train: dflctl train stop");
  }
  return absl::OkStatus();
}

inline absl::StatusOr<RestoreTarget> Restoration::MayRestore() const {
  DFL_RETURN_IF_ERROR(CheckPhase());
  RestoreTarget here;
  here.node = own_.self.name();
  if (!own_.run.has_plan()) return here;
  if (checkpointing_.interval() <= absl::ZeroDuration()) {
    return CheckpointsAreOff();
  }
  const LearnerDriver& learner = training_.learner();
  if (learner.trainer() == nullptr) {
    return absl::FailedPreconditionError(
        "the node watches and does not train, so there is nothing to restore "
        "here");
  }
  if (!learner.bound().ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model cannot be trained here: ", learner.bound().message()));
  }
  const core::RunPlan& plan = own_.run.plan();
  here.run_id = plan.run_id;
  here.plan_version = plan.version;
  here.algorithm = plan.algorithm.name;
  here.contract = own_.run.contract_digest();
  here.parameters = static_cast<uint64_t>(own_.model.parameter_count());
  here.buffers = static_cast<uint64_t>(own_.model.buffer_count());
  return here;
}

inline void Restoration::Restore(std::shared_ptr<const RestoreOrder> order,
                                 std::function<void(absl::Status)> done) {
  const absl::StatusOr<RestoreTarget> here = MayRestore();
  if (!here.ok()) return done(here.status());
  // A gradient may have outlived its step.
  if (!own_.boundary.here() || training_.learner().busy()) {
    own_.boundary.PutOff([this, order = std::move(order),
                          done = std::move(done)] { Restore(order, done); });
    return;
  }
  done(RestoreNow(*order, *here));
}

inline absl::Status Restoration::RestoreNow(const RestoreOrder& order,
                                            const RestoreTarget& here) {
  const Checkpoint& restored = order.checkpoint;
  DFL_RETURN_IF_ERROR(CheckRestorable(
      restored.head,
      {restored.model->parameters.size(), restored.model->buffers.size()}, here,
      order.other_version));
  DFL_RETURN_IF_ERROR(resumption_.CheckFits(restored));
  const Before before = Keep();
  const absl::Status taken =
      resumption_.TakeFitting(restored, exchange_.mass().parcels().epoch());
  if (!taken.ok()) {
    PutBack(before);
    return taken;
  }
  resumption_.AwaitOrder(order.older);
  evaluations_.Forget();  // they were of another model
  own_.diverged = false;
  own_.phases.Want(ports::Phase::kIdle);
  const bool ended = own_.phases.Is(ports::Phase::kFinished) ||
                     own_.phases.Is(ports::Phase::kFailed);
  own_.phases.Set(ended ? ports::Phase::kPaused : own_.phases.now(),
                  absl::StrCat("restored from the checkpoint of step ",
                               restored.head.pace.steps));
  ProbePeers();
  return absl::OkStatus();
}

inline Restoration::Before Restoration::Keep() {
  Before before;
  const LearnerDriver& learner = training_.learner();
  before.gradients = learner.gradients();
  before.position = learner.trainer()->position();
  if (!own_.model.initialised()) return before;
  if (own_.algorithm.get() != nullptr) {
    before.whole = checkpointing_.Capture();
  } else {
    before.model = own_.TakeSnapshot();
  }
  return before;
}

inline void Restoration::PutBack(const Before& before) {
  if (before.whole != nullptr && resumption_.TakeFitting(*before.whole).ok()) {
    ProbePeers();
    return;
  }
  (void)training_.learner().GoTo(before.gradients, before.position);
  exchange_.mass().BeginRun();
  if (before.model == nullptr) return;
  own_.model.Take(before.model->parameters, before.model->buffers);
}

inline void Restoration::ProbePeers() {
  for (const auto& [peer, link] : links_.peers()) {
    if (link.link != 0) presence_.Probe(peer);
  }
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_RESTORATION_H_
