#include "daemon/sim/simulation.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/values.h"
#include "daemon/core/graph/topology.h"
#include "daemon/sim/analytic_task.h"

namespace dfl::sim {
namespace {

using ports::Phase;

// Events between two questions whether to go on.
constexpr int64_t kEventsAtOnce = 4096;

// All that differs between a problem made from a seed and data from files.
absl::StatusOr<std::unique_ptr<Task>> MakeTask(
    const Scenario& scenario, const OpenDataLearners& learners) {
  if (scenario.problem.kind == ProblemSpec::Kind::kData) {
    return MakeDataTask(scenario.problem, scenario.plan, learners);
  }
  return MakeAnalyticTask(scenario.problem, scenario.plan);
}

int64_t CountEdges(const core::AnyGraph& graph) {
  if (const auto* directed = std::get_if<core::Digraph>(&graph)) {
    return static_cast<int64_t>(directed->Arcs().size());
  }
  return static_cast<int64_t>(std::get<core::Graph>(graph).Edges().size());
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

uint64_t IncarnationOf(const core::RunPlan& plan, absl::string_view name,
                       int64_t start) {
  return DeriveSeed(DeriveSeed(plan.seed, name), "incarnation",
                    static_cast<uint64_t>(start)) |
         1;
}

bool Simulation::Slot::in_run() const {
  return up() && (phase == Phase::kTraining || phase == Phase::kDegraded ||
                  phase == Phase::kFinished || phase == Phase::kStopped);
}

bool Simulation::Slot::done() const {
  return up() && (phase == Phase::kFinished || phase == Phase::kStopped);
}

// ------------------------------------------------------------------- setup ----

Simulation::Simulation(Scenario scenario, std::unique_ptr<Task> task)
    : scenario_(std::move(scenario)),
      task_(std::move(task)),
      plan_(std::make_shared<const core::RunPlan>(scenario_.plan)),
      owner_(scheduler_.NewOwner()) {
  simports::SimNetworkOptions options;
  options.path = scenario_.links;
  network_ =
      std::make_unique<simports::SimNetwork>(scheduler_, plan_->seed, options);
}

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::Create(
    Scenario scenario, const OpenDataLearners& learners) {
  DFL_ASSIGN_OR_RETURN(std::unique_ptr<Task> task,
                       MakeTask(scenario, learners));
  const std::vector<int64_t> rows = task->rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    scenario.plan.members[i].rows = rows[i];
  }
  std::unique_ptr<Simulation> made(
      new Simulation(std::move(scenario), std::move(task)));
  Simulation& self = *made;
  self.result_.parameters = self.task_->parameters();
  self.slots_.resize(rows.size());
  DFL_RETURN_IF_ERROR(self.MakeVersions());
  self.result_.edges =
      CountEdges(*self.versions_.front().nodes.front().checked.graph);
  for (size_t i = 0; i < rows.size(); ++i) {
    Slot& slot = self.slots_[i];
    slot.self = self.plan_->members[i].node;
    slot.ear = std::make_unique<Ear>(self, static_cast<int64_t>(i));
    slot.compute = Rng(DeriveSeed(self.plan_->seed, "compute", i));
  }
  for (const PathSpec& spec : self.scenario_.paths) {
    if (!self.AreContacts(spec.a, spec.b)) {
      self.notes_.push_back(absl::StrCat("network.paths: ", self.name(spec.a),
                                         " and ", self.name(spec.b),
                                         " are no neighbours"));
      continue;
    }
  }
  self.SetPaths();
  for (const NetworkEvent& event : self.scenario_.events) {
    const bool pair = event.kind == NetworkEvent::Kind::kCut ||
                      event.kind == NetworkEvent::Kind::kBlackHole;
    if (pair && !self.AreContacts(event.members[0], event.members[1])) {
      self.notes_.push_back(
          absl::StrCat("network.events: ", self.name(event.members[0]), " and ",
                       self.name(event.members[1]), " are no neighbours"));
    }
  }
  return made;
}

Simulation::~Simulation() {
  scheduler_.CancelAll();
  for (Slot& slot : slots_) {
    if (slot.up()) slot.loop->Stop();
  }
  for (Slot& slot : slots_) {
    slot.node = nullptr;
    slot.linked.reset();
    slot.transport.reset();
  }
}

const std::string& Simulation::name(int64_t i) const {
  return plan_->members[static_cast<size_t>(i)].node.name();
}

absl::Span<const float> Simulation::parameters(int64_t i) const {
  const Slot& slot = slots_[static_cast<size_t>(i)];
  return slot.up() ? slot.node->parameters() : absl::Span<const float>();
}

bool Simulation::AreContacts(int64_t a, int64_t b) const {
  const std::vector<int64_t>& all = slots_[static_cast<size_t>(a)].contacts;
  return std::binary_search(all.begin(), all.end(), b);
}

// A host's address is its member's name; of two contacts the later dials.
void Simulation::Boot(int64_t i) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  ++slot.boots;
  const int64_t start = ReadDisk(i);
  slot.loop = std::make_unique<simports::SimLoop>(scheduler_);
  simports::SimTransportOptions transport;
  transport.node = slot.self;
  transport.incarnation = IncarnationOf(*plan_, name(i), start);
  transport.address = name(i);
  slot.incarnations.push_back(transport.incarnation);
  slot.transport = std::make_unique<simports::SimTransport>(
      *network_, *slot.loop, transport);
  runtime::NodeOptions options;
  options.self = slot.self;
  options.incarnation = transport.incarnation;
  absl::StatusOr<std::unique_ptr<ports::Learner>> learner =
      task_->MakeLearner(i, transport.incarnation);
  if (!learner.ok()) {
    EndBy(End::kStalled,
          absl::StrCat(name(i), " cannot start: ", learner.status().message()));
    return;
  }
  auto trainer = std::make_unique<simports::SimTrainer>(
      *slot.loop, *std::move(learner),
      [this, i](const ports::GradientRequest&) { return GradientTime(i); },
      absl::ZeroDuration());
  Update(i, [&] {
    slot.phase = Phase::kIdle;
    slot.step = 0;
    slot.plan_in_force = 0;
    slot.linked = std::make_unique<runtime::LinkedNode>(
        options, *slot.loop, *slot.transport, *slot.loop, *slot.ear);
    slot.node = &slot.linked->node();
  });
  for (const int64_t other : slot.contacts) {
    if (other > i) break;
    DFL_CHECK(slot.node->links().AddAddress(name(other)).ok());
  }
  const Version& held = versions_[slot.version];
  DFL_CHECK(
      slot.node->SetPlan(held.nodes[static_cast<size_t>(i)], std::move(trainer))
          .ok());
  DFL_CHECK(slot.node->Start().ok());
  if (slot.version < newest_) GiveNewest(i);
}

void Simulation::TakeDown(int64_t i) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  if (!slot.up()) return;
  result_.models_received += slot.node->models_received();
  if (slot.phase == Phase::kTraining) NoteStepGap(slot);
  slot.loop->Stop();
  Update(i, [&] { slot.node = nullptr; });
  slot.linked.reset();
  slot.transport.reset();
  slot.loop.reset();
}

