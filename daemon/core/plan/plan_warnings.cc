#include "daemon/core/plan/plan_warnings.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/topology.h"
#include "daemon/core/plan/check_aggregation.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::core {
namespace {

void WarnOfParts(const RunPlan& plan, const AnyGraph& window,
                 std::vector<std::string>& warnings) {
  const Digraph* directed = std::get_if<Digraph>(&window);
  const std::vector<std::vector<int64_t>> parts =
      directed != nullptr ? directed->StrongComponents()
                          : std::get<Graph>(window).Components();
  if (parts.size() <= 1) return;
  std::vector<std::string> texts;
  for (const std::vector<int64_t>& part : parts) {
    if (texts.size() == kNamesShown) {
      texts.push_back("...");
      break;
    }
    std::vector<std::string> names;
    for (const int64_t i : part) {
      if (names.size() == kNamesShown) {
        names.push_back("...");
        break;
      }
      names.push_back(plan.members[static_cast<size_t>(i)].node.name());
    }
    texts.push_back(absl::StrCat("{", absl::StrJoin(names, ", "), "}"));
  }
  const std::string key = absl::StrCat(
      "topology.", plan.topology.kind == "time-varying" ? "edge_sets" : "edges",
      ": the graph ", TopologyVaries(plan.topology) ? "of all rounds " : "");
  warnings.push_back(absl::StrCat(
      key,
      directed != nullptr
          ? absl::StrCat("is not strongly connected: what some members learn "
                         "never reaches others; its strongly connected parts: ")
          : absl::StrCat("falls into ", parts.size(),
                         " parts that never hear of each other: "),
      absl::StrJoin(texts, ", ")));
}

// Two that cannot be dialled never meet.
void WarnOfUndialable(const RunPlan& plan, const AnyGraph& window,
                      std::vector<std::string>& warnings) {
  const Digraph* directed = std::get_if<Digraph>(&window);
  const std::vector<std::pair<int64_t, int64_t>> edges =
      directed != nullptr ? directed->Arcs() : std::get<Graph>(window).Edges();
  std::vector<std::string> pairs;
  for (const auto& [a, b] : edges) {
    const MemberSpec& first = plan.members[static_cast<size_t>(a)];
    const MemberSpec& second = plan.members[static_cast<size_t>(b)];
    if (first.dialable || second.dialable) continue;
    if (pairs.size() == kNamesShown) {
      pairs.emplace_back("...");
      break;
    }
    pairs.push_back(absl::StrCat(first.node.name(), " - ", second.node.name()));
  }
  if (pairs.empty()) return;
  warnings.push_back(absl::StrCat(
      "topology.kind: ", KindInForce(plan),
      " has edges between members that cannot be dialled, so nothing travels "
      "over them: ",
      absl::StrJoin(pairs, ", ")));
}

void WarnOfConnections(const RunPlan& plan, const AlgorithmInfo& algorithm,
                       const AnyGraph& window,
                       std::vector<std::string>& warnings) {
  if (algorithm.exchange == Exchange::kNone) return;
  WarnOfParts(plan, window, warnings);
  WarnOfUndialable(plan, window, warnings);
}

// Whether all members have as many rows, as far as the plan tells.
bool RowsAreEqual(const RunPlan& plan) {
  return RowsKnown(plan) &&
         std::all_of(plan.members.begin(), plan.members.end(),
                     [&plan](const MemberSpec& member) {
                       return member.rows == plan.members[0].rows;
                     });
}

// Nodes that go from round to round together, but come to the end of the run in
// different ones: the last of them mix with nobody.
void WarnOfEnds(const RunPlan& plan, const AlgorithmInfo& algorithm,
                const Network& network, std::vector<std::string>& warnings) {
  const auto warn = [&](absl::string_view key, absl::string_view why) {
    warnings.push_back(
        absl::StrCat("stop.", key, ": ", why,
                     ", so nodes end in different rounds and the last of them "
                     "go on alone; stop.rounds ends all in the same round"));
  };
  StepsOf steps = StepsOf::kAll;
  bool same_steps = true;
  for (int64_t i = 0; i < static_cast<int64_t>(network.members.size()); ++i) {
    const KnobValues& knobs = network.KnobsOf(i).values();
    if (algorithm.steps_of != nullptr) {
      steps = std::max(steps, algorithm.steps_of(network.KnobsOf(i)));
    }
    for (const char* name : {"K", "E"}) {
      const auto own = knobs.find(name);
      if (own == knobs.end()) continue;
      same_steps = same_steps && own->second == network.knobs.values().at(name);
    }
  }
  const bool by_steps = plan.stop.steps > 0 && network.members.size() > 1;
  const bool by_epochs = plan.stop.epochs > 0 && network.members.size() > 1;
  if (steps == StepsOf::kChance) {
    const std::string why =
        absl::StrCat("under ", algorithm.name,
                     " a node may take fewer steps than another in as many "
                     "rounds");
    if (by_steps) warn("steps", why);
    if (by_epochs) warn("epochs", why);
  } else if (!same_steps) {
    const std::string why = "not all nodes take as many steps in a round";
    if (by_steps) warn("steps", why);
    if (by_epochs) warn("epochs", why);
  } else if (!RowsAreEqual(plan)) {
    if (by_steps && steps == StepsOf::kRows) {
      warn("steps", "a node with more rows takes more steps in a round");
    }
    if (by_epochs && steps == StepsOf::kAll) {
      warn("epochs", "a node with fewer rows ends its epochs earlier");
    }
  }
}

// Values that the chosen kind does not look at.
void WarnOfIgnored(const TopologySpec& topology,
                   std::vector<std::string>& warnings) {
  const auto ignored = [&warnings](absl::string_view key,
                                   absl::string_view why) {
    warnings.push_back(
        absl::StrCat("topology.", key, ": ignored, since ", why));
  };
  const std::string kind = absl::StrCat("topology.kind is ", topology.kind);
  if (topology.kind != "explicit" && !topology.edges.empty()) {
    ignored("edges", kind);
  }
  if (topology.kind != "time-varying" && !topology.edge_sets.empty()) {
    ignored("edge_sets", kind);
  }
  if (topology.directed && topology.weights != TopologySpec().weights) {
    ignored("weights",
            "a directed graph has its own, 1/(1 + number of in- or "
            "out-neighbours)");
  } else if (topology.weights != "explicit" && !topology.matrix.empty()) {
    ignored("matrix", absl::StrCat("topology.weights is ", topology.weights));
  }
}

}  // namespace

