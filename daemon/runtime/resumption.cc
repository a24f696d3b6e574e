#include "daemon/runtime/resumption.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::runtime {
namespace {

using ports::Phase;

// For so long nobody says a lower step before all go on.
constexpr absl::Duration kSettled = absl::Milliseconds(300);

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

}  // namespace

Resumption::Resumption(const CheckpointOptions& options,
                       Checkpointing& checkpointing, OwnState& own,
                       const PeerTable& peers, const Links& links,
                       Exchange& exchange, Presence& presence,
                       Training& training, Joining& joining,
                       AlgorithmLives& lives, FirstModel& first_model,
                       ports::Loop& loop, ports::EventSink& events)
    : options_(options),
      checkpointing_(checkpointing),
      own_(own),
      peers_(peers),
      links_(links),
      exchange_(exchange),
      presence_(presence),
      training_(training),
      joining_(joining),
      lives_(lives),
      first_model_(first_model),
      loop_(loop),
      events_(events) {}

void Resumption::Tell(bool warning, std::string text) {
  events_.Report(ports::CheckpointNote{warning, std::move(text)});
}

bool Resumption::TakeUp() {
  ports::Trainer* trainer = training_.learner().trainer();
  if (checkpointing_.interval() <= absl::ZeroDuration() || trainer == nullptr)
    return false;
  older_.clear();
  const std::optional<ports::BatchPosition> position = trainer->position();
  std::vector<std::string> notes;
  const std::vector<CheckpointHead> heads = options_.store->List(notes);
  for (const std::string& note : notes) Tell(true, note);
  bool tried = false;
  bool taken_up = false;
  for (const CheckpointHead& head : heads) {
    if (head.run_id != own_.run.plan().run_id) continue;
    if (taken_up) {
      older_.push_back(head.step);
      continue;
    }
    tried = true;
    const absl::StatusOr<Checkpoint> read =
        options_.store->Read(head.run_id, head.step);
    const absl::Status taken = read.ok() ? Take(*read) : read.status();
    taken_up = taken.ok();
    if (taken_up) continue;
    Tell(true, absl::StrCat("the checkpoint of step ", head.step,
                            " is left aside: ", taken.message()));
  }
  if (tried && !taken_up) {  // as if none had been there
    (void)training_.learner().GoTo(0, position);
    exchange_.mass().BeginRun();
  }
  return taken_up;
}

absl::Status Resumption::CheckFits(const Checkpoint& checkpoint) const {
  const CheckpointHead& head = checkpoint.head;
  if (head.node != own_.self.name()) {
    // A directory that was copied for another node, or restored on its box.
    return absl::InvalidArgumentError(absl::StrCat(
        "it is of node ", head.node, ", and this is ", own_.self.name()));
  }
  if (head.contract != own_.run.contract_digest()) {
    return absl::InvalidArgumentError(
        "model or data mean something else than they did");
  }
  const auto n = static_cast<size_t>(own_.model.parameter_count());
  const auto b = static_cast<size_t>(own_.model.buffer_count());
  if (checkpoint.model->parameters.size() != n ||
      checkpoint.gradient.size() != n ||
      checkpoint.model->buffers.size() != b) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", checkpoint.model->parameters.size(),
                     " parameters and ", checkpoint.model->buffers.size(),
                     " buffer values; this model has ", n, " and ", b));
  }
  if (!AllFinite(checkpoint.model->parameters) ||
      !AllFinite(checkpoint.model->buffers) ||
      !AllFinite(checkpoint.gradient)) {
    return absl::DataLossError("not all its values are finite");
  }
  return absl::OkStatus();
}

absl::Status Resumption::Take(const Checkpoint& checkpoint) {
  DFL_RETURN_IF_ERROR(CheckFits(checkpoint));
  return TakeFitting(checkpoint);
}

absl::Status Resumption::TakeFitting(const Checkpoint& checkpoint,
                                     uint64_t before) {
  const CheckpointHead& head = checkpoint.head;
  own_.model.Take(checkpoint.model->parameters, checkpoint.model->buffers);
  std::copy(checkpoint.gradient.begin(), checkpoint.gradient.end(),
            own_.model.gradient().begin());
  const absl::Status placed =
      training_.learner().GoTo(head.gradients, head.position);
  if (!placed.ok()) {
    Tell(true,
         absl::StrCat("mini-batches begin a new pass: ", placed.message()));
  }
  const core::RunPlan& plan = own_.run.plan();
  if (head.algorithm != plan.algorithm.name ||
      head.plan_version != plan.version) {
    Tell(false,
         absl::StrCat("the checkpoint is of version ", head.plan_version,
                      " of the plan, and ", plan.version,
                      " is in force: its model is taken, and the algorithm "
                      "begins anew"));
    lives_.Restart(head.step, head.pace, head.idle);
  } else {
    const absl::Status resumed = lives_.Resume(checkpoint, before);
    if (!resumed.ok()) {
      lives_.End();
      own_.model.SetInitialised(false);
      return resumed;
    }
  }
  training_.BeginTraining();
  joining_.NoteResumed();
  checkpointing_.GoOnFrom(head.step);
  moved_ = loop_.Now();
  life_ = own_.algorithm.epoch();
  Tell(false, absl::StrCat("goes on from the checkpoint of step ",
                           head.pace.steps, ", round ", head.pace.rounds));
  return absl::OkStatus();
}

