#include "daemon/core/plan/plan_network.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::core {

bool RowsKnown(const RunPlan& plan) {
  return std::all_of(
      plan.members.begin(), plan.members.end(), [](const MemberSpec& member) {
        return member.rows > 0 || member.participation != Participation::kTrain;
      });
}

absl::Status UnknownMemberError(const std::string& key, const NodeId& node,
                                const RunPlan& plan) {
  std::vector<std::string> names;
  for (const MemberSpec& member : plan.members) {
    names.push_back(member.node.name());
  }
  const std::string nearest = NearestName(node.name(), names);
  const size_t shown = std::min(names.size(), kNamesShown);
  return absl::InvalidArgumentError(absl::StrCat(
      key, ": \"", node.name(), "\" is no member; ",
      nearest.empty() ? "" : absl::StrCat("did you mean \"", nearest, "\"? "),
      "members: ", absl::StrJoin(absl::MakeConstSpan(names).first(shown), ", "),
      shown < names.size()
          ? absl::StrCat(" and ", names.size() - shown, " more")
          : ""));
}

absl::StatusOr<Network> NetworkOf(const RunPlan& plan,
                                  const AlgorithmInfo& algorithm,
                                  const AnyGraph& graph) {
  Network network;
  network.members = MemberIds(plan);
  DFL_ASSIGN_OR_RETURN(network.knobs,
                       Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs));
  for (const auto& [node, overrides] : plan.nodes) {
    const std::optional<int64_t> place = PlaceOf(plan, node);
    if (!place || overrides.knobs.empty()) continue;
    DFL_ASSIGN_OR_RETURN(
        network.own_knobs[*place],
        Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs, overrides.knobs));
  }
  network.graph = graph;
  network.varies = TopologyVaries(plan.topology);
  network.stop_steps = plan.stop.steps;
  network.stop_rounds = plan.stop.rounds;
  network.stop_epochs = plan.stop.epochs;
  return network;
}

}  // namespace dfl::core
