// A whole network in one process and in virtual time: a runtime::Node a member,
// on simports, with the scenario's links, speeds and faults.
//
// Everything random comes from the plan's seed, so that one scenario and seed
// give the same run bit for bit; Result::digest is of all parameters and of all
// that happened. Single-threaded.
#ifndef DFL_SIM_SIMULATION_H_
#define DFL_SIM_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithms/spod_gt.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/linked_node.h"
#include "daemon/sim/data_task.h"
#include "daemon/sim/metrics.h"
#include "daemon/sim/scenario.h"
#include "daemon/sim/task.h"
#include "daemon/simports/sim_files.h"
#include "daemon/simports/sim_loop.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"
#include "daemon/simports/sim_trainer.h"
#include "daemon/simports/sim_transport.h"
#include "daemon/store/node_state.h"

namespace dfl::sim {

enum class End {
  kFinished,     // every node that is up has met its stop rule
  kSettled,      // network.settled_below holds
  kLimit,        // network.limit has passed
  kDiverged,     // loss or gradient of a node are not finite
  kStalled,      // nothing will ever happen again
  kInterrupted,  // by the caller
};

// "finished", "settled", ...
const char* Name(End end);

// A node's incarnation, also the seed of its mini-batches. `start` differs from
// one start to the next; it is 1 for the first one.
uint64_t IncarnationOf(const core::RunPlan& plan, absl::string_view name,
                       int64_t start);

// A node by itself, when the last row of metrics was taken.
struct NodeScore {
  std::string name;
  int64_t step = 0;
  uint64_t plan_version = 0;           // in force there
  std::vector<uint64_t> incarnations;  // of all its starts so far
  Score own;  // f_i(w_i), and the accuracy of its own model
};

// A change of the plan.
struct PlanChange {
  uint64_t version = 0;
  double time_s = 0;  // virtual, when it was given out
  // When the last of the nodes in the run had it in force; none: never.
  std::optional<double> in_force_s;
};

struct Result {
  End end = End::kFinished;
  std::string why;      // one sentence
  bool failed = false;  // the run did not get where its plan said
  uint64_t digest = 0;
  std::vector<MetricsRow> rows;  // of network.metrics_every, and the last state
  std::vector<NodeScore> nodes;  // of the last row
  std::vector<PlanChange> changes;
  // The probabilities that nodes drew (p_draw of Spod-GT), to the out-neighbours
  // of the first round; of those that drew any.
  std::map<NodeId, core::DrawnProbabilities> drawn;
  int64_t parameters = 0;  // of a model
  int64_t edges = 0;       // directed ones by themselves; of the first round
  int64_t steps = 0;       // finished, of all nodes together
  int64_t events = 0;
  int64_t links_lost = 0;
  int64_t neighbours_missed = 0;  // deadlines that passed without an answer
  int64_t messages_rejected = 0;
  int64_t crashes = 0;
  int64_t writes_failed = 0;  // of a node's state
  // Starts that found no whole state on the disk, but for a node's first.
  int64_t states_lost = 0;
  // Models and parcels that nodes took: answers, pushes, mass.
  int64_t models_received = 0;
  // For each finished step, the node's contacts that were in the run and that no
  // event had cut off from it: whom it could have exchanged with.
  int64_t reachable = 0;
  // The longest time, in virtual seconds, that a node that trained took from
  // one finished step to the next, or to the first.
  double longest_step_gap_s = 0;
};

struct Progress {
  double share = 0;  // of the work, in [0, 1], as far as it can be told
  MetricsRow last;   // the newest, with step and bytes as they are now
  int64_t steps = 0;
};

class Simulation {
 public:
  // Makes or reads the data, and makes the nodes; nothing runs yet. `learners`
  // are for a problem of data.
  // Errors: as core::DeriveNodePlans and MakeDataTask; all else ParseScenario has
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
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  // The parameters of a node; empty while it is down.
  absl::Span<const float> parameters(int64_t i) const;

 private:
  // Hears what one node reports.
  class Ear final : public ports::EventSink {
   public:
    Ear(Simulation& simulation, int64_t place)
        : simulation_(simulation), place_(place) {}
    void Report(const ports::NodeEvent& event) override {
      simulation_.OnReport(place_, event);
    }

   private:
    Simulation& simulation_;
    const int64_t place_;
  };

  // A plan, and what follows from it for each member, by place.
  struct Version {
    std::shared_ptr<const core::RunPlan> plan;
    std::vector<bool> members;
    std::vector<core::DerivedPlan> nodes;  // of members
    absl::Duration within;                 // how late a node may take it
  };

  // A member, and the process that runs for it while it is up.
  struct Slot {
    NodeId self;
    size_t version = 0;          // of the plan that it holds
    uint64_t plan_in_force = 0;  // the plan's own number; 0: none
    // Whom it may have a link with in any version, by place, sorted.
    std::vector<int64_t> contacts;
    std::unique_ptr<Ear> ear;
    Rng compute{0};
    double slowness = 1;  // by kSlow events
    int64_t boots = 0;
    std::vector<uint64_t> incarnations;
    simports::SimFiles disk;
    std::unique_ptr<store::NodeStateStore> store;  // while it is up
    uint64_t starts = 0;                           // as the disk has it
    int64_t disk_faults[3] = {0, 0, 0};            // under way, by DiskFault
    bool left = false;  // for good, unless it joins again
    ports::Phase phase = ports::Phase::kIdle;
    int64_t step = 0;
    absl::Time step_began;  // while it trains
    std::unique_ptr<simports::SimLoop> loop;
    std::unique_ptr<simports::SimTransport> transport;
    std::unique_ptr<runtime::LinkedNode> linked;
    runtime::Node* node = nullptr;  // of `linked`

