#include "daemon/core/plan/check_aggregation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/names.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/plan/participants.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_topology.h"

namespace dfl::core {
namespace {

// The share of coordinates that a message carries.
double MessageShare(const RunPlan& plan, const AlgorithmInfo& algorithm,
                    const Knobs& knobs) {
  if (plan.codec.format.coordinates == Coordinates::kDense) return 1;
  return algorithm.message_rate != nullptr ? algorithm.message_rate(knobs)
                                           : plan.codec.rate;
}

// Says which member has too few values in a round, on average and with its own
// among them; "": none, or the graph changes.
std::string TooFewValues(const RunPlan& plan, const AlgorithmInfo& algorithm,
                         const AnyGraph& graph) {
  const Graph* edges = std::get_if<Graph>(&graph);
  if (edges == nullptr || TopologyVaries(plan.topology)) return "";
  const absl::StatusOr<Network> network = NetworkOf(plan, algorithm, graph);
  if (!network.ok()) return "";
  const int64_t needed = plan.aggregation.values_needed();
  for (int64_t i = 0; i < edges->size(); ++i) {
    const Knobs& knobs = network->KnobsOf(i);
    int64_t heard = edges->degree(i);
    if (algorithm.heard_at_once != nullptr) {
      heard = std::min(heard, algorithm.heard_at_once(knobs, heard));
    }
    const double share = MessageShare(plan, algorithm, knobs);
    const double values = 1 + share * static_cast<double>(heard);
    if (values + 1e-9 >= static_cast<double>(needed)) continue;
    std::string text = absl::StrFormat(
        "needs 2 f + 1 = %d values for each coordinate, its own among them, "
        "but %s hears %d models in a round",
        needed, plan.members[static_cast<size_t>(i)].node.name(), heard);
    if (share < 1) {
      absl::StrAppendFormat(
          &text,
          ", each of %.3g of the coordinates, so one has %.3g on average",
          share, values);
    }
    return text;
  }
  return "";
}

}  // namespace

absl::Status CheckAggregation(const RunPlan& plan,
                              const AlgorithmInfo& algorithm,
                              const AnyGraph& graph) {
  const AggregationSpec& spec = plan.aggregation;
  const std::string rule = ToString(spec.rule);
  if (spec.hostile < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("aggregation.hostile: ", spec.hostile,
                     " is not allowed; allowed: integer >= 1"));
  }
  if (!(std::isfinite(spec.radius) && spec.radius >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("aggregation.radius: ", ToString(spec.radius),
                     " is not allowed; allowed: number >= 0 (0 = as far as the "
                     "neighbours' distances say)"));
  }
  if (spec.radius != 0 && spec.rule != AggregationRule::kCentredClipping) {
    return absl::InvalidArgumentError(absl::StrCat(
        "aggregation.radius: ", ToString(spec.radius),
        " is not allowed; allowed: 0, since aggregation.rule is ", rule));
  }
  if (!spec.robust()) return absl::OkStatus();
  if (!algorithm.mixes_models) {
    return absl::InvalidArgumentError(absl::StrCat(
        "aggregation.rule: \"", rule,
        "\" is not allowed; allowed: mean, since algorithm.name is ",
        algorithm.name,
        algorithm.exchange == Exchange::kNone
            ? ", which exchanges nothing"
            : ", which does not average the models of several neighbours"));
  }
  if (FollowsView(plan)) return absl::OkStatus();
  const std::string few = TooFewValues(plan, algorithm, graph);
  if (few.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "aggregation.hostile: ", spec.hostile, " is not allowed: ", rule, " ",
      few, "; take fewer, more edges or larger messages"));
}

std::vector<std::string> AggregationWarnings(const RunPlan& plan,
                                             const AlgorithmInfo& algorithm,
                                             const AnyGraph& graph) {
  std::vector<std::string> warnings;
  const AggregationSpec& spec = plan.aggregation;
  if (!spec.robust()) return warnings;
  if (FollowsView(plan)) {
    const std::string few = TooFewValues(plan, algorithm, graph);
    if (!few.empty()) {
      warnings.push_back(
          absl::StrCat("aggregation.hostile: ", ToString(spec.rule), " ", few,
                       "; what has fewer is not mixed"));
    }
  }
  if (spec.rule != AggregationRule::kCentredClipping &&
      plan.topology.weights == "explicit") {
    warnings.push_back(absl::StrCat(
        "topology.weights: ignored, since aggregation.rule is ",
        ToString(spec.rule), ", which gives all values the same weight"));
  }
  return warnings;
}

}  // namespace dfl::core
