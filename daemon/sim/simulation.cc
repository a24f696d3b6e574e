#include "daemon/sim/simulation.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/values.h"
#include "daemon/core/graph/topology.h"
#include "daemon/sim/tasks/analytic_task.h"

namespace dfl::sim {
namespace {

using ports::Phase;

// Events between two questions whether to go on.
constexpr int64_t kEventsAtOnce = 4096;
// From a leaver's goodbye to the end of its process.
constexpr absl::Duration kGoodbye = absl::Milliseconds(200);

// All that differs between a problem made from a seed and data from files.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(
    const Scenario& scenario, const OpenDataLearners& learners) {
  std::vector<int64_t> flipped;
  if (scenario.hostile.attack == Attack::kLabels) {
    flipped = scenario.hostile.nodes;
  }
  if (scenario.problem.kind == ProblemSpec::Kind::kData) {
    return MakeDataTask(scenario.problem, scenario.plan, learners, flipped);
  }
  return MakeAnalyticTask(scenario.problem, scenario.plan, flipped);
}

int64_t CountEdges(const core::AnyGraph& graph) {
  if (const auto* directed = std::get_if<core::Digraph>(&graph)) {
    return static_cast<int64_t>(directed->Arcs().size());
  }
  return static_cast<int64_t>(std::get<core::Graph>(graph).Edges().size());
}

simports::SimNetworkOptions NetworkOptions(const Scenario& scenario) {
  simports::SimNetworkOptions options;
  options.path = scenario.links;
  return options;
}

}  // namespace

const char* Name(End end) {
  switch (end) {
    case End::kFinished:
      return "finished";
    case End::kSettled:
      return "settled";
    case End::kLimit:
      return "limit";
    case End::kDiverged:
      return "diverged";
    case End::kStalled:
      return "stalled";
    case End::kInterrupted:
      return "interrupted";
  }
  return "finished";
}

// Hears what one node reports.
class Simulation::Ear final : public ports::EventSink {
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

// ------------------------------------------------------------------ setup ----

Simulation::Simulation(Scenario scenario, std::unique_ptr<Task> task,
                       PlanVersions versions)
    : scenario_(std::move(scenario)),
      task_(std::move(task)),
      versions_(std::move(versions)),
      owner_(scheduler_.NewOwner()),
      network_(scheduler_, scenario_.plan.seed, NetworkOptions(scenario_)),
      members_(scenario_.plan),
      processes_(scenario_, *task_, versions_, members_, scheduler_, network_),
      rollout_(versions_, members_, scheduler_, owner_,
               scenario_.plans_by_gossip),
      rows_(scenario_, members_, network_,
            ModelMetrics(scenario_.metrics, *task_, members_, versions_)) {
  for (int64_t i = 0; i < size(); ++i) {
    members_[i].ear = std::make_unique<Ear>(*this, i);
    members_[i].hostile = scenario_.hostile.Has(i);
    members_[i].contacts = versions_.contacts()[static_cast<size_t>(i)];
  }
  faults_ = std::make_unique<LinkFaults>(scenario_, members_, network_);
  result_.parameters = task_->parameters();
  result_.edges = CountEdges(*versions_[0].nodes.front().checked.graph);
}

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::Create(
    Scenario scenario, const OpenDataLearners& learners) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<Task> task,
                       MakeTask(scenario, learners));
  const std::vector<int64_t> rows = task->rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    scenario.plan.members[i].rows = rows[i];
  }
  DFL_ASSIGN_OR_RETURN(PlanVersions versions, PlanVersions::Make(scenario));
  std::unique_ptr<Simulation> made(new Simulation(
      std::move(scenario), std::move(task), std::move(versions)));
  made->NoteWithoutEffect();
  return made;
}

void Simulation::NoteWithoutEffect() {
  const auto note = [this](const char* where, int64_t a, int64_t b) {
    if (members_.AreContacts(a, b)) return;
    notes_.push_back(absl::StrCat("network.", where, ": ", members_.name(a),
                                  " and ", members_.name(b),
                                  " are no neighbours"));
  };
  for (const PathSpec& spec : scenario_.paths) note("paths", spec.a, spec.b);
  for (const NetworkEvent& event : scenario_.events) {
    if (event.kind == NetworkEvent::Kind::kCut ||
        event.kind == NetworkEvent::Kind::kBlackHole) {
      note("events", event.members[0], event.members[1]);
    }
  }
}

Simulation::~Simulation() { scheduler_.CancelAll(); }

absl::Span<const float> Simulation::parameters(int64_t i) const {
  const Member& member = members_[i];
  return member.up() ? member.node->parameters() : absl::Span<const float>();
}

