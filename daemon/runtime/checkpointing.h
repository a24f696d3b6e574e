// Takes checkpoints of this node at boundaries, and has them written: when one
// is due, when a person asks for one, and when the node ends.
//
// Loop only.
#ifndef DFL_RUNTIME_CHECKPOINTING_H_
#define DFL_RUNTIME_CHECKPOINTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/ports/events.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/checkpoints/checkpoint.h"
#include "daemon/runtime/checkpoints/checkpoint_clock.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

struct CheckpointOptions {
  // Null: none are taken. They outlive the node.
  CheckpointStore* store = nullptr;
  ports::Worker* worker = nullptr;
  // How long a node waits for neighbours that have started again.
  absl::Duration within = absl::Seconds(2);
  // The machine's clock, which is written down for people. Null: the loop's.
  std::function<absl::Time()> wall_clock;
};

// Why nothing is written or gone on from under a plan with no interval.
inline absl::Status CheckpointsAreOff() {
  return absl::FailedPreconditionError(
      "the plan switches checkpoints off (checkpoint.interval is 0s); switch "
      "them on first: dflctl set checkpoint.interval=30s");
}

class Checkpointing {
 public:
  using SaveDone = std::function<void(absl::StatusOr<int64_t>)>;

  // All must outlive it.
  Checkpointing(const CheckpointOptions& options, OwnState& own,
                const Exchange& exchange, const Training& training,
                ports::Loop& loop, ports::EventSink& events)
      : options_(options),
        own_(own),
        exchange_(exchange),
        training_(training),
        loop_(loop),
        events_(events) {}

  // Between two checkpoints, by the plan in force; 0: none are written.
  absl::Duration interval() const {
    return options_.store == nullptr || !own_.run.has_plan()
               ? absl::ZeroDuration()
               : own_.run.plan().checkpoint.interval;
  }
  // The node goes on from the checkpoint of `step`.
  void GoOnFrom(int64_t step) { clock_.Begin(step, loop_.Now()); }

  // At the boundary of a node that trains: has one written if one is due.
  void Visit();
  // Has one written at the next boundary, due or not; where the node stands at
  // one, of that. `done` is told once, with the iteration.
  // Errors: FAILED_PRECONDITION: there is nothing to write, says why;
  // UNAVAILABLE: the node is about to end; as the store's.
  void Save(SaveDone done);
  // Has one written at the next boundary, from which on the node stands still
  // and takes no mass: what is written is its end. `done` is told once; OK
  // where there is nothing to write.
  // Errors: as the store's.
  void Suspend(std::function<void(absl::Status)> done);

  // Why the last one is not written; "": it is.
  const std::string& error() const { return error_; }
  // Steps behind the last one that was written; 0: none was.
  int64_t written() const { return written_; }

  // The node as it is at this boundary. Only with a model and an algorithm.
  std::shared_ptr<const Checkpoint> Capture();

 private:
  bool MayWrite() const;
  bool AtBoundary() const {
    return own_.boundary.here() &&
           (!own_.model.initialised() || own_.Settled());
  }
  // Why there is nothing to save.
  absl::Status MaySave() const;
  // Writes for those that wait for it, now or at the next boundary.
  void TrySave();
  void Write(std::function<void(absl::Status)> done);
  void OnWritten(int64_t steps, const absl::Status& status);

  const CheckpointOptions options_;
  OwnState& own_;
  const Exchange& exchange_;
  const Training& training_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  CheckpointClock clock_;
  bool writing_ = false;
  std::vector<SaveDone> saves_;  // wait for the next one
  bool put_off_ = false;         // TrySave, to a boundary
  std::string error_;
  int64_t written_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

inline std::shared_ptr<const Checkpoint> Checkpointing::Capture() {
  auto taken = std::make_shared<Checkpoint>();
  CheckpointHead& head = taken->head;
  const core::RunPlan& plan = own_.run.plan();
  const LearnerDriver& learner = training_.learner();
  head.node = own_.self.name();
  head.run_id = plan.run_id;
  head.plan_version = plan.version;
  head.contract = own_.run.contract_digest();
  head.algorithm = plan.algorithm.name;
  head.step = own_.algorithm.step();
  head.pace = own_.algorithm.pace();
  head.idle = own_.algorithm.get()->idle();
  head.tracker_epoch = exchange_.mass().EpochToTell();
  for (const NodeId& partner : exchange_.mass().Partners()) {
    head.partners.push_back(partner.name());
  }
  head.decisions = own_.algorithm.decisions();
  head.gradients = learner.gradients();
  if (learner.trainer() != nullptr) {
    head.position = learner.trainer()->position();
  }
  head.epochs = own_.progress.epochs().state();
  head.written = options_.wall_clock ? options_.wall_clock() : loop_.Now();
  taken->model = own_.TakeSnapshot();
  // One that is being computed is computed anew.
  const absl::Span<const float> gradient = own_.model.gradient();
  if (learner.busy()) {
    taken->gradient.assign(gradient.size(), 0.0F);
  } else {
    taken->gradient.assign(gradient.begin(), gradient.end());
  }
  taken->algorithm = own_.algorithm.get()->ExportState();
  return taken;
}

inline void Checkpointing::Write(std::function<void(absl::Status)> done) {
  writing_ = true;
  std::shared_ptr<const Checkpoint> taken = Capture();
  const int64_t steps = taken->head.pace.steps;
  const int64_t keep = own_.run.plan().checkpoint.keep;
  auto status = std::make_shared<absl::Status>();
  options_.worker->Run(
      [store = options_.store, taken = std::move(taken), keep,
       status]() mutable {
        *status = store->Write(*taken, keep);
        taken.reset();
      },
      [this, steps, status, done = std::move(done),
       alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) OnWritten(steps, *status);
        if (done) done(*status);
      });
}

