#include "daemon/sim/plan_versions.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::sim {
namespace {

// Who may have a link with whom: neighbours, and where the graph changes those
// of all its rounds, as in a daemon that is given all their addresses. Of
// graphs that are drawn afresh, or that follow who is there, nobody knows:
// everyone with everyone.
absl::StatusOr<std::vector<std::vector<int64_t>>> Contacts(
    const core::CheckedPlan& checked, bool membership) {
  const core::RunPlan& plan = *checked.plan;
  const auto size = static_cast<int64_t>(plan.members.size());
  std::vector<std::vector<int64_t>> contacts(plan.members.size());
  if (membership || (core::TopologyVaries(plan.topology) &&
                     plan.topology.kind != "time-varying")) {
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

absl::StatusOr<PlanVersions> PlanVersions::Make(const Scenario& scenario) {
  PlanVersions made;
  made.contacts_.resize(scenario.plan.members.size());
  made.catalogue_ = scenario.catalogue;
  made.versions_.push_back(
      {std::make_shared<const core::RunPlan>(scenario.plan),
       nullptr,
       {},
       {},
       {}});
  for (const NetworkEvent& event : scenario.events) {
    if (event.plan == nullptr) continue;
    made.versions_.push_back({event.plan, nullptr, {}, {}, event.within});
  }
  std::sort(made.versions_.begin(), made.versions_.end(),
            [](const PlanVersion& a, const PlanVersion& b) {
              return a.plan->version < b.plan->version;
            });
  for (PlanVersion& version : made.versions_) {
    DFL_RETURN_IF_ERROR(made.Derive(scenario, version));
  }
  return made;
}

absl::Status PlanVersions::Derive(const Scenario& scenario,
                                  PlanVersion& version) {
  const core::RunPlan& first = scenario.plan;
  core::RunPlan plan = *version.plan;
  version.members.assign(first.members.size(), false);
  version.nodes.resize(first.members.size());
  std::vector<int64_t> places;  // of its members
  for (core::MemberSpec& member : plan.members) {
    const auto found = std::lower_bound(
        first.members.begin(), first.members.end(), member,
        [](const core::MemberSpec& a, const core::MemberSpec& b) {
          return a.node < b.node;
        });
    member.rows = found->rows;  // of data they are known only now
    places.push_back(found - first.members.begin());
  }
  DFL_ASSIGN_OR_RETURN(const core::CheckedPlan checked,
                       core::CheckPlan(std::move(plan), *scenario.catalogue));
  DFL_ASSIGN_OR_RETURN(std::vector<core::DerivedPlan> nodes,
                       core::DeriveForAll(checked));
  DFL_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> contacts,
                       Contacts(checked, scenario.membership.has_value()));
  for (size_t k = 0; k < places.size(); ++k) {
    const auto i = static_cast<size_t>(places[k]);
    version.members[i] = true;
    version.nodes[i] = std::move(nodes[k]);
    std::vector<int64_t> others;
    for (const int64_t other : contacts[k]) {
      others.push_back(places[static_cast<size_t>(other)]);
    }
    std::vector<int64_t> all;
    std::set_union(contacts_[i].begin(), contacts_[i].end(), others.begin(),
                   others.end(), std::back_inserter(all));
    contacts_[i] = std::move(all);
  }
  version.plan = checked.plan;
  version.algorithm = checked.algorithm;
  return absl::OkStatus();
}

absl::StatusOr<PlanVersions::Given> PlanVersions::For(
    int64_t i, size_t version, const runtime::PlanFollower* follower) const {
  const PlanVersion& at = versions_[version];
  const core::DerivedPlan& derived = at.nodes[static_cast<size_t>(i)];
  if (follower == nullptr) return Given{at.plan, derived};
  const NodeId& self = first().members[static_cast<size_t>(i)].node;
  DFL_ASSIGN_OR_RETURN(
      core::DerivedPlan among,
      runtime::DeriveAmong(*at.plan, follower->Present(), self, *catalogue_));
  return Given{at.plan, std::move(among)};
}

runtime::KeptPlan PlanVersions::ToKeep(size_t version) const {
  const core::RunPlan& plan = *versions_[version].plan;
  return {absl::StrCat(plan.version), plan.version, plan.run_id};
}

std::map<NodeId, core::DrawnProbabilities> PlanVersions::Drawn() const {
  std::map<NodeId, core::DrawnProbabilities> all;
  for (size_t v = 0; v <= newest_; ++v) {
    for (size_t i = 0; i < contacts_.size(); ++i) {
      if (!versions_[v].members[i]) continue;
      const core::NodePlan& node = versions_[v].nodes[i].node;
      std::optional<core::DrawnProbabilities> drawn = core::DrawnBy(node);
      if (!drawn.has_value()) continue;
      core::DrawnProbabilities& of_node = all[node.self];
      if (drawn->p.has_value()) of_node.p = drawn->p;
      of_node.p_hat.merge(drawn->p_hat);
    }
  }
  return all;
}

}  // namespace dfl::sim
