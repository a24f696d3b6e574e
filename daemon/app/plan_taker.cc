#include "daemon/app/plan_taker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/plan_facts.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/run_identity.h"
#include "daemon/core/contract/agreement.h"
#include "daemon/core/plan/participants.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/plan/plan_warnings.h"

namespace dfl::app {
namespace {

using runtime::KeptPlan;
using runtime::RunKeeper;

// A plan that came as a record stands as it is.
absl::Status CheckComplete(const core::RunPlan& plan, uint64_t counter) {
  const char* missing = plan.run_id.empty() ? "run"
                        : plan.seed == 0    ? "seed"
                                            : nullptr;
  if (missing != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the record's plan has no ", missing,
                     "; give a complete document: dflctl plan apply does"));
  }
  if (plan.version != counter) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the record's plan has version ", plan.version,
        " and the record the counter ", counter, "; they must be the same"));
  }
  return absl::OkStatus();
}

KeptPlan ToKeep(const core::RunPlan& plan) {
  return {config::WritePlan(plan), plan.version, plan.run_id};
}

// Whether `plan` is the known one but for its version: the same document once
// more, also where it came from another node before, is the same plan.
bool IsKnown(core::RunPlan plan, const KeptPlan& known) {
  plan.version = known.version;
  return config::WritePlan(plan) == known.text;
}

// Fills in the members that are there now; null `follower`: `self` alone.
// Errors: as core::CheckPlan; UNAVAILABLE when the loop has ended.
absl::StatusOr<PlanAmong> ResolveAmong(core::CheckedPlan checked,
                                       const NodeId& self,
                                       runtime::PlanFollower* follower,
                                       EventLoop& loop) {
  std::vector<core::MemberSpec> present(1);
  present[0].node = self;
  if (follower != nullptr &&
      !loop.RunAndWait([&] { present = follower->Present(); })) {
    return absl::UnavailableError("the daemon is shutting down");
  }
  PlanAmong among;
  among.document = checked.plan;
  core::RunPlan plan = *checked.plan;
  core::ResolveParticipants(plan, present);
  if (plan.members != checked.plan->members) {
    DFL_ASSIGN_OR_RETURN(checked, core::CheckPlan(std::move(plan)));
  }
  among.warnings = core::PlanWarnings(checked);
  // Of a fixed set it is known who is missing only where members are known.
  if (core::FollowsView(*checked.plan) || present.size() > 1) {
    for (std::string& text : core::ViewWarnings(checked, present)) {
      among.warnings.push_back(std::move(text));
    }
  }
  among.elsewhere =
      std::any_of(present.begin(), present.end(), [&](const auto& there) {
        return there.node != self && core::PlaceOf(*checked.plan, there.node);
      });
  if (among.elsewhere && !core::FollowsView(*checked.plan) &&
      !core::PlaceOf(*checked.plan, self)) {
    among.warnings.push_back(
        absl::StrCat("participants.fixed: ", self.name(),
                     " is none of the set: it passes the plan on and watches"));
  }
  among.checked = std::move(checked);
  return among;
}

}  // namespace

PlanTaker::PlanTaker(NodeId self, PlanLimits limits, EventLoop& loop,
                     runtime::Node& node, runtime::PlanFollower* follower,
                     LearnerFactory& learners, SharedKeeper& keeper,
                     Logger& log, PlanSteps steps, std::function<void()> on_set)
    : self_(std::move(self)),
      loop_(loop),
      node_(node),
      follower_(follower),
      learners_(learners),
      keeper_(keeper),
      log_(log),
      steps_(std::move(steps)),
      on_set_(std::move(on_set)),
      learner_(std::move(limits), learners, log) {
  if (follower_ == nullptr) return;
  loop_.RunAndWait([this] {
    follower_->SetFollowed(
        [this](const core::DerivedPlan& plan) { learner_.OnFollowed(plan); });
  });
}

PlanTaker::~PlanTaker() {
  if (follower_ == nullptr) return;
  loop_.RunAndWait([this] { follower_->SetFollowed(nullptr); });
}

