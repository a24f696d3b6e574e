#include "daemon/runtime/following/plan_follower.h"

#include <algorithm>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/participants.h"

namespace dfl::runtime {

std::vector<core::MemberSpec> PresentAmong(
    const std::map<NodeId, Member>& members) {
  std::vector<core::MemberSpec> present;
  for (const auto& [node, member] : members) {
    if (!member.present() ||
        member.facts.condition == ports::Condition::kDraining) {
      continue;
    }
    core::MemberSpec spec;
    spec.node = node;
    spec.rows = member.facts.rows;
    spec.dialable = !member.facts.addresses.empty();
    spec.participation = member.facts.participation;
    spec.labels = member.facts.labels;
    present.push_back(std::move(spec));
  }
  return present;
}

absl::StatusOr<core::DerivedPlan> DeriveAmong(
    core::RunPlan plan, const std::vector<core::MemberSpec>& present,
    const NodeId& self, const core::Catalogue& catalogue) {
  core::ResolveParticipants(plan, present, catalogue);
  DFL_ASSIGN_OR_RETURN(core::CheckedPlan checked,
                       core::CheckPlan(std::move(plan), catalogue));
  absl::StatusOr<core::DerivedPlan> derived = core::Derive(checked, self);
  if (!absl::IsNotFound(derived.status())) return derived;
  return core::DeriveForWatcher(std::move(checked), self);
}

// What the worker does; nobody else touches it meanwhile.
struct PlanFollower::Job {
  std::shared_ptr<const core::RunPlan> document;
  std::vector<core::MemberSpec> members;  // that it has among `present`
  std::vector<core::MemberSpec> present;
  absl::StatusOr<core::DerivedPlan> derived =
      absl::InternalError("not derived");
};

PlanFollower::PlanFollower(NodeId self, ports::Loop& loop,
                           ports::Worker& worker, Membership& membership,
                           Node& node, const core::Catalogue& catalogue)
    : self_(std::move(self)),
      loop_(loop),
      worker_(worker),
      membership_(membership),
      node_(node),
      catalogue_(catalogue),
      alive_(std::make_shared<PlanFollower*>(this)) {
  membership_.AddListener(this);
}

PlanFollower::~PlanFollower() {
  *alive_ = nullptr;
  membership_.RemoveListener(this);
  loop_.Cancel(timer_);
}

std::vector<core::MemberSpec> PlanFollower::Present() const {
  if (membership_.enabled()) return PresentAmong(membership_.members());
  core::MemberSpec self;
  self.node = self_;
  return {std::move(self)};
}

void PlanFollower::Follow(std::shared_ptr<const core::RunPlan> document,
                          const core::DerivedPlan& plan) {
  document_ = std::move(document);
  members_ = plan.plan().members;
  refused_.reset();
  problem_ = absl::OkStatus();
  TellNeighbours(plan.node);
  Look();
}

void PlanFollower::OnMember(const NodeId& /*node*/, const Member* /*member*/) {
  if (document_ == nullptr || timer_ != 0) return;
  // Never from inside the call: the table may change further.
  Schedule(std::max(absl::ZeroDuration(), looked_ + kGather - loop_.Now()));
}

void PlanFollower::Schedule(absl::Duration delay) {
  timer_ = loop_.After(delay, [this] {
    timer_ = 0;
    Look();
  });
}

void PlanFollower::Look() {
  if (document_ == nullptr || !membership_.enabled()) return;
  if (deriving_) {
    again_ = true;
    return;
  }
  core::RunPlan next = *document_;
  std::vector<core::MemberSpec> present = Present();
  core::ResolveParticipants(next, present, catalogue_);
  if (next.members == refused_) return;
  if (next.members == members_) {
    refused_.reset();
    problem_ = absl::OkStatus();
    return;
  }
  looked_ = loop_.Now();
  auto job = std::make_shared<Job>();
  job->document = document_;
  job->members = std::move(next.members);
  job->present = std::move(present);
  deriving_ = true;
  worker_.Run(
      [job, self = self_, &catalogue = catalogue_] {
        job->derived =
            DeriveAmong(*job->document, job->present, self, catalogue);
      },
      [job, alive = alive_] {
        if (*alive != nullptr) (*alive)->Take(*job);
      });
}

void PlanFollower::Take(Job& job) {
  deriving_ = false;
  const bool again = std::exchange(again_, false);
  if (job.document != document_) {  // another plan was given meanwhile
    Look();
    return;
  }
  problem_ = job.derived.status();
  if (problem_.ok()) problem_ = node_.FollowView(*job.derived);
  if (problem_.ok()) {
    members_ = std::move(job.members);
    refused_.reset();
    TellNeighbours(job.derived->node);
    if (followed_) followed_(*job.derived);
  } else {
    refused_ = std::move(job.members);
  }
  if (again) Look();
}

void PlanFollower::TellNeighbours(const core::NodePlan& plan) {
  std::vector<NodeId> neighbours;
  neighbours.reserve(plan.neighbours.size());
  for (const core::Neighbour& neighbour : plan.neighbours) {
    neighbours.push_back(neighbour.node);
  }
  membership_.SetNeighbours(std::move(neighbours));
}

}  // namespace dfl::runtime
