// How long a node waits for its neighbours, as their links need it:
//
//   deadline.exchange         for what a neighbour does itself
//   + round trip + transfer   of the slowest link, as measured: twice the mean
//                             of probes; mean + 4 deviations (link_times.h)
//
// between the plan's floor and ceiling. So a slow link is waited for, and a
// slow node holds nobody up for longer than deadline.exchange.
//
// Loop only.
#ifndef DFL_RUNTIME_PATIENCE_H_
#define DFL_RUNTIME_PATIENCE_H_

#include <algorithm>

#include "absl/time/time.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/run_in_force.h"

namespace dfl::runtime {

// `deadline` is a multiple of deadline.exchange, as where an answer takes two
// hops; the result is the same multiple.
inline absl::Duration PatienceWith(const RunInForce& run, const Links& links,
                                   absl::Duration deadline) {
  const core::DeadlineSpec& spec = run.plan().deadline;
  absl::Duration link;
  for (const core::Neighbour& neighbour : run.node().neighbours) {
    link = std::max(link, links.TimeOver(neighbour.node));
  }
  const absl::Duration one =
      std::clamp(spec.exchange + link, std::min(spec.floor, spec.Ceiling()),
                 spec.Ceiling());
  return one * absl::FDivDuration(deadline, spec.exchange);
}

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PATIENCE_H_
