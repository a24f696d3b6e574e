// How nodes come by the newest plan: each takes it at a moment that is drawn
// for it, or it is given to one node as a record, as by `dflctl plan apply`,
// and the nodes pass it on. A node takes it once its disk has it.
#ifndef DFL_SIM_PLAN_ROLLOUT_H_
#define DFL_SIM_PLAN_ROLLOUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/sim/members.h"
#include "daemon/sim/plan_versions.h"
#include "daemon/sim/simulation_result.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::sim {

class PlanRollout {
 public:
  // All must outlive it. With `by_gossip` the members' nodes are to be made
  // with the records that they have from here on.
  PlanRollout(PlanVersions& versions, Members& members,
              simports::SimScheduler& scheduler,
              simports::SimScheduler::OwnerId owner, bool by_gossip);
  ~PlanRollout();

  // Times of changes are from `zero` on.
  void SetZero(absl::Time zero) { zero_ = zero; }

  // `version` is given out to all that are up, or to the first of them.
  void Begin(size_t version);
  // Gives `i`, which is up, the newest plan if it holds an older one. One that
  // is down is given it when it is back.
  void GiveNewest(int64_t i);
  // The plan of that number is in force at member `i`.
  void NoteInForce(int64_t i, uint64_t plan_version);

  // Moments drawn that are still to come; 0 by gossip.
  int64_t under_way() const { return under_way_; }
  const std::vector<PlanChange>& changes() const { return changes_; }

 private:
  class Listener;

  void Give(int64_t i);
  // Gives the newest version to member `i` as a record.
  void Bring(int64_t i);
  void Take(int64_t i, size_t version);

  PlanVersions& versions_;
  Members& members_;
  simports::SimScheduler& scheduler_;
  const simports::SimScheduler::OwnerId owner_;
  const records::UnsignedRecordCodec judge_;
  // One a member; none: plans are not given by gossip.
  std::vector<std::unique_ptr<Listener>> listeners_;
  size_t brought_ = 0;  // the newest version that a node was given as a record
  absl::Time zero_;
  int64_t under_way_ = 0;
  std::vector<PlanChange> changes_;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_PLAN_ROLLOUT_H_
