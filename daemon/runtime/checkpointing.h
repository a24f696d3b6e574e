// Takes checkpoints of this node at boundaries, and has them written.
//
// Loop only.
#ifndef DFL_RUNTIME_CHECKPOINTING_H_
#define DFL_RUNTIME_CHECKPOINTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
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
};

class Checkpointing {
 public:
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
  // Has one written at the next boundary, from which on the node stands still
  // and takes no mass: what is written is its end. `done` is told once; OK
  // where there is nothing to write.
  // Errors: as the store's.
  void Suspend(std::function<void(absl::Status)> done);

  // Why the last one is not written; "": it is.
  const std::string& error() const { return error_; }
  // Steps behind the last one that was written; 0: none was.
  int64_t written() const { return written_; }

 private:
  bool MayWrite() const;
  std::shared_ptr<const Checkpoint> Capture();
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
  auto status = std::make_shared<absl::Status>();
  options_.worker->Run(
      [store = options_.store, taken = std::move(taken), status]() mutable {
        *status = store->Write(*taken);
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
    return;
  }
  const bool told = !error_.empty();
  error_ = absl::StrCat("its checkpoint is not written: ", status.message());
  if (!told) events_.Report(ports::CheckpointNote{true, error_});
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

inline void Checkpointing::Suspend(std::function<void(absl::Status)> done) {
  auto suspend = [this, done = std::move(done)]() mutable {
    own_.suspended = true;
    own_.algorithm.Halt();
    if (!MayWrite()) return done(absl::OkStatus());
    Write(std::move(done));
  };
  if (own_.boundary.here() && (!own_.model.initialised() || own_.Settled())) {
    return suspend();
  }
  own_.boundary.PutOff(std::move(suspend));
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_CHECKPOINTING_H_