// A shifted exponential, in whole nanoseconds.
absl::Duration Simulation::GradientTime(int64_t i) {
  const ComputeSpec& compute = scenario_.compute;
  auto nanos = static_cast<double>(absl::ToInt64Nanoseconds(compute.time));
  if (compute.extra > absl::ZeroDuration()) {
    nanos += static_cast<double>(absl::ToInt64Nanoseconds(compute.extra)) *
             Exponential(slots_[static_cast<size_t>(i)].compute);
  }
  const auto factor = compute.factor.find(i);
  if (factor != compute.factor.end()) nanos *= factor->second;
  nanos *= slots_[static_cast<size_t>(i)].slowness;
  return absl::Nanoseconds(
      std::max<int64_t>(1, static_cast<int64_t>(std::floor(nanos))));
}

// --------------------------------------------------------------- the nodes ----

template <typename Change>
void Simulation::Update(int64_t i, Change change) {
  Slot& slot = slots_[static_cast<size_t>(i)];
  const auto count = [&](int64_t sign) {
    if (slot.up()) up_ += sign;
    if (slot.done()) done_ += sign;
    if (!slot.in_run()) return;
    in_run_ += sign;
    step_sum_ += sign * slot.step;
  };
  count(-1);
  change();
  count(+1);
}

void Simulation::OnReport(int64_t i, const ports::NodeEvent& event) {
  simports::TraceDigest& trace = scheduler_.trace();
  trace.Add(event.index());
  trace.Add(static_cast<uint64_t>(i));
  trace.Add(static_cast<uint64_t>(
      absl::ToInt64Nanoseconds(scheduler_.Now() - absl::UnixEpoch())));
  Slot& slot = slots_[static_cast<size_t>(i)];
  if (const auto* step = std::get_if<ports::StepFinished>(&event)) {
    trace.Add(static_cast<uint64_t>(step->step));
    ++result_.steps;
    NoteStepGap(slot);
    result_.reachable += Reachable(i);
    Update(i, [&] { slot.step = step->step; });
    if (in_run_ > 0 && step_sum_ / in_run_ >= next_row_step_) TakeRow();
  } else if (const auto* phase = std::get_if<ports::PhaseChanged>(&event)) {
    trace.Add(static_cast<uint64_t>(phase->to));
    if (phase->to == Phase::kTraining) {
      slot.step_began = scheduler_.Now();
    } else if (phase->from == Phase::kTraining) {
      NoteStepGap(slot);
    }
    Update(i, [&] { slot.phase = phase->to; });
    if (phase->to == Phase::kTraining && !training_began_) OnFirstTraining();
  } else if (const auto* taken = std::get_if<ports::StateTaken>(&event)) {
    Update(i, [&] { slot.step = taken->step; });
  } else if (const auto* missed =
                 std::get_if<ports::NeighboursMissed>(&event)) {
    result_.neighbours_missed += missed->wanted - missed->came;
  } else if (const auto* adopted = std::get_if<ports::PlanAdopted>(&event)) {
    slot.plan_in_force = adopted->version;
    NotePlanInForce();
  } else if (std::holds_alternative<ports::LinkDown>(event)) {
    ++result_.links_lost;
  } else if (std::holds_alternative<ports::MessageRejected>(event)) {
    ++result_.messages_rejected;
  } else if (const auto* failed = std::get_if<ports::LearnerFailed>(&event)) {
    EndBy(End::kDiverged, absl::StrCat(name(i), ", step ", failed->step, ": ",
                                       failed->status.message()));
  }
}