inline void Checkpointing::OnWritten(int64_t steps,
                                     const absl::Status& status) {
  writing_ = false;
  if (status.ok()) {
    written_ = steps;
    if (!error_.empty()) {
      events_.Report(
          ports::CheckpointNote{false, "checkpoints are written again"});
    }
    error_.clear();
  } else {
    const bool told = !error_.empty();
    error_ = absl::StrCat("its checkpoint is not written: ", status.message());
    if (!told) events_.Report(ports::CheckpointNote{true, error_});
  }
  TrySave();
}

// A model that has blown up is nothing to go on from.
inline bool Checkpointing::MayWrite() const {
  return interval() > absl::ZeroDuration() && own_.model.initialised() &&
         own_.algorithm.get() != nullptr && !own_.diverged &&
         !own_.phases.failing() && !own_.phases.Is(ports::Phase::kFailed);
}

inline void Checkpointing::Visit() {
  if (interval() <= absl::ZeroDuration()) error_.clear();
  const bool due = clock_.Due(own_.algorithm.step(), loop_.Now(), interval());
  if (due && !writing_ && MayWrite()) Write(nullptr);
}

inline absl::Status Checkpointing::MaySave() const {
  if (options_.store == nullptr) {
    return absl::FailedPreconditionError("this node keeps no checkpoints");
  }
  if (own_.suspended) {
    return absl::UnavailableError(
        "the daemon is about to end, and writes its last checkpoint by itself");
  }
  if (!own_.run.has_plan()) {
    return absl::FailedPreconditionError(
        "there is no run plan yet, so nothing to write; apply one first: "
        "dflctl plan apply FILE");
  }
  if (interval() <= absl::ZeroDuration()) return CheckpointsAreOff();
  if (own_.diverged || own_.phases.failing() ||
      own_.phases.Is(ports::Phase::kFailed)) {
    return absl::FailedPreconditionError(
        "training has failed here, and what is left of it is nothing to go on "
        "from; the checkpoints before it are there: dflctl checkpoint list");
  }
  if (!own_.model.initialised() || own_.algorithm.get() == nullptr) {
    return absl::FailedPreconditionError(
        "the node has not begun to train, so there is nothing to write; start "
        "it first: dflctl train start");
  }
  return absl::OkStatus();
}

inline void Checkpointing::Save(SaveDone done) {
  saves_.push_back(std::move(done));
  TrySave();
}

inline void Checkpointing::TrySave() {
  if (saves_.empty() || writing_) return;  // OnWritten comes back to it
  const absl::Status may = MaySave();
  if (may.ok() && !AtBoundary()) {
    if (std::exchange(put_off_, true)) return;
    own_.boundary.PutOff([this] {
      put_off_ = false;
      TrySave();
    });
    return;
  }
  const std::vector<SaveDone> saves = std::exchange(saves_, {});
  const auto tell = [saves](const absl::StatusOr<int64_t>& step) {
    for (const SaveDone& done : saves) done(step);
  };
  if (!may.ok()) return tell(may);
  Write([tell, step = own_.algorithm.step()](const absl::Status& status) {
    if (status.ok()) return tell(step);
    tell(status);
  });
}

inline void Checkpointing::Suspend(std::function<void(absl::Status)> done) {
  auto suspend = [this, done = std::move(done)]() mutable {
    own_.suspended = true;
    own_.algorithm.Halt();
    if (!MayWrite()) return done(absl::OkStatus());
    Write(std::move(done));
  };
  if (AtBoundary()) return suspend();
  own_.boundary.PutOff(std::move(suspend));
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CHECKPOINTING_H_