absl::StatusOr<core::CheckedPlan> PlanTaker::Read(const std::string& yaml,
                                                  const PlanSource& source,
                                                  uint64_t version) const {
  absl::Status complete;
  const std::shared_ptr<const KeptPlan> known = keeper_.known();
  absl::StatusOr<core::CheckedPlan> checked =
      steps_.parse(yaml, source.name, [&](core::RunPlan& plan) {
        if (source.counter != 0) {
          complete = CheckComplete(plan, source.counter);
        }
        const bool open = plan.version == 0;
        if (open) plan.version = version;
        config::IdentifyRun(config::ContinuedRun{known->run_id, known->version},
                            plan);
        if (open && IsKnown(plan, *known)) plan.version = known->version;
      });
  DFL_RETURN_IF_ERROR(complete);
  return checked;
}

absl::StatusOr<control::ApplyPlanResult> PlanTaker::Take(
    const control::ApplyPlanOptions& options, const PlanSource& source) {
  DFL_ASSIGN_OR_RETURN(
      core::CheckedPlan checked,
      Read(options.yaml, source, keeper_.known()->version + 1));
  KeptPlan offered = ToKeep(*checked.plan);
  DFL_ASSIGN_OR_RETURN(
      const RunKeeper::Offer offer,
      keeper_.Do([&](RunKeeper& keeper) -> absl::StatusOr<RunKeeper::Offer> {
        if (source.order == Order::kByRecord)
          return keeper.JudgeOrdered(offered);
        return keeper.Judge(offered, options.expected_version);
      }));
  control::ApplyPlanResult result;
  result.version = offered.version;
  result.run_id = offered.run_id;
  result.unchanged = offer == RunKeeper::Offer::kUnchanged;
  DFL_ASSIGN_OR_RETURN(PlanAmong among, ResolveAmong(std::move(checked), self_,
                                                     follower_, loop_));
  result.warnings = std::move(among.warnings);
  if (result.unchanged && !options.dry_run) return result;

  DFL_ASSIGN_OR_RETURN(
      Prepared prepared,
      Prepare(std::move(among), source.order == Order::kByRecord));
  DFL_RETURN_IF_ERROR(learner_.MayNeed(prepared.need));
  if (options.dry_run) {
    const NodeLearner::Built built =
        prepared.learner ? prepared.learner->built : NodeLearner::Built();
    result.facts = FactsOf(prepared.plan, built.model, built.data,
                           prepared.need, learner_.memory_limit());
    return result;
  }
  // On disk first: what the node runs survives a crash, and can be passed on
  // afterwards.
  offered.record = options.record;
  if (source.make_record != nullptr) {
    DFL_ASSIGN_OR_RETURN(offered.record, source.make_record(offered));
  }
  DFL_RETURN_IF_ERROR(
      keeper_.Do([&](RunKeeper& keeper) { return keeper.Accept(offered); }));
  const absl::Status taken = Hand(std::move(prepared));
  if (!taken.ok()) {
    const absl::Status restored =
        keeper_.Do([](RunKeeper& keeper) { return keeper.TakeBack(); });
    if (!restored.ok()) log_.Error("store", restored.message());
    return taken;
  }
  const std::string& who =
      source.counter != 0 ? source.author : options.caller.name;
  LogTaken(offered, who.empty() ? "the settings" : who);
  return result;
}

absl::StatusOr<control::NodeData> PlanTaker::Data(const std::string& yaml) {
  control::NodeData data;
  if (const auto built = learner_.built()) data.contract = built->contract;
  if (yaml.empty()) {
    data.report = learners_.Report();
    DFL_ASSIGN_OR_RETURN(data.offer, learners_.Offer(nullptr, {}));
    DFL_RETURN_IF_ERROR(core::CheckNames(data.offer));
    if (data.contract.has_value()) {
      data.report.warnings = learners_.Warnings(data.contract->input);
      data.offer.loss = data.contract->loss;
      data.offer.model = data.contract->model;
    }
    return data;
  }
  DFL_ASSIGN_OR_RETURN(const core::RunPlan plan,
                       config::ParsePlan(yaml, "plan"));
  if (!plan.members.empty() && !core::PlaceOf(plan, self_)) {
    const absl::Status status =
        core::UnknownMemberError("members", self_, plan);
    return absl::NotFoundError(status.message());
  }
  DFL_ASSIGN_OR_RETURN(data.offer, learners_.Offer(&plan.model, plan.data));
  DFL_RETURN_IF_ERROR(core::CheckNames(data.offer));
  data.report.warnings = learners_.Warnings(data.offer.input);
  return data;
}

