// A whole network in one process and in virtual time: a runtime::Node a member,
// on simports, with the scenario's links, speeds and faults.
//
// Everything random comes from the plan's seed, so that one scenario and seed
// give the same run bit for bit; Result::digest is of all parameters and of all
// that happened. Single-threaded.
//
// Its parts have state of their own: the members (members.h) with their disks
// (node_disk.h) and processes (processes.h), the versions of the plan
// (plan_versions.h) and how they are given out (plan_rollout.h), what is wrong
// with the links (link_faults.h), and the rows of metrics (metrics_rows.h).
#ifndef DFL_SIM_SIMULATION_H_
#define DFL_SIM_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/ports/events.h"
#include "daemon/sim/link_faults.h"
#include "daemon/sim/members.h"
#include "daemon/sim/metrics_rows.h"
#include "daemon/sim/plan_rollout.h"
#include "daemon/sim/plan_versions.h"
#include "daemon/sim/processes.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/simulation_result.h"
#include "daemon/sim/tasks/data_task.h"
#include "daemon/sim/tasks/task.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"

namespace dfl::sim {

class Simulation {
 public:
  // Makes or reads the data, and makes the nodes; nothing runs yet. `learners`
  // are for a problem of data.
  // Errors: as PlanVersions::Make and MakeDataTask; all else ParseScenario has
  // checked.
  static absl::StatusOr<std::unique_ptr<Simulation>> Create(
      Scenario scenario, const OpenDataLearners& learners = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Runs to the end; once. `go_on` is asked every few thousand events and ends
  // the run by false.
  Result Run(const std::function<bool(const Progress&)>& go_on);

  // What the scenario asks for that will have no effect.
  const std::vector<std::string>& notes() const { return notes_; }
  const Scenario& scenario() const { return scenario_; }
  int64_t size() const { return members_.size(); }
  // The parameters of a node; empty while it is down.
  absl::Span<const float> parameters(int64_t i) const;

 private:
  class Ear;

  // `scenario` and `versions` fit together.
  Simulation(Scenario scenario, std::unique_ptr<Task> task,
             PlanVersions versions);

  void NoteWithoutEffect();
  void BootFirst();
  void Boot(int64_t i);
  // A restart or a join that was counted in returns_.
  void Return(int64_t i);

  void OnReport(int64_t i, const ports::NodeEvent& event);
  void OnPhase(int64_t i, const ports::PhaseChanged& phase);
  void OnFirstTraining();
  void ScheduleEvents();
  void Begin(const NetworkEvent& event);
  void Undo(const NetworkEvent& event);
  void SetDiskFault(const NetworkEvent& event, int64_t change);

  void TakeRow();
  void EndBy(End end, std::string why);
  void EndIfAllAreDone();
  Progress MakeProgress() const;
  void FinishResult();
  uint64_t Digest() const;

  const Scenario scenario_;
  const std::unique_ptr<Task> task_;
  PlanVersions versions_;
  simports::SimScheduler scheduler_;
  const simports::SimScheduler::OwnerId owner_;
  simports::SimNetwork network_;
  Members members_;
  Processes processes_;
  PlanRollout rollout_;
  MetricsRows rows_;
  std::unique_ptr<LinkFaults> faults_;  // once contacts are known
  std::vector<std::string> notes_;

  bool training_began_ = false;
  absl::Time zero_;  // when it did
  bool ended_ = false;
  int64_t returns_ = 0;  // restarts and joins to come
  Result result_;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_SIMULATION_H_
