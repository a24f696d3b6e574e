// Puts together what a node tells about itself.
#ifndef DFL_RUNTIME_STATUS_REPORT_H_
#define DFL_RUNTIME_STATUS_REPORT_H_

#include <cstdint>

#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/links/links.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/status.h"
#include "daemon/runtime/together.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

// The parts whose state is told.
struct ReportedParts {
  const OwnState& own;
  const Training& training;
  const Evaluations& evaluations;
  const PeerTable& peers;
  const Links& links;
  const Together& together;
  const core::RunPlan* pending;  // the plan that waits; null: none
};

// Status at `now`, by the loop's clock. The fields of the program around the
// node (incarnation) are the caller's.
NodeStatus ReportStatus(const ReportedParts& parts, absl::Time now);

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_STATUS_REPORT_H_
