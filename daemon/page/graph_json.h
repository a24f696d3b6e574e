// The graph of a plan, as the page draws it (docs/schema/page-graph.json).
#ifndef DFL_PAGE_GRAPH_JSON_H_
#define DFL_PAGE_GRAPH_JSON_H_

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "daemon/base/ids.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::page {

using Json = nlohmann::ordered_json;

// Of a network with more members only the edges of `self` are told.
inline constexpr int64_t kMostDrawn = 256;

// The graph of `round` (>= 0) among the plan's members. `plan` has passed
// CheckPlan, and who takes part is filled in. Where not all edges are told,
// "note" says why.
Json GraphJson(const core::RunPlan& plan, int64_t round,
               const std::optional<NodeId>& self);

// A graph without a node; `note` says why.
Json NoGraphJson(const std::string& note);

}  // namespace dfl::page

#endif  // DFL_PAGE_GRAPH_JSON_H_
