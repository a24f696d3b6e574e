#include "daemon/runtime/plan_adoption.h"

#include <utility>

namespace dfl::runtime {
namespace {

bool SameModel(const ports::ModelInfo& a, const ports::ModelInfo& b) {
  return a.parameter_count == b.parameter_count &&
         a.buffer_count == b.buffer_count && a.contract == b.contract;
}

}  // namespace

PlanAdoption::PlanAdoption(OwnState& own, PeerTable& peers, Exchange& exchange,
                           Presence& presence, Training& training,
                           Joining& joining, AlgorithmLives& lives,
                           Evaluations& evaluations, ports::EventSink& events)
    : own_(own),
      peers_(peers),
      exchange_(exchange),
      presence_(presence),
      training_(training),
      joining_(joining),
      lives_(lives),
      evaluations_(evaluations),
      events_(events) {}

absl::Status PlanAdoption::Set(core::DerivedPlan plan,
                               std::unique_ptr<ports::Trainer> trainer) {
  return Keep(std::move(plan), std::move(trainer), /*only_view=*/false);
}

absl::Status PlanAdoption::FollowView(core::DerivedPlan plan) {
  const bool only_view = !pending_ || pending_->only_view;
  return Keep(std::move(plan), nullptr, only_view);
}

absl::Status PlanAdoption::Keep(core::DerivedPlan plan,
                                std::unique_ptr<ports::Trainer> trainer,
                                bool only_view) {
  const bool has_trainer = training_.learner().trainer() != nullptr;
  if (!trainer && !has_trainer && !(pending_ && pending_->trainer) &&
      plan.node.takes_part) {
    return absl::FailedPreconditionError(
        "to take part in a plan the node needs a learner, and it has none");
  }
  if (trainer) renewed_.reset();
  if (!trainer && pending_) trainer = std::move(pending_->trainer);
  pending_ = Pending{std::move(plan.checked.plan), std::move(plan.node),
                     std::move(trainer), only_view};
  if (own_.phases.Running()) {
    own_.boundary.Schedule();
  } else if (own_.boundary.here()) {
    Adopt();
  }
  return absl::OkStatus();
}

absl::Status PlanAdoption::Renew(std::unique_ptr<ports::Trainer> trainer) {
  std::unique_ptr<ports::Trainer>* const waits =
      pending_ && pending_->trainer ? &pending_->trainer : nullptr;
  const ports::Trainer* const before =
      waits ? waits->get() : training_.learner().trainer();
  if (before == nullptr) {
    return absl::FailedPreconditionError(
        "other rows take the place of those of a learner, and the node has "
        "none");
  }
  if (!SameModel(before->model(), trainer->model())) {
    return absl::InvalidArgumentError(
        "the learner on other rows has another model or data contract than "
        "the node's");
  }
  if (waits) {
    *waits = std::move(trainer);
    return absl::OkStatus();
  }
  renewed_ = std::move(trainer);
  if (own_.phases.Running()) {
    own_.boundary.Schedule();
  } else if (own_.boundary.here()) {
    InstallRenewed();
  }
  return absl::OkStatus();
}

void PlanAdoption::InstallRenewed() {
  if (!renewed_ || training_.learner().busy()) return;
  training_.Renew(std::exchange(renewed_, nullptr));
  if (!own_.algorithm.get()) return;
  own_.algorithm.Handle(core::PlanChanged{
      own_.run.node(), training_.BatchesPerPass(), training_.train_rows()});
}

void PlanAdoption::Adopt() {
  if (!pending_ || AwaitsLearner()) return;
  own_.boundary.DoWork();
  Pending next = *std::exchange(pending_, std::nullopt);
  RunInForce& run = own_.run;
  const core::RunPlan* before = run.plan_or_null();
  const bool new_run = BeginsRun(next);
  const bool same_name = before && before->run_id == next.plan->run_id;
  const bool new_algorithm =
      !own_.algorithm.get() ||
      before->algorithm.name != next.plan->algorithm.name;
  const bool new_format =
      before && !(before->codec.format == next.plan->codec.format);
  const bool new_rate = before && before->codec.rate != next.plan->codec.rate;
  run.Adopt(std::move(next.plan), std::move(next.node));
  peers_.CompareAll();
  exchange_.mass().SetCode();
  if (new_run) {
    BeginRun(std::move(next.trainer), same_name);
  } else if (own_.algorithm.get()) {
    if (new_algorithm) {
      lives_.GoOn();
    } else {
      own_.algorithm.Handle(
          core::PlanChanged{run.node(), training_.BatchesPerPass()});
    }
  }
  if (new_run || new_format) exchange_.pushes().ChangeFormat();
  if (new_rate) exchange_.pushes().ChangeRate();
  exchange_.mass().DropFormerMembers();
  if (!next.only_view) {
    events_.Report(
        ports::PlanAdopted{run.plan().version, own_.algorithm.pace().steps});
  }
  presence_.Tell();
  presence_.RefreshAll();
  // Members come and go without an end.
  if (run.follows_view()) peers_.ForgetStrangers();
}

bool PlanAdoption::BeginsRun(const Pending& next) const {
  const core::RunPlan* before = own_.run.plan_or_null();
  return next.trainer || !before || before->run_id != next.plan->run_id;
}

void PlanAdoption::BeginRun(std::unique_ptr<ports::Trainer> trainer,
                            bool again) {
  joining_.End();
  lives_.End();
  exchange_.BeginRun(again);
  peers_.ForgetWhole();
  own_.model.SetInitialised(false);
  joining_.ForgetStart();
  training_.BeginRun();
  evaluations_.Forget();
  own_.progress = Progress();
  own_.phases.Want(ports::Phase::kIdle);
  if (trainer) {
    training_.Install(std::move(trainer));
    peers_.CompareAll();
  }
  own_.phases.Set(ports::Phase::kIdle, "a new run");
}

}  // namespace dfl::runtime
