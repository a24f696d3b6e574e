// The processes of the members: started and ended as dfld is, with a learner, a
// transport and a node each.
#ifndef DFL_SIM_PROCESSES_H_
#define DFL_SIM_PROCESSES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/sim/members.h"
#include "daemon/sim/plan_versions.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/tasks/task.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::sim {

// A node's incarnation, also the seed of its mini-batches. `start` differs from
// one start to the next; it is 1 for the first one.
uint64_t IncarnationOf(const core::RunPlan& plan, absl::string_view name,
                       int64_t start);

class Processes {
 public:
  // All must outlive it.
  Processes(const Scenario& scenario, Task& task, const PlanVersions& versions,
            Members& members, simports::SimScheduler& scheduler,
            simports::SimNetwork& network);
  // Ends them all.
  ~Processes();

  // Starts member `i`: it reads its disk, takes up the plan that is there, or
  // the newest one, and trains.
  // Errors: as Task::MakeLearner.
  absl::Status Boot(int64_t i);
  // Member `i`, if it knows others by membership, says goodbye to them.
  void Leave(int64_t i);
  // The process of `i` ends, as it is. Nothing when it is down.
  void TakeDown(int64_t i);
  // Member `i` has finished a step, or does not train any more.
  void NoteStepGap(int64_t i);

  // Models and parcels that nodes took so far.
  int64_t models_received() const;
  // Starts that found no whole state on the disk, but for a node's first.
  int64_t states_lost() const { return states_lost_; }
  // The longest time, in virtual seconds, from one finished step of a node that
  // trained to the next, or to the first.
  double longest_step_gap_s() const { return longest_step_gap_s_; }

 private:
  // Returns the number of this start for IncarnationOf.
  int64_t ReadDisk(int64_t i);
  runtime::MembershipOptions MembershipOf(int64_t i, uint64_t memory) const;
  absl::Duration GradientTime(int64_t i);

  const Scenario& scenario_;
  Task& task_;
  const PlanVersions& versions_;
  Members& members_;
  simports::SimScheduler& scheduler_;
  simports::SimNetwork& network_;
  std::vector<std::string> seeds_;  // addresses that all know
  int64_t models_received_ = 0;     // by nodes that are down
  int64_t states_lost_ = 0;
  double longest_step_gap_s_ = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_PROCESSES_H_