std::vector<std::string> PlanWarnings(const RunPlan& plan,
                                      const Catalogue& catalogue) {
  const absl::StatusOr<CheckedPlan> checked = CheckPlan(plan, catalogue);
  return checked.ok() ? PlanWarnings(*checked) : std::vector<std::string>();
}

std::vector<std::string> ConnectionWarnings(const RunPlan& plan,
                                            const AlgorithmInfo& algorithm) {
  std::vector<std::string> warnings;
  const absl::StatusOr<AnyGraph> window = PlanWindow(plan);
  if (window.ok()) WarnOfConnections(plan, algorithm, *window, warnings);
  return warnings;
}

std::vector<std::string> PlanWarnings(const CheckedPlan& checked) {
  const RunPlan& plan = *checked.plan;
  const AlgorithmInfo& algorithm = *checked.algorithm;
  std::vector<std::string> warnings;
  const absl::StatusOr<AnyGraph> window =
      TopologyVaries(plan.topology) ? PlanWindow(plan) : *checked.graph;
  if (!window.ok()) return warnings;
  WarnOfConnections(plan, algorithm, *window, warnings);
  WarnOfIgnored(plan.topology, warnings);
  if (plan.members.empty()) return warnings;
  const absl::StatusOr<Network> network =
      NetworkOf(plan, algorithm, *checked.graph);
  if (!network.ok()) return warnings;
  if (algorithm.lock_step) WarnOfEnds(plan, algorithm, *network, warnings);
  for (std::string& text :
       AggregationWarnings(plan, algorithm, *checked.graph)) {
    warnings.push_back(std::move(text));
  }
  if (algorithm.warnings == nullptr) return warnings;
  for (std::string& text : algorithm.warnings(*network, *window)) {
    warnings.push_back(std::move(text));
  }
  return warnings;
}

}  // namespace dfl::core
