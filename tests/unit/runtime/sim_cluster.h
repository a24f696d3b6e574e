// A small network of whole nodes in virtual time, for tests of the runtime:
// N runtime::Node on one SimScheduler and SimNetwork, a plan for all of them,
// and faults by index.
//
// Every scenario runs through RunTwice: it is played twice from the same seed,
// and the digests of all parameters, of the events of every node and of the
// network's trace must be equal.
#ifndef DFL_TESTS_UNIT_RUNTIME_SIM_CLUSTER_H_
#define DFL_TESTS_UNIT_RUNTIME_SIM_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/following/plan_follower.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/simports/sim_files.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_trainer.h"
#include "daemon/simports/sim_transport.h"
#include "daemon/store/checkpoint_files.h"

namespace dfl::runtime {

// Keeps what a node reports, with its time, and adds it to the trace.
class EventLog : public ports::EventSink {
 public:
  explicit EventLog(simports::SimScheduler& scheduler)
      : scheduler_(scheduler) {}
  void Report(const ports::NodeEvent& event) override;

  const std::vector<std::pair<absl::Time, ports::NodeEvent>>& all() const {
    return all_;
  }
  template <typename E>
  std::vector<E> Of() const {
    std::vector<E> found;
    for (const auto& [when, event] : all_) {
      if (const auto* e = std::get_if<E>(&event)) found.push_back(*e);
    }
    return found;
  }
  template <typename E>
  int64_t Count() const {
    return static_cast<int64_t>(Of<E>().size());
  }

 private:
  simports::SimScheduler& scheduler_;
  std::vector<std::pair<absl::Time, ports::NodeEvent>> all_;
};

struct ClusterOptions {
  int64_t nodes = 4;
  uint64_t seed = 1;
  // How long a gradient takes on `node`.
  std::function<absl::Duration(int64_t node)> gradient_delay = [](int64_t) {
    return absl::Milliseconds(10);
  };
  absl::Duration worker_delay = absl::Microseconds(100);
  simports::SimNetworkOptions network;
  TransfersOptions transfers;
  OffenceOptions offences;
  int64_t max_queued_bytes = 4 << 20;
  // Node i dials the nodes below it.
  bool dial = true;
  // Nodes keep checkpoints, as often as the plan says.
  bool disks = false;
  // Nodes know each other by membership, and follow it.
  bool membership = false;
  // What node i says of itself, but for its address.
  std::function<ports::MemberFacts(int64_t node)> facts = [](int64_t) {
    return ports::MemberFacts();
  };
  // Makes the learner of `node`. Unset: a FakeLearner with 1,000 parameters and
  // 7 buffers.
  std::function<std::unique_ptr<ports::Learner>(int64_t node)> learner;
};

class SimCluster {
 public:
  explicit SimCluster(ClusterOptions options);
  ~SimCluster();

  // n0, n1, ...; the address of a node is its name and ":1".
  NodeId id(int64_t i) const;
  std::string address(int64_t i) const;
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }

  // A plan for all nodes: complete graph, metropolis, dense fp32, no
  // evaluation, no stop.
  core::RunPlan MakePlan(const std::string& algorithm,
                         core::KnobValues knobs = {}) const;

  // Gives `plan` to a node; with a trainer of its own when it has none yet or
  // `fresh` is set. The plan is given again by itself after a Restart.
  absl::Status SetPlan(int64_t i, const core::RunPlan& plan,
                       bool fresh = false);
  // To all that are up; each must take it.
  void SetPlanEverywhere(const core::RunPlan& plan);
  void StartAll();
  // Both of the above.
  void Run(const core::RunPlan& plan);
  // Gives a node that has a plan other rows: a learner on them.
  absl::Status RenewTrainer(int64_t i, std::unique_ptr<ports::Learner> learner);

  // Power off; and on again: a new incarnation with empty memory, which is
  // given its last plan and dials, but is not started.
  void Crash(int64_t i);
  void Restart(int64_t i);
  // The same, and it goes on from its checkpoint if it has one.
  void RestartFromDisk(int64_t i);
  // Its last checkpoint is written, and then it is off.
  void Shutdown(int64_t i);
  void ShutdownAll();
  simports::SimFiles& disk(int64_t i) { return *slots_[i].disk; }
  store::CheckpointFiles& checkpoints(int64_t i) {
    return *slots_[i].checkpoints;
  }
  bool up(int64_t i) const { return slots_[i].node != nullptr; }

  Node& node(int64_t i) { return slots_[i].node->node(); }
  Membership& membership(int64_t i) { return slots_[i].node->membership(); }
  PlanFollower& follower(int64_t i) { return *slots_[i].follower; }
  const EventLog& log(int64_t i) const { return *slots_[i].log; }
  ports::Learner& learner(int64_t i) { return *slots_[i].learners.back(); }
  simports::SimTrainer& trainer(int64_t i) { return *slots_[i].trainer; }
  simports::SimLoop& loop(int64_t i) { return *slots_[i].loop; }
  simports::SimTransport& transport(int64_t i) { return *slots_[i].transport; }
  simports::SimNetwork& network() { return *network_; }
  simports::SimScheduler& scheduler() { return scheduler_; }
  absl::Time Now() const { return scheduler_.Now(); }

  // The iteration that node i is in; 0 without an algorithm.
  int64_t step(int64_t i) {
    const core::Algorithm* algorithm = node(i).algorithm();
    return algorithm == nullptr ? 0 : algorithm->step();
  }
  int64_t LowestStep();
  bool AllFinished();
  std::vector<float> parameters(int64_t i);

  bool RunUntil(const std::function<bool()>& done,
                absl::Duration limit = absl::Seconds(60)) {
    return scheduler_.RunUntil(done, limit);
  }
  void RunFor(absl::Duration duration) { scheduler_.RunFor(duration); }
  // Until every node that is up has done `steps` iterations.
  bool RunToStep(int64_t steps, absl::Duration limit = absl::Seconds(120));

  // The longest time between two finished steps of `i` within [from, to],
  // counting both ends.
  absl::Duration LongestGap(int64_t i, absl::Time from, absl::Time to) const;

  // Of all parameters and of all that happened.
  uint64_t Digest();

 private:
  struct Slot {
    std::unique_ptr<EventLog> log;
    std::unique_ptr<simports::SimLoop> loop;
    std::unique_ptr<simports::SimTransport> transport;
    std::vector<std::unique_ptr<ports::Learner>> learners;
    std::unique_ptr<LinkedNode> node;
    std::unique_ptr<PlanFollower> follower;
    simports::SimTrainer* trainer = nullptr;  // of the node's, the last given
    std::unique_ptr<simports::SimFiles> disk;
    std::unique_ptr<store::CheckpointFiles> checkpoints;
    uint64_t incarnation = 0;
    bool has_plan = false;
    core::RunPlan plan;
  };

  void Boot(int64_t i);

  const ClusterOptions options_;
  simports::SimScheduler scheduler_;
  std::unique_ptr<simports::SimNetwork> network_;
  std::vector<Slot> slots_;
};

// Plays `scenario` twice and compares the digests.
void RunTwice(const ClusterOptions& options,
              const std::function<void(SimCluster&)>& scenario);

}  // namespace dfl::runtime

#endif  // DFL_TESTS_UNIT_RUNTIME_SIM_CLUSTER_H_