bool Resumption::GoBackTo(int64_t step) {
  if (!own_.run.lock_step() || training_.learner().busy() ||
      std::find(older_.begin(), older_.end(), step) == older_.end()) {
    return false;
  }
  older_.erase(std::find(older_.begin(), older_.end(), step));
  const std::string& run = own_.run.plan().run_id;
  const int64_t newest = own_.algorithm.step();
  const absl::StatusOr<Checkpoint> older = options_.store->Read(run, step);
  if (!older.ok() || !CheckFits(*older).ok()) return false;
  if (Take(*older).ok()) return true;
  const absl::StatusOr<Checkpoint> again = options_.store->Read(run, newest);
  if (!again.ok() || !Take(*again).ok()) {
    agreeing_ = false;
    first_model_.Look();
  }
  return false;
}

void Resumption::Begin() {
  restored_ = false;
  if (own_.algorithm.epoch() != life_) older_.clear();  // another model is here
  life_ = own_.algorithm.epoch();
  agreeing_ = true;
  moved_ = loop_.Now();
  until_ = loop_.Now() + options_.within;
  own_.phases.Want(Phase::kIdle);
  own_.phases.Set(
      Phase::kJoining,
      "has a checkpoint, and looks which one neighbours go on from");
  Look();
}

// What a neighbour says of itself; kUnknown: nothing that helps.
Resumption::Hears Resumption::Hear(const NodeId& neighbour,
                                   int64_t& step) const {
  const auto it = peers_.all().find(neighbour);
  if (it == peers_.all().end() || !it->second.known ||
      !links_.IsUp(neighbour) || peers_.Mismatch(it->second, true)) {
    return Hears::kUnknown;
  }
  step = it->second.state.step;
  switch (it->second.state.phase) {
    case Phase::kTraining:
    case Phase::kDegraded:
      return Hears::kTrains;
    case Phase::kJoining:
      return step > 0 ? Hears::kGoesOn : Hears::kUnknown;
    case Phase::kIdle:
      return Hears::kUnknown;
    default:
      return Hears::kStands;
  }
}

void Resumption::Look() {
  if (!agreeing_) return;
  if (!own_.phases.Is(Phase::kJoining)) {  // another order
    agreeing_ = false;
    return;
  }
  if (own_.algorithm.get() == nullptr) {  // another run
    agreeing_ = false;
    if (!joining_.searching()) first_model_.Look();
    return;
  }
  if (own_.algorithm.epoch() != life_) return GoOn(/*together=*/false);
  const auto& neighbours = own_.run.node().neighbours;
  // One that knows nobody yet may not have found the others.
  bool all = !(neighbours.empty() && own_.run.follows_view());
  int64_t lowest = own_.algorithm.step();
  for (const core::Neighbour& neighbour : neighbours) {
    int64_t step = 0;
    const Hears heard = Hear(neighbour.node, step);
    if (heard == Hears::kTrains) return GoOn(/*together=*/false);
    if (heard == Hears::kUnknown) all = false;
    if (heard == Hears::kGoesOn) lowest = std::min(lowest, step);
  }
  if (lowest < own_.algorithm.step()) {
    if (GoBackTo(lowest)) {
      presence_.Tell();
    } else if (!agreeing_) {
      return;
    } else if (lowest + 1 < own_.algorithm.step()) {
      all = false;  // one step apart they may have ended in order
    }
  }
  const absl::Time now = loop_.Now();
  const absl::Time settled = moved_ + kSettled;
  if (now >= until_ || (all && (neighbours.empty() || now >= settled))) {
    return GoOn(/*together=*/true);
  }
  loop_.Cancel(timer_);
  timer_ =
      loop_.After((all ? std::min(settled, until_) : until_) - now, [this] {
        timer_ = 0;
        Look();
      });
}

void Resumption::GoOn(bool together) {
  agreeing_ = false;
  if (together) joining_.WaitForOthers(own_.run.plan().deadline.exchange);
  older_.clear();
  loop_.Cancel(std::exchange(timer_, 0));
  first_model_.Train(absl::StrCat(
      "resumed at step ", own_.algorithm.pace().steps, " from its checkpoint"));
  // One that is far ahead gives its model, as to any node that joins.
  for (const auto& [id, peer] : peers_.all()) {
    int64_t step = 0;
    const Hears heard = Hear(id, step);
    if (heard == Hears::kTrains || heard == Hears::kStands) {
      joining_.Confirm(id, step);
    }
  }
}

}  // namespace dfl::runtime
