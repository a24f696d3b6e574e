// What the page shows of the network, each as a document of its own
// (docs/schema/page-*.json): the members, the graph, the plans, the events.
#ifndef DFL_WEB_PAGE_NETWORK_JSON_H_
#define DFL_WEB_PAGE_NETWORK_JSON_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/control/backend.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/web/page/status_json.h"

namespace dfl::web {

// Of a longer document only the beginning is told.
inline constexpr size_t kMostPlanBytes = size_t{64} << 10;

Json MembersJson(const control::MemberTable& table);

// The graph of a round of `plan` among the members that are there. "note" says
// why there are no edges, or not all.
Json GraphJson(const control::PlanDocument& plan, int64_t round,
               const control::MemberTable& table);

// Which versions there are, and who made them.
Json PlansJson(const control::PlanDocument& newest,
               const std::vector<control::RecordInfo>& records);

// One version with its document.
Json PlanJson(const control::PlanDocument& plan);

// Those with a number of at least `from`. The first event that a daemon told
// has number 0.
Json EventsJson(const control::KeptEvents& kept, int64_t from);

// The number that the next event will have.
inline int64_t EventsEnd(const control::KeptEvents& kept) {
  return kept.forgotten + static_cast<int64_t>(kept.events.size());
}

}  // namespace dfl::web

#endif  // DFL_WEB_PAGE_NETWORK_JSON_H_
