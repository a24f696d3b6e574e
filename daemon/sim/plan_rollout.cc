#include "daemon/sim/plan_rollout.h"

#include "absl/status/statusor.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/config/plan_yaml.h"
#include "daemon/records/record_content.h"
#include "daemon/records/records_in_force.h"

namespace dfl::sim {

// Takes up the plans that one member is passed.
class PlanRollout::Listener final : public runtime::RecordListener {
 public:
  Listener(PlanRollout& rollout, int64_t place)
      : rollout_(rollout), place_(place) {}
  void OnRecordTaken(const runtime::Record& record,
                     const NodeId& /*from*/) override {
    rollout_.Take(place_, rollout_.versions_.PlaceOf(record.id.counter));
  }

 private:
  PlanRollout& rollout_;
  const int64_t place_;
};

PlanRollout::PlanRollout(PlanVersions& versions, Members& members,
                         simports::SimScheduler& scheduler,
                         simports::SimScheduler::OwnerId owner, bool by_gossip)
    : versions_(versions),
      members_(members),
      scheduler_(scheduler),
      owner_(owner),
      judge_("") {
  if (!by_gossip) return;
  for (int64_t i = 0; i < members_.size(); ++i) {
    listeners_.push_back(std::make_unique<Listener>(*this, i));
    members_[i].records = {.judge = &judge_,
                           .files = nullptr,
                           .listener = listeners_.back().get()};
  }
}

PlanRollout::~PlanRollout() = default;

void PlanRollout::Begin(size_t version) {
  versions_.GiveOut(version);
  PlanChange change;
  change.version = versions_.newest_plan().version;
  change.time_s = absl::ToDoubleSeconds(scheduler_.Now() - zero_);
  changes_.push_back(change);
  for (int64_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].up()) continue;
    if (listeners_.empty()) {
      Give(i);
    } else if (brought_ < version) {
      Bring(i);
    }
  }
}

void PlanRollout::GiveNewest(int64_t i) {
  const size_t newest = versions_.newest();
  if (members_[i].version >= newest) return;
  if (listeners_.empty()) {
    Give(i);
  } else if (brought_ < newest) {
    Bring(i);
  } else if (const auto plan =
                 records::NewestPlan(members_[i].linked->records().book())) {
    // Its disk had no room for it before.
    Take(i, versions_.PlaceOf(plan->id.counter));
  }
}

void PlanRollout::Bring(int64_t i) {
  const size_t version = versions_.newest();
  const core::RunPlan& plan = *versions_[version].plan;
  if (!versions_[version].members[static_cast<size_t>(i)]) return;
  const absl::StatusOr<std::string> record = records::MakeUnsignedRecord(
      records::RecordKind::kPlan, "", plan.version, config::WritePlan(plan), "",
      "the scenario", scheduler_.Now());
  DFL_CHECK(record.ok());
  // Refused where its disk has no room: the next one is given it.
  if (members_[i].linked->records().Offer(*record).ok()) brought_ = version;
}

void PlanRollout::Give(int64_t i) {
  const size_t version = versions_.newest();
  const auto nanos = static_cast<uint64_t>(
      absl::ToInt64Nanoseconds(versions_[version].within));
  Rng rng(DeriveSeed(DeriveSeed(versions_.first().seed, members_.name(i)),
                     "change", versions_[version].plan->version));
  const absl::Duration after =
      absl::Nanoseconds(static_cast<int64_t>(rng.Below(nanos + 1)));
  ++under_way_;
  scheduler_.At(scheduler_.Now() + after, owner_, [this, i, version] {
    --under_way_;
    Take(i, version);
  });
}

void PlanRollout::Take(int64_t i, size_t version) {
  Member& member = members_[i];
  if (!member.up() || member.version >= version) return;
  // It has left and joined again since that was drawn: there is a newer one.
  const PlanVersion& next = versions_[version];
  if (!next.members[static_cast<size_t>(i)]) return;
  // As dfld: what cannot be kept is refused. It is given again when the disk
  // has room.
  if (!member.disk.Accept(versions_.ToKeep(version))) return;
  member.version = version;
  absl::StatusOr<PlanVersions::Given> given =
      versions_.For(i, version, member.follower.get());
  // Checked with all members; among some of them it may not do.
  if (!given.ok()) return;
  DFL_CHECK(member.node->SetPlan(given->plan, nullptr).ok());
  if (member.follower != nullptr) {
    member.follower->Follow(given->document, given->plan);
  }
}

void PlanRollout::NoteInForce(int64_t i, uint64_t plan_version) {
  members_[i].disk.NoteInForce(plan_version);
  if (changes_.empty()) return;
  PlanChange& change = changes_.back();
  if (change.in_force_s.has_value()) return;
  for (const Member& member : members_) {
    if (member.in_run() && member.disk.version_in_force() < change.version) {
      return;
    }
  }
  change.in_force_s = absl::ToDoubleSeconds(scheduler_.Now() - zero_);
}

}  // namespace dfl::sim