int64_t Simulation::Reachable(int64_t i) const {
  const std::vector<int64_t>& contacts =
      slots_[static_cast<size_t>(i)].contacts;
  if (troubles_.empty() && in_run_ == size()) {
    return static_cast<int64_t>(contacts.size());
  }
  int64_t count = 0;
  for (const int64_t j : contacts) {
    if (!slots_[static_cast<size_t>(j)].in_run()) continue;
    const auto trouble = troubles_.find(std::minmax(i, j));
    if (trouble == troubles_.end() ||
        (trouble->second.cuts == 0 && trouble->second.holes == 0)) {
      ++count;
    }
  }
  return count;
}

void Simulation::NoteStepGap(Slot& slot) {
  result_.longest_step_gap_s =
      std::max(result_.longest_step_gap_s,
               absl::ToDoubleSeconds(scheduler_.Now() - slot.step_began));
  slot.step_began = scheduler_.Now();
}

void Simulation::EndBy(End end, std::string why) {
  if (ended_) return;
  ended_ = true;
  result_.end = end;
  result_.why = std::move(why);
}

// --------------------------------------------------------------------- run ----

Result Simulation::Run(const std::function<bool(const Progress&)>& go_on) {
  std::vector<bool> late(slots_.size(), false);
  for (const NetworkEvent& event : scenario_.events) {
    const bool joins = event.kind == NetworkEvent::Kind::kJoin;
    const bool first = joins && event.first;
    const bool restarts = event.kind == NetworkEvent::Kind::kCrash &&
                          event.lasts < absl::InfiniteDuration();
    if (joins || restarts) ++returns_;
    if (first) late[static_cast<size_t>(event.members[0])] = true;
  }
  for (int64_t i = 0; i < size(); ++i) {
    if (!late[static_cast<size_t>(i)]) Boot(i);
  }
  while (!ended_) {
    if (!scheduler_.Step()) {
      EndBy(End::kStalled, "nothing is left to happen");
      break;
    }
    if (done_ == up_ && returns_ == 0 && takes_ == 0) {
      if (up_ > 0) {
        EndBy(End::kFinished, "every node has met the plan's stop rule");
      } else {
        EndBy(End::kStalled, "every node has crashed and none comes back");
      }
    } else if (scheduler_.events_run() % kEventsAtOnce == 0 &&
               !go_on(MakeProgress())) {
      EndBy(End::kInterrupted, "interrupted");
    }
  }
  if (training_began_) TakeRow();
  for (const Slot& slot : slots_) {
    if (slot.up()) result_.models_received += slot.node->models_received();
  }
  NoteDrawn();
  result_.events = scheduler_.events_run();
  result_.digest = Digest();
  const core::StopRule& stop = newest_plan().stop;
  const bool has_rule = stop.steps > 0 || stop.loss_below > 0 ||
                        stop.time < absl::InfiniteDuration() ||
                        scenario_.settled_below > 0;
  result_.failed = result_.end == End::kDiverged ||
                   result_.end == End::kStalled ||
                   (result_.end == End::kLimit && has_rule);
  return std::move(result_);
}

}  // namespace dfl::sim
