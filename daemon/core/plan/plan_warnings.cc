#include "daemon/core/plan/plan_warnings.h"

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

std::vector<std::string> PlanWarnings(const CheckedPlan& checked) {
  const RunPlan& plan = *checked.plan;
  const AlgorithmInfo& algorithm = *checked.algorithm;
  std::vector<std::string> warnings;
  const absl::StatusOr<AnyGraph> window =
      TopologyVaries(plan.topology) ? PlanWindow(plan) : *checked.graph;
  if (!window.ok()) return warnings;
  if (algorithm.exchange != Exchange::kNone) {
    WarnOfParts(plan, *window, warnings);
  }
  WarnOfIgnored(plan.topology, warnings);
  if (algorithm.warnings == nullptr) return warnings;
  const absl::StatusOr<Network> network =
      NetworkOf(plan, algorithm, *checked.graph);
  if (!network.ok()) return warnings;
  for (std::string& text : algorithm.warnings(*network, *window)) {
    warnings.push_back(std::move(text));
  }
  return warnings;
}

}  // namespace dfl::core
