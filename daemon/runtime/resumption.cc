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

Resumption::Resumption(CheckpointOptions options, OwnState& own,
                       const PeerTable& peers, const Links& links,
                       Exchange& exchange, Presence& presence,
                       Training& training, Joining& joining,
                       AlgorithmLives& lives, FirstModel& first_model,
                       ports::Loop& loop, ports::EventSink& events)
    : options_(options),
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

// ---------------------------------------------------------------- writing ----

std::shared_ptr<const Checkpoint> Resumption::Capture() {
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
  const absl::Span<const float> gradient = own_.model.gradient();
  taken->gradient.assign(gradient.begin(), gradient.end());
  taken->algorithm = own_.algorithm.get()->ExportState();
  return taken;
}

void Resumption::Write(std::function<void(absl::Status)> done) {
  writing_ = true;
  std::shared_ptr<const Checkpoint> taken = Capture();
  const int64_t step = taken->head.step;
  auto status = std::make_shared<absl::Status>();
  options_.worker->Run(
      [store = options_.store, taken = std::move(taken), status]() mutable {
        *status = store->Write(*taken);
        taken.reset();
      },
      [this, step, status, done = std::move(done),
       alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) OnWritten(step, *status);
        if (done) done(*status);
      });
}

void Resumption::OnWritten(int64_t step, const absl::Status& status) {
  writing_ = false;
  if (status.ok()) {
    written_ = step;
    if (!error_.empty()) Tell(false, "checkpoints are written again");
    error_.clear();
    return;
  }
  const bool told = !error_.empty();
  error_ = absl::StrCat("its checkpoint is not written: ", status.message());
  if (!told) Tell(true, error_);
}

void Resumption::Visit() {
  if (options_.store == nullptr || writing_ || !own_.algorithm.get()) return;
  if (clock_.Due(own_.algorithm.step(), loop_.Now(),
                 own_.run.plan().checkpoint.interval)) {
    Write(nullptr);
  }
}

void Resumption::Suspend(std::function<void(absl::Status)> done) {
  if (options_.store == nullptr || !own_.model.initialised() ||
      !own_.algorithm.get()) {
    own_.suspended = true;
    return done(absl::OkStatus());
  }
  auto suspend = [this, done = std::move(done)]() mutable {
    own_.suspended = true;
    Write(std::move(done));
  };
  if (own_.boundary.here() && own_.Settled()) return suspend();
  own_.boundary.PutOff(std::move(suspend));
}

// --------------------------------------------------------------- going on ----

bool Resumption::TakeUp() {
  if (options_.store == nullptr || !own_.run.has_plan() ||
      training_.learner().trainer() == nullptr) {
    return false;
  }
  std::vector<std::string> notes;
  const std::vector<CheckpointHead> heads = options_.store->List(notes);
  for (const std::string& note : notes) Tell(true, note);
  for (const CheckpointHead& head : heads) {
    if (head.run_id != own_.run.plan().run_id) continue;
    if (taken_up_) {
      older_.push_back(head.step);
      continue;
    }
    const absl::StatusOr<Checkpoint> read =
        options_.store->Read(head.run_id, head.step);
    const absl::Status taken = read.ok() ? Take(*read) : read.status();
    if (!taken.ok()) {
      Tell(true, absl::StrCat("the checkpoint of step ", head.step,
                              " is left aside: ", taken.message()));
      continue;
    }
    taken_up_ = true;
  }
  return taken_up_;
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
    const absl::Status resumed = lives_.Resume(checkpoint);
    if (!resumed.ok()) {
      lives_.End();
      own_.model.SetInitialised(false);
      return resumed;
    }
  }
  training_.BeginTraining();
  joining_.NoteStart(true);
  clock_.Begin(head.step, loop_.Now());
  moved_ = loop_.Now();
  Tell(false, absl::StrCat("goes on from the checkpoint of step ",
                           head.pace.steps, ", round ", head.pace.rounds));
  return absl::OkStatus();
}

bool Resumption::GoBackTo(int64_t step) {
  if (!own_.run.lock_step() || training_.learner().busy() ||
      std::find(older_.begin(), older_.end(), step) == older_.end()) {
    return false;
  }
  const absl::StatusOr<Checkpoint> read =
      options_.store->Read(own_.run.plan().run_id, step);
  if (!read.ok()) return false;
  const absl::Status fits = CheckFits(*read);
  return fits.ok() && Take(*read).ok();
}

void Resumption::Begin() {
  agreeing_ = true;
  life_ = own_.algorithm.epoch();
  moved_ = loop_.Now();
  until_ = loop_.Now() + options_.within;
  own_.phases.Want(Phase::kIdle);
  own_.phases.Set(
      Phase::kJoining,
      "has a checkpoint, and looks which one neighbours go on from");
  Look();
}

void Resumption::Look() {
  if (!agreeing_) return;
  if (!own_.phases.Is(Phase::kJoining) || own_.algorithm.get() == nullptr ||
      own_.algorithm.epoch() != life_) {
    agreeing_ = false;  // another order, or another run
    return;
  }
  const auto& neighbours = own_.run.node().neighbours;
  // One that knows nobody yet may not have found the others.
  bool all = !(neighbours.empty() && own_.run.follows_view());
  int64_t lowest = own_.algorithm.step();
  for (const core::Neighbour& neighbour : neighbours) {
    const auto it = peers_.all().find(neighbour.node);
    if (it == peers_.all().end() || !it->second.known ||
        !links_.IsUp(neighbour.node) || peers_.Mismatch(it->second, true)) {
      all = false;
      continue;
    }
    const ports::StateFrame& state = it->second.state;
    if (state.phase != Phase::kJoining && state.phase != Phase::kIdle) {
      return GoOn(/*together=*/false);  // the network lives
    }
    if (state.phase == Phase::kIdle || state.step == 0) {
      all = false;  // nothing is known of what it goes on from
    } else {
      lowest = std::min(lowest, state.step);
    }
  }
  if (lowest < own_.algorithm.step()) {
    if (GoBackTo(lowest)) {
      life_ = own_.algorithm.epoch();
      presence_.Tell();
    } else {
      all = false;
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
}

}  // namespace dfl::runtime
