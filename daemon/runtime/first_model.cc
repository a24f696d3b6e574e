#include "daemon/runtime/first_model.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace dfl::runtime {

using ports::Phase;

FirstModel::FirstModel(OwnState& own, Presence& presence, Training& training,
                       Joining& joining, AlgorithmLives& lives,
                       Rejections& rejections, ports::EventSink& events)
    : own_(own),
      presence_(presence),
      training_(training),
      joining_(joining),
      lives_(lives),
      rejections_(rejections),
      events_(events) {}

bool FirstModel::Unbound() {
  const absl::Status& bound = training_.learner().bound();
  if (bound.ok()) return false;
  joining_.End();
  own_.phases.Want(Phase::kIdle);
  own_.phases.Set(Phase::kFailed, bound.message());
  return true;
}

void FirstModel::Look() {
  if (Unbound()) return;
  joining_.Begin();
  own_.phases.Set(Phase::kJoining, "looking for a neighbour to start from");
  joining_.Continue();
}

void FirstModel::Train(absl::string_view reason) {
  if (Unbound()) return;
  training_.BeginTraining();
  own_.phases.Want(Phase::kIdle);
  own_.phases.Set(Phase::kTraining, reason);
  presence_.RefreshAll();
  own_.boundary.Schedule();
}

void FirstModel::OnNobodyToJoin() {
  joining_.End();
  const absl::Status made = training_.Initialise();
  if (!made.ok()) {
    own_.phases.Set(Phase::kFailed, training_.last_error());
    return;
  }
  own_.model.SetInitialised(true);
  own_.model.Changed();
  lives_.Restart(0);
  joining_.NoteStart(false);
  joining_.WaitForOthers(own_.run.plan().deadline.exchange);
  Train("started fresh");
}

std::optional<core::Pace> FirstModel::PaceOf(absl::Span<const double> said) {
  if (said.size() != 2) return std::nullopt;
  for (const double count : said) {
    if (!(count >= 0 && count <= static_cast<double>(kLargestStep))) {
      return std::nullopt;
    }
  }
  return core::Pace{static_cast<int64_t>(said[0]),
                    static_cast<int64_t>(said[1])};
}

void FirstModel::OnState(const NodeId& from, uint64_t ask, int64_t step,
                         absl::Span<const double> said,
                         const codec::DecodedMessage& message) {
  if (!joining_.IsWanted(ask)) return;
  const absl::Status copied = message.CopyDense(own_.model.parameters());
  if (!copied.ok()) {
    rejections_.Note(from, {ports::RefuseReason::kBadMessage,
                            std::string(copied.message())});
    joining_.Failed(from);
    return;
  }
  std::copy(message.buffers().begin(), message.buffers().end(),
            own_.model.buffers().begin());
  own_.model.SetInitialised(true);
  own_.model.Changed();
  joining_.Taken();
  lives_.Restart(step, PaceOf(said));
  // The giver itself may have started fresh, alone.
  joining_.NoteStart(true);
  const core::Pace pace = own_.algorithm.pace();
  events_.Report(ports::StateTaken{from, pace.steps, pace.rounds});
  Train(absl::StrCat("joined at step ", pace.steps, " of ", from.name()));
}

void FirstModel::Replace(std::shared_ptr<const Snapshot> model,
                         std::function<void(absl::Status)> done,
                         ModelParts parts) {
  if (!training_.learner().trainer()) {
    done(absl::FailedPreconditionError(
        "there is no run plan yet, so no model to replace; apply one first: "
        "dflctl plan apply FILE"));
    return;
  }
  if (model->parameters.size() != own_.model.parameters().size() ||
      model->buffers.size() != own_.model.buffers().size()) {
    done(absl::InvalidArgumentError(absl::StrCat(
        "the model has ", model->parameters.size(), " parameters and ",
        model->buffers.size(), " buffer values; this run's has ",
        own_.model.parameter_count(), " and ", own_.model.buffer_count())));
    return;
  }
  // The rest of a part is what the run would have started from.
  if (!parts.whole && !own_.model.initialised()) {
    const absl::Status made = training_.Initialise();
    if (!made.ok()) return done(made);
    own_.model.SetInitialised(true);
  }
  auto replace = [this, model = std::move(model), parts = std::move(parts),
                  done = std::move(done)] {
    if (parts.whole) {
      own_.model.Take(model->parameters, model->buffers);
    } else {
      own_.model.TakeParts(model->parameters, model->buffers, parts);
    }
    own_.diverged = false;
    // What they knew was of another model.
    training_.BeginTraining();
    if (own_.algorithm.get()) lives_.GoOn();
    done(absl::OkStatus());
  };
  if (Starting()) {
    joining_.End();
    replace();
    if (!own_.algorithm.get()) lives_.Restart(0);
    Train("started from the imported model");
    return;
  }
  if (own_.boundary.here()) {
    replace();
  } else {
    own_.boundary.PutOff(std::move(replace));
  }
}

}  // namespace dfl::runtime
