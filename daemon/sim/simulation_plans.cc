// The versions of the plan, and how nodes come by them.
#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/plan_topology.h"
#include "daemon/core/topology.h"
#include "daemon/sim/simulation.h"

namespace dfl::sim {
namespace {

// Who may have a link with whom: neighbours, and where the graph changes those
// of all its rounds, as in a daemon that is given all their addresses. Of graphs
// that are drawn afresh nobody knows: everyone with everyone.
absl::StatusOr<std::vector<std::vector<int64_t>>> Contacts(
    const core::RunPlan& plan) {
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
  DFL_ASSIGN_OR_RETURN(const core::AnyGraph window, core::PlanWindow(plan));
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
  versions_.push_back({plan_, {}, absl::ZeroDuration()});
  for (const NetworkEvent& event : scenario_.events) {
    if (event.plan == nullptr) continue;
    // Of data the rows are known only now.
    auto plan = std::make_shared<core::RunPlan>(*event.plan);
    plan->members = plan_->members;
    versions_.push_back({std::move(plan), {}, event.within});
  }
  std::sort(versions_.begin(), versions_.end(),
            [](const Version& a, const Version& b) {
              return a.plan->version < b.plan->version;
            });
  for (Version& version : versions_) {
    DFL_ASSIGN_OR_RETURN(version.nodes, core::DeriveNodePlans(*version.plan));
    DFL_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> contacts,
                         Contacts(*version.plan));
    for (size_t i = 0; i < slots_.size(); ++i) {
      std::vector<int64_t>& all = slots_[i].contacts;
      std::vector<int64_t> both;
      std::set_union(all.begin(), all.end(), contacts[i].begin(),
                     contacts[i].end(), std::back_inserter(both));
      all = std::move(both);
    }
  }
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
  slot.version = version;
  const Version& next = versions_[version];
  DFL_CHECK(slot.node
                ->SetDerivedPlan(next.plan, next.nodes[static_cast<size_t>(i)],
                                 nullptr)
                .ok());
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