void Simulation::BootFirst() {
  std::vector<bool> late(static_cast<size_t>(size()), false);
  for (const NetworkEvent& event : scenario_.events) {
    const bool joins = event.kind == NetworkEvent::Kind::kJoin;
    const bool restarts = event.kind == NetworkEvent::Kind::kCrash &&
                          event.lasts < absl::InfiniteDuration();
    if (joins || restarts) ++returns_;
    if (joins && event.first) {
      late[static_cast<size_t>(event.members[0])] = true;
    }
  }
  for (int64_t i = 0; i < size(); ++i) {
    if (!late[static_cast<size_t>(i)]) Boot(i);
  }
}

void Simulation::Boot(int64_t i) {
  const absl::Status booted = processes_.Boot(i);
  if (booted.ok()) {
    rollout_.GiveNewest(i);
  } else {
    EndBy(End::kStalled, std::string(booted.message()));
  }
}

void Simulation::Return(int64_t i) {
  --returns_;
  const Member& member = members_[i];
  if (!member.up() && !member.left) Boot(i);
}

// -------------------------------------------------------------- the nodes ----

void Simulation::OnReport(int64_t i, const ports::NodeEvent& event) {
  simports::TraceDigest& trace = scheduler_.trace();
  trace.Add(event.index());
  trace.Add(static_cast<uint64_t>(i));
  trace.Add(static_cast<uint64_t>(
      absl::ToInt64Nanoseconds(scheduler_.Now() - absl::UnixEpoch())));
  if (const auto* step = std::get_if<ports::StepFinished>(&event)) {
    trace.Add(static_cast<uint64_t>(step->step));
    result_.steps += std::max<int64_t>(0, step->step - members_[i].step);
    processes_.NoteStepGap(i);
    result_.reachable += faults_->Reachable(i);
    members_.Update(i, [&](Member& member) {
      member.step = step->step;
      member.round = step->round;
    });
    if (rows_.Due()) TakeRow();
  } else if (const auto* phase = std::get_if<ports::PhaseChanged>(&event)) {
    OnPhase(i, *phase);
  } else if (const auto* taken = std::get_if<ports::StateTaken>(&event)) {
    members_.Update(i, [&](Member& member) {
      member.step = taken->step;
      member.round = taken->round;
    });
  } else if (const auto* missed =
                 std::get_if<ports::NeighboursMissed>(&event)) {
    result_.neighbours_missed += missed->wanted - missed->came;
  } else if (const auto* adopted = std::get_if<ports::PlanAdopted>(&event)) {
    rollout_.NoteInForce(i, adopted->version);
  } else if (std::holds_alternative<ports::LinkDown>(event)) {
    ++result_.links_lost;
  } else if (std::holds_alternative<ports::MessageRejected>(event)) {
    ++result_.messages_rejected;
  } else if (const auto* failed = std::get_if<ports::LearnerFailed>(&event)) {
    EndBy(End::kDiverged,
          absl::StrCat(members_.name(i), ", step ", failed->step, ": ",
                       failed->status.message()));
  }
}

void Simulation::OnPhase(int64_t i, const ports::PhaseChanged& phase) {
  scheduler_.trace().Add(static_cast<uint64_t>(phase.to));
  if (phase.to == Phase::kTraining) {
    members_[i].step_began = scheduler_.Now();
  } else if (phase.from == Phase::kTraining) {
    processes_.NoteStepGap(i);
  }
  members_.Update(i, [&](Member& member) { member.phase = phase.to; });
  if (phase.to == Phase::kTraining && !training_began_) OnFirstTraining();
}

// In events of their own: the first node is in the middle of its own, and the
// others begin at the same time.
void Simulation::OnFirstTraining() {
  training_began_ = true;
  zero_ = scheduler_.Now();
  rollout_.SetZero(zero_);
  scheduler_.At(zero_, owner_, [this] { TakeRow(); });
  ScheduleEvents();
  scheduler_.At(zero_ + scenario_.limit, owner_, [this] {
    EndBy(End::kLimit,
          absl::StrCat("network.limit, ",
                       config::WriteDuration(scenario_.limit), ", has passed"));
  });
}

// ----------------------------------------------------------------- events ----

void Simulation::ScheduleEvents() {
  for (const NetworkEvent& event : scenario_.events) {
    scheduler_.At(zero_ + event.at, owner_, [this, &event] {
      if (event.plan != nullptr) {
        rollout_.Begin(versions_.PlaceOf(event.plan->version));
      }
      Begin(event);
    });
    if (event.lasts == absl::InfiniteDuration()) continue;
    scheduler_.At(zero_ + event.at + event.lasts, owner_,
                  [this, &event] { Undo(event); });
  }
}