absl::Status PlanTaker::TakeUpStored() {
  const std::shared_ptr<const KeptPlan> known = keeper_.known();
  DFL_ASSIGN_OR_RETURN(core::CheckedPlan checked,
                       Read(known->text, {.name = "the stored plan"}, 1));
  KeptPlan stored = ToKeep(*checked.plan);
  stored.record = known->record;
  DFL_ASSIGN_OR_RETURN(PlanAmong among, ResolveAmong(std::move(checked), self_,
                                                     follower_, loop_));
  // It may have come by record.
  DFL_ASSIGN_OR_RETURN(Prepared prepared,
                       Prepare(std::move(among), /*by_record=*/true));
  const absl::Status within =
      CheckMemory(prepared.need, learner_.memory_limit());
  if (!within.ok()) log_.Warning("memory", within.message());
  DFL_RETURN_IF_ERROR(Hand(std::move(prepared)));
  LogTaken(stored, "the state directory");
  const absl::Status saved =
      keeper_.Do([&](RunKeeper& keeper) { return keeper.TakeUp(stored); });
  if (!saved.ok()) {
    log_.Error("store", absl::StrCat("the state is not written, the stored "
                                     "plan is taken up all the same: ",
                                     saved.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanTaker::Prepared> PlanTaker::Prepare(PlanAmong among,
                                                       bool by_record) {
  Prepared prepared;
  prepared.document = std::move(among.document);
  absl::StatusOr<core::DerivedPlan> derived =
      steps_.derive(among.checked, self_);
  if ((by_record || among.elsewhere) && absl::IsNotFound(derived.status())) {
    derived = core::DeriveForWatcher(std::move(among.checked), self_);
  }
  if (!derived.ok()) return derived.status();
  prepared.plan = *std::move(derived);
  absl::StatusOr<NodeLearner::Next> found = learner_.Find(prepared.plan);
  // To watch it needs no data.
  if (absl::IsFailedPrecondition(found.status()) &&
      !prepared.plan.node.takes_part) {
    return prepared;
  }
  if (!found.ok()) return found.status();
  prepared.learner = *std::move(found);
  const NodeLearner::Built& built = prepared.learner->built;
  DFL_ASSIGN_OR_RETURN(
      prepared.need, runtime::NeedOf(prepared.plan, built.model, built.data,
                                     ProgramBytes(built.model, built.engine)));
  return prepared;
}

absl::Status PlanTaker::Hand(Prepared prepared) {
  std::optional<NodeLearner::Next>& learner = prepared.learner;
  absl::Status set;
  const bool ran = loop_.RunAndWait([&] {
    std::unique_ptr<AsyncTrainer> trainer;
    if (learner && learner->learner) {
      trainer = std::make_unique<AsyncTrainer>(
          loop_, std::move(learner->learner), steps_.pace);
    }
    set = node_.SetPlan(prepared.plan, std::move(trainer));
    if (set.ok() && follower_ != nullptr) {
      follower_->Follow(prepared.document, prepared.plan);
    }
    on_set_();
  });
  if (!ran) return absl::UnavailableError("the daemon is shutting down");
  DFL_RETURN_IF_ERROR(set);
  if (learner) learner_.SetGiven(std::move(learner->built), prepared.need);
  return absl::OkStatus();
}

absl::Status PlanTaker::TakeRows(LearnerFactory& rows) {
  if (!learner_.built()) return absl::OkStatus();
  DFL_ASSIGN_OR_RETURN(NodeLearner::Next next, learner_.OnRows(rows));
  absl::Status renewed;
  const bool ran = loop_.RunAndWait([&] {
    renewed = node_.RenewTrainer(std::make_unique<AsyncTrainer>(
        loop_, std::move(next.learner), steps_.pace));
  });
  if (!ran) return absl::UnavailableError("the daemon is shutting down");
  DFL_RETURN_IF_ERROR(renewed);
  learner_.SetRenewed(std::move(next.built));
  return absl::OkStatus();
}

void PlanTaker::LogTaken(const KeptPlan& plan, const std::string& who) {
  log_.Keep(
      config::LogLevel::kInfo, "plan-applied",
      absl::StrCat("version ", plan.version, " of ", plan.run_id, " by ", who));
}

}  // namespace dfl::app
