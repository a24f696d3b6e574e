// The versions of the plan, and how nodes come by them.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {
namespace {

// Who may have a link with whom: neighbours, and where the graph changes those
// of all its rounds, as in a daemon that is given all their addresses. Of graphs
// that are drawn afresh nobody knows: everyone with everyone.
absl::StatusOr<std::vector<std::vector<int64_t>>> Contacts(
    const core::CheckedPlan& checked) {
  const core::RunPlan& plan = *checked.plan;
  const auto size = static_cast<int64_t>(plan.members.size());
  std::vector<std::vector<int64_t>> contacts(plan.members.size());
  if (core::TopologyVaries(plan.topology) &&
      plan.topology.kind != "time-varying") {
    for (int64_t a = 0; a < size; ++a) {
      for (int64_t b = 0; b < size; ++b) {
        if (a != b) contacts[static_cast<size_t>(a)].push_back(b);
      }
    }
    return contacts;
  }
  core::AnyGraph window = *checked.graph;
  if (core::TopologyVaries(plan.topology)) {
    DFL_ASSIGN_OR_RETURN(window, core::PlanWindow(plan));
  }
  const auto* directed = std::get_if<core::Digraph>(&window);
  const core::Graph graph = directed != nullptr ? directed->Undirected()
                                                : std::get<core::Graph>(window);
  for (int64_t a = 0; a < size; ++a) {
    contacts[static_cast<size_t>(a)] = graph.neighbours(a);
  }
  return contacts;
}

}  // namespace

absl::Status Simulation::MakeVersions() {
  versions_.push_back({plan_, {}, {}, absl::ZeroDuration()});
  for (const NetworkEvent& event : scenario_.events) {
    if (event.plan == nullptr) continue;
    versions_.push_back({event.plan, {}, {}, event.within});
  }
  std::sort(versions_.begin(), versions_.end(),
            [](const Version& a, const Version& b) {
              return a.plan->version < b.plan->version;
            });
  for (Version& version : versions_) DFL_RETURN_IF_ERROR(Derive(version));
  return absl::OkStatus();
}

absl::Status Simulation::Derive(Version& version) {
  core::RunPlan plan = *version.plan;
  version.members.assign(slots_.size(), false);
  version.nodes.resize(slots_.size());
  std::vector<int64_t> places;  // of its members
  for (core::MemberSpec& member : plan.members) {
    const auto found = std::lower_bound(
        plan_->members.begin(), plan_->members.end(), member,
        [](const core::MemberSpec& a, const core::MemberSpec& b) {
          return a.node < b.node;
        });
    member.rows = found->rows;  // of data they are known only now
    places.push_back(found - plan_->members.begin());
  }
  DFL_ASSIGN_OR_RETURN(const core::CheckedPlan checked,
                       core::CheckPlan(std::move(plan)));
  DFL_ASSIGN_OR_RETURN(std::vector<core::DerivedPlan> nodes,
                       core::DeriveForAll(checked));
  DFL_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> contacts,
                       Contacts(checked));
  for (size_t k = 0; k < places.size(); ++k) {
    const auto i = static_cast<size_t>(places[k]);
    version.members[i] = true;
    version.nodes[i] = std::move(nodes[k]);
    std::vector<int64_t> others;
    for (const int64_t other : contacts[k]) {
      others.push_back(places[static_cast<size_t>(other)]);
    }
    std::vector<int64_t> all;
    std::set_union(slots_[i].contacts.begin(), slots_[i].contacts.end(),
                   others.begin(), others.end(), std::back_inserter(all));
    slots_[i].contacts = std::move(all);
  }
  version.plan = checked.plan;
  return absl::OkStatus();
}

void Simulation::BeginChange(size_t version) {
  newest_ = version;
  PlanChange change;
  change.version = newest_plan().version;
  change.time_s = absl::ToDoubleSeconds(scheduler_.Now() - zero_);
  result_.changes.push_back(change);
  for (int64_t i = 0; i < size(); ++i) {
    if (slots_[static_cast<size_t>(i)].up()) GiveNewest(i);
  }
}

// One that is down at that moment is given it when it is back.
void Simulation::GiveNewest(int64_t i) {
  const size_t version = newest_;
  const auto nanos = static_cast<uint64_t>(
      absl::ToInt64Nanoseconds(versions_[version].within));
  Rng rng(DeriveSeed(DeriveSeed(plan_->seed, name(i)), "change",
                     versions_[version].plan->version));
  const absl::Duration after =
      absl::Nanoseconds(static_cast<int64_t>(rng.Below(nanos + 1)));
  ++takes_;
  scheduler_.At(scheduler_.Now() + after, owner_, [this, i, version] {
    --takes_;
    TakePlan(i, version);
  });
}

void Simulation::TakePlan(int64_t i, size_t version) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  if (!slot.up() || slot.version >= version) return;
  // It has left and joined again since that was drawn: there is a newer one.
  if (!versions_[version].members[static_cast<size_t>(i)]) return;
  // As dfld: what cannot be kept is refused. It is given again when the disk has
  // room (SetDiskFault).
  if (!WriteDisk(i, version).ok()) return;
  slot.version = version;
  const Version& next = versions_[version];
  DFL_CHECK(
      slot.node->SetPlan(next.nodes[static_cast<size_t>(i)], nullptr).ok());
}

void Simulation::NoteDrawn() {
  for (size_t v = 0; v <= newest_; ++v) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!versions_[v].members[i]) continue;
      std::optional<core::DrawnProbabilities> drawn =
          core::DrawnBy(versions_[v].nodes[i].node);
      if (!drawn.has_value()) continue;
      core::DrawnProbabilities& all = result_.drawn[slots_[i].self];
      if (drawn->p.has_value()) all.p = drawn->p;
      all.p_hat.merge(drawn->p_hat);
    }
  }
}

void Simulation::NotePlanInForce() {
  if (result_.changes.empty()) return;
  PlanChange& change = result_.changes.back();
  if (change.in_force_s.has_value()) return;
  for (const Slot& slot : slots_) {
    if (slot.in_run() && slot.plan_in_force < change.version) return;
  }
  change.in_force_s = absl::ToDoubleSeconds(scheduler_.Now() - zero_);
}

}  // namespace dfl::sim