void Simulation::Begin(const NetworkEvent& event) {
  faults_->Change(event, +1);
  switch (event.kind) {
    case NetworkEvent::Kind::kCrash:
      if (members_[event.members[0]].up()) {
        ++result_.crashes;
        processes_.TakeDown(event.members[0]);
        members_[event.members[0]].disk.Crash();
      }
      return;
    case NetworkEvent::Kind::kJoin:
      members_[event.members[0]].left = false;
      Return(event.members[0]);
      return;
    case NetworkEvent::Kind::kSlow:
      members_[event.members[0]].slowness *= event.amount;
      return;
    case NetworkEvent::Kind::kDisk:
      SetDiskFault(event, 1);
      return;
    case NetworkEvent::Kind::kLeave:
      // As a dfld that gets SIGTERM: where there is membership it says goodbye,
      // then its links are closed.
      members_[event.members[0]].left = true;
      if (!scenario_.membership.has_value()) {
        processes_.TakeDown(event.members[0]);
        return;
      }
      processes_.Leave(event.members[0]);
      scheduler_.At(scheduler_.Now() + kGoodbye, owner_, [this, &event] {
        if (members_[event.members[0]].left) {
          processes_.TakeDown(event.members[0]);
        }
      });
      return;
    default:
      return;
  }
}

void Simulation::Undo(const NetworkEvent& event) {
  faults_->Change(event, -1);
  switch (event.kind) {
    case NetworkEvent::Kind::kCrash:
      Return(event.members[0]);
      return;
    case NetworkEvent::Kind::kDisk:
      SetDiskFault(event, -1);
      return;
    case NetworkEvent::Kind::kSlow:
      members_[event.members[0]].slowness /= event.amount;
      return;
    default:
      return;
  }
}

void Simulation::SetDiskFault(const NetworkEvent& event, int64_t change) {
  const int64_t i = event.members[0];
  const bool has_room = members_[i].disk.SetFault(event.fault, change);
  if (has_room && members_[i].up()) rollout_.GiveNewest(i);
}

// -------------------------------------------------------------------- run ----

void Simulation::TakeRow() {
  const absl::Status taken = rows_.Take(scheduler_.Now() - zero_);
  if (!taken.ok()) {
    EndBy(End::kDiverged, std::string(taken.message()));
  } else if (rows_.HasSettled()) {
    EndBy(End::kSettled,
          absl::StrCat("f(mean w) moved by less than ",
                       config::WriteNumber(scenario_.settled_below),
                       " over the last three rows"));
  }
}

void Simulation::EndBy(End end, std::string why) {
  if (ended_) return;
  ended_ = true;
  result_.end = end;
  result_.why = std::move(why);
}

void Simulation::EndIfAllAreDone() {
  if (members_.up() > 0) {
    EndBy(End::kFinished, "every node has met the plan's stop rule");
  } else {
    EndBy(End::kStalled, "every node has crashed and none comes back");
  }
}

Progress Simulation::MakeProgress() const {
  if (!training_began_) return rows_.MakeProgress(result_.steps);
  return rows_.MakeProgress(result_.steps, scheduler_.Now() - zero_,
                            versions_.newest_plan().stop);
}

uint64_t Simulation::Digest() const {
  simports::TraceDigest digest;
  digest.Add(scheduler_.trace().value());
  for (int64_t i = 0; i < size(); ++i) {
    for (const float value : parameters(i)) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      digest.Add(bits);
    }
  }
  return digest.value();
}

void Simulation::FinishResult() {
  result_.rows = rows_.rows();
  result_.nodes = rows_.nodes();
  result_.changes = rollout_.changes();
  result_.drawn = versions_.Drawn();
  result_.models_received = processes_.models_received();
  result_.states_lost = processes_.states_lost();
  result_.longest_step_gap_s = processes_.longest_step_gap_s();
  for (const Member& member : members_) {
    result_.writes_failed += member.disk.writes_failed();
  }
  result_.events = scheduler_.events_run();
  result_.digest = Digest();
  const core::StopRule& stop = versions_.newest_plan().stop;
  const bool has_rule = stop.steps > 0 || stop.rounds > 0 || stop.epochs > 0 ||
                        stop.loss_below > 0 ||
                        stop.time < absl::InfiniteDuration() ||
                        scenario_.settled_below > 0;
  result_.failed = result_.end == End::kDiverged ||
                   result_.end == End::kStalled ||
                   (result_.end == End::kLimit && has_rule);
}

Result Simulation::Run(const std::function<bool(const Progress&)>& go_on) {
  BootFirst();
  while (!ended_) {
    if (!scheduler_.Step()) {
      EndBy(End::kStalled, "nothing is left to happen");
      break;
    }
    if (members_.done() == members_.up() && returns_ == 0 &&
        rollout_.under_way() == 0) {
      EndIfAllAreDone();
    } else if (scheduler_.events_run() % kEventsAtOnce == 0 &&
               !go_on(MakeProgress())) {
      EndBy(End::kInterrupted, "interrupted");
    }
  }
  if (training_began_) TakeRow();
  FinishResult();
  return std::move(result_);
}

}  // namespace dfl::sim
