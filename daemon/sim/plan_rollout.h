// How nodes come by the newest plan: each takes it at a moment that is drawn
// for it, once its disk has it.
#ifndef DFL_SIM_PLAN_ROLLOUT_H_
#define DFL_SIM_PLAN_ROLLOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "daemon/sim/members.h"
#include "daemon/sim/plan_versions.h"
#include "daemon/sim/simulation_result.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::sim {

class PlanRollout {
 public:
  // All must outlive it.
  PlanRollout(PlanVersions& versions, Members& members,
              simports::SimScheduler& scheduler,
              simports::SimScheduler::OwnerId owner);

  // Times of changes are from `zero` on.
  void SetZero(absl::Time zero) { zero_ = zero; }

  // `version` is given out to all that are up.
  void Begin(size_t version);
  // Gives `i`, which is up, the newest plan if it holds an older one. One that
  // is down is given it when it is back.
  void GiveNewest(int64_t i);
  // The plan of that number is in force at member `i`.
  void NoteInForce(int64_t i, uint64_t plan_version);

  // Moments drawn that are still to come.
  int64_t under_way() const { return under_way_; }
  const std::vector<PlanChange>& changes() const { return changes_; }

 private:
  void Give(int64_t i);
  void Take(int64_t i, size_t version);

  PlanVersions& versions_;
  Members& members_;
  simports::SimScheduler& scheduler_;
  const simports::SimScheduler::OwnerId owner_;
  absl::Time zero_;
  int64_t under_way_ = 0;
  std::vector<PlanChange> changes_;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_PLAN_ROLLOUT_H_
