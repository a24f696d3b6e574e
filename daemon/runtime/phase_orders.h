// Orders to train, to pause and to stop, as a person gives them; and a node
// that takes no part in its plan for now: it is no member, since it only
// watches, drains, or is not selected. It does not train then; where it did, or
// was ordered to, it goes on once it is a member.
//
// Meanwhile it waits in phase idle, or paused if it has a model. Its neighbours
// see that, and wait for it no longer.
//
// Loop only.
#ifndef DFL_RUNTIME_PHASE_ORDERS_H_
#define DFL_RUNTIME_PHASE_ORDERS_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/first_model.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/resumption.h"

namespace dfl::runtime {

class PhaseOrders {
 public:
  // All must outlive it.
  PhaseOrders(OwnState& own, const Evaluations& evaluations, Joining& joining,
              AlgorithmLives& lives, FirstModel& first_model,
              Resumption& resumption)
      : own_(own),
        evaluations_(evaluations),
        joining_(joining),
        lives_(lives),
        first_model_(first_model),
        resumption_(resumption) {}

  // As Node's.
  absl::Status Start();
  absl::Status Pause();
  absl::Status Resume();
  absl::Status Stop();

  // As Node's.
  void Rest(std::string why);
  void EndRest();

  // A plan may be new, or its members. Away from a boundary a node that trains
  // trains on.
  void Look();

 private:
  static constexpr char kWhy[] =
      "takes no part in the plan for now: it watches, drains, or is none of "
      "its participants";

  // Whether an order to train, or not to, is remembered and is not for the
  // phase: the node takes no part and waits.
  bool KeptForLater(bool train);
  void Wait(ports::Phase phase);
  absl::Status CannotTrain() const;

  OwnState& own_;
  const Evaluations& evaluations_;
  Joining& joining_;
  AlgorithmLives& lives_;
  FirstModel& first_model_;
  Resumption& resumption_;
  bool waits_ = false;  // it is to train once it takes part
  bool rests_ = false;  // paused by Rest, and by nobody since
};

inline void PhaseOrders::Look() {
  if (!own_.run.has_plan()) return;
  if (own_.run.node().takes_part) {
    if (std::exchange(waits_, false)) (void)Start();
    return;
  }
  if (own_.phases.Is(ports::Phase::kJoining)) {
    joining_.End();
    Wait(ports::Phase::kIdle);
  } else if (own_.phases.Running() && own_.boundary.here()) {
    joining_.End();
    Wait(ports::Phase::kPaused);
  }
}

inline void PhaseOrders::Wait(ports::Phase phase) {
  waits_ = true;
  own_.phases.Want(ports::Phase::kIdle);
  own_.phases.Set(phase, kWhy);
}

inline bool PhaseOrders::KeptForLater(bool train) {
  const bool away = own_.run.has_plan() && !own_.run.node().takes_part &&
                    (own_.phases.Is(ports::Phase::kIdle) ||
                     own_.phases.Is(ports::Phase::kPaused));
  if (!away) return false;
  waits_ = train;
  if (train) own_.phases.Set(own_.phases.now(), kWhy);
  return true;
}

inline absl::Status PhaseOrders::Start() {
  if (KeptForLater(true)) return absl::OkStatus();
  if (!own_.phases.Is(ports::Phase::kIdle)) return Resume();
  if (!own_.run.has_plan()) {
    return absl::FailedPreconditionError(
        "there is no run plan yet; apply one first: dflctl plan apply FILE");
  }
  if (first_model_.Unbound()) return CannotTrain();
  if (!own_.model.initialised()) (void)resumption_.TakeUp();
  if (own_.algorithm.get()) {  // of a checkpoint
    resumption_.Begin();
  } else if (own_.model.initialised()) {  // an imported model
    lives_.Restart(0);
    first_model_.Train("started from the imported model");
  } else {
    first_model_.Look();
  }
  return absl::OkStatus();
}

inline absl::Status PhaseOrders::CannotTrain() const {
  return absl::FailedPreconditionError(
      absl::StrCat("the model cannot be trained here: ", own_.phases.reason()));
}

inline void PhaseOrders::Rest(std::string why) {
  if (!own_.phases.Running()) return;
  rests_ = true;
  own_.phases.WantRest(std::move(why));
  own_.boundary.Schedule();  // it may wait at one for a neighbour's model
}

inline void PhaseOrders::EndRest() {
  if (rests_) (void)Resume();
}

inline absl::Status PhaseOrders::Pause() {
  const bool rested = std::exchange(rests_, false);
  if (KeptForLater(false)) return absl::OkStatus();
  if (rested && own_.phases.Is(ports::Phase::kPaused)) {
    own_.phases.Set(ports::Phase::kPaused, Phases::kByHand);
    return absl::OkStatus();
  }
  if (!own_.phases.Running()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the node is ", ports::PhaseName(own_.phases.now()),
                     "; only a training node can be paused"));
  }
  own_.phases.Want(ports::Phase::kPaused);
  own_.boundary.Schedule();  // it may wait at one for a neighbour's model
  return absl::OkStatus();
}

inline absl::Status PhaseOrders::Resume() {
  rests_ = false;
  if (KeptForLater(true)) return absl::OkStatus();
  if (own_.phases.Running() || own_.phases.Is(ports::Phase::kJoining)) {
    if (!own_.phases.failing()) own_.phases.Want(ports::Phase::kIdle);
    return absl::OkStatus();
  }
  if (own_.phases.Is(ports::Phase::kIdle)) {
    return absl::FailedPreconditionError(
        "nothing to resume; start the run first: dflctl train start");
  }
  if (first_model_.Unbound()) return CannotTrain();
  if (own_.diverged) {
    return absl::FailedPreconditionError(
        "the model has diverged; import another one (dflctl model import) or "
        "begin a new run (dflctl plan apply --new-run)");
  }
  if (!own_.model.initialised()) {
    first_model_.Look();
    return absl::OkStatus();
  }
  if (const std::optional<std::string> why = evaluations_.StopRule()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the stop rule is met (", *why,
                     "); raise that limit in the plan first, e.g. dflctl set "
                     "stop.steps=N"));
  }
  if (resumption_.awaits()) {  // a restored checkpoint
    resumption_.Begin();
    return absl::OkStatus();
  }
  if (!own_.algorithm.get()) lives_.Restart(0);  // an imported model
  first_model_.Train("resumed");
  return absl::OkStatus();
}

inline absl::Status PhaseOrders::Stop() {
  waits_ = false;
  rests_ = false;
  switch (own_.phases.now()) {
    case ports::Phase::kIdle:
      return absl::FailedPreconditionError("nothing is running");
    case ports::Phase::kStopped:
      return absl::OkStatus();
    case ports::Phase::kTraining:
    case ports::Phase::kDegraded:
      own_.phases.Want(ports::Phase::kStopped);
      own_.boundary.Schedule();
      return absl::OkStatus();
    default:
      joining_.End();
      own_.phases.Set(ports::Phase::kStopped, "stopped by hand");
      return absl::OkStatus();
  }
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PHASE_ORDERS_H_
