#include "daemon/page/graph_json.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::page {
namespace {

using Edges = std::vector<std::pair<int64_t, int64_t>>;

Edges EdgesOf(const core::AnyGraph& graph) {
  if (const auto* directed = std::get_if<core::Digraph>(&graph)) {
    return directed->Arcs();
  }
  return std::get<core::Graph>(graph).Edges();
}

}  // namespace

Json NoGraphJson(const std::string& note) {
  return Json{{"kind", ""},
              {"round", 0},
              {"directed", false},
              {"varies", false},
              {"members", Json::array()},
              {"edges", Json::array()},
              {"note", note}};
}

Json GraphJson(const core::RunPlan& plan, int64_t round,
               const std::optional<NodeId>& self) {
  const absl::StatusOr<core::AnyGraph> graph = core::PlanGraph(plan, round);
  if (!graph.ok()) return NoGraphJson(std::string(graph.status().message()));
  const auto size = static_cast<int64_t>(plan.members.size());
  const bool whole = size <= kMostDrawn;
  const std::optional<int64_t> own =
      self.has_value() ? core::PlaceOf(plan, *self) : std::nullopt;
  Json out = NoGraphJson("");
  out["kind"] = core::KindInForce(plan);
  out["round"] = round;
  out["directed"] = std::holds_alternative<core::Digraph>(*graph);
  out["varies"] = core::TopologyVaries(plan.topology);
  // Members are named by their places among those that are told.
  std::vector<int64_t> places(plan.members.size(), -1);
  const auto place = [&](int64_t member) {
    int64_t& at = places[static_cast<size_t>(member)];
    if (at < 0) {
      at = static_cast<int64_t>(out["members"].size());
      out["members"].push_back(
          plan.members[static_cast<size_t>(member)].node.name());
    }
    return at;
  };
  if (whole) {
    for (int64_t member = 0; member < size; ++member) place(member);
  }
  for (const auto& [a, b] : EdgesOf(*graph)) {
    if (!whole && own != a && own != b) continue;
    const int64_t from = place(a);
    out["edges"].push_back(Json::array({from, place(b)}));
  }
  if (!whole) {
    out["note"] = absl::StrCat("The network has ", size,
                               " members. Only the edges of this node are "
                               "drawn.");
  }
  return out;
}

}  // namespace dfl::page