    bool up() const { return node != nullptr; }
    bool in_run() const;  // has a model
    bool done() const;    // and will do no more steps
  };
  // Why two neighbours cannot reach each other; both count.
  struct Trouble {
    int64_t cuts = 0;
    int64_t holes = 0;
  };
  using Edge = std::pair<int64_t, int64_t>;  // smaller place first

  Simulation(Scenario scenario, std::unique_ptr<Task> task);

  const std::string& name(int64_t i) const;
  void Boot(int64_t i);
  // The process ends, as it is.
  void TakeDown(int64_t i);
  // What the node's disk holds, as dfld reads it at a start: the version of the
  // plan that it takes up, and how often it has started; written anew.
  // Returns the number of this start for IncarnationOf.
  int64_t ReadDisk(int64_t i);
  // Writes that the node holds `version`, as dfld does before it takes it.
  // Errors: of the disk.
  absl::Status WriteDisk(int64_t i, size_t version);
  void SetDiskFault(const NetworkEvent& event, int64_t change);
  absl::Duration GradientTime(int64_t i);
  bool AreContacts(int64_t a, int64_t b) const;
  std::vector<Edge> EdgesOf(const NetworkEvent& event) const;

  void OnReport(int64_t i, const ports::NodeEvent& event);
  // Calls `change`, which moves slot `i`, and keeps the counts.
  template <typename Change>
  void Update(int64_t i, Change change);
  void OnFirstTraining();
  void ScheduleEvents();
  void Begin(const NetworkEvent& event);
  void Undo(const NetworkEvent& event);
  // A restart or a join that was counted in returns_.
  void Return(int64_t i);
  void Apply(const Edge& edge, int64_t cuts, int64_t holes);
  // All links' paths, as they are now.
  void SetPaths();

  // Derives every version of the plan, and whom each node may have a link with.
  // Errors: as core::DeriveNodePlans.
  absl::Status MakeVersions();
  absl::Status Derive(Version& version);
  // The plan that is given out at present.
  const core::RunPlan& newest_plan() const { return *versions_[newest_].plan; }
  // Of the plan with that number.
  const std::string& AlgorithmOf(uint64_t plan_version) const {
    return versions_[plan_version - plan_->version].plan->algorithm.name;
  }
  void BeginChange(size_t version);
  // Gives `i` the newest plan at a moment that is drawn for it.
  void GiveNewest(int64_t i);
  void TakePlan(int64_t i, size_t version);
  void NotePlanInForce();
  // What nodes drew by the plans that were given out.
  void NoteDrawn();
  // Contacts of `i` in the run, with nothing between them and it.
  int64_t Reachable(int64_t i) const;
  // `slot` has finished a step, or does not train any more.
  void NoteStepGap(Slot& slot);
  void EndBy(End end, std::string why);

  void TakeRow();
  // Losses, accuracies and consensus error of the models as they are now.
  absl::Status Measure(MetricsRow& row);
  // Of the nodes of the newest tracker epoch.
  std::optional<double> Drift() const;
  // What network.metrics asks for; `mean` is the mean model.
  absl::Status MeasureExtras(const ModelView& mean, MetricsRow& row);
  // Of the nodes in the run; nullopt while one of them runs an algorithm without
  // such a vector.
  absl::StatusOr<std::optional<double>> GradientError();
  std::optional<double> AuxiliaryConsensusError(absl::string_view symbol) const;
  // Of the members and the algorithm of the newest plan.
  absl::StatusOr<double> ProximalGradient(const ModelView& mean);
  FlatVector AuxiliaryAt(const Slot& slot, absl::string_view symbol) const;
  bool HasSettled() const;
  Progress MakeProgress() const;
  uint64_t Digest() const;

  const Scenario scenario_;
  const std::unique_ptr<Task> task_;
  // The plan that the run begins with: members, seed.
  std::shared_ptr<const core::RunPlan> plan_;
  std::vector<Version> versions_;  // 0: of plan_
  size_t newest_ = 0;              // of those, that is given out
  int64_t takes_ = 0;              // moments drawn that are still to come
  simports::SimScheduler scheduler_;
  const simports::SimScheduler::OwnerId owner_;
  std::unique_ptr<simports::SimNetwork> network_;
  std::vector<Slot> slots_;
  std::vector<std::string> notes_;
  std::map<Edge, Trouble> troubles_;
  double extra_loss_ = 0;   // by kLoss events
  bool paths_set_ = false;  // one by one, not by the network's default

  bool training_began_ = false;
  absl::Time zero_;  // when it did
  bool ended_ = false;
  Result result_;
  // Over the slots.
  int64_t up_ = 0;
  int64_t in_run_ = 0;
  int64_t done_ = 0;
  int64_t step_sum_ = 0;  // of those in the run
  int64_t returns_ = 0;   // restarts and joins to come
  int64_t next_row_step_ = 0;
};

}  // namespace dfl::sim

#endif  // DFL_SIM_SIMULATION_H_
