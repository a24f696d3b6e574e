#include "daemon/sim/processes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/distributions.h"
#include "daemon/base/status_macros.h"
#include "daemon/simports/sim_trainer.h"

namespace dfl::sim {
namespace {

// Starts within one nanosecond that are told apart.
constexpr int64_t kStartsInOne = 1024;

}  // namespace

uint64_t IncarnationOf(const core::RunPlan& plan, absl::string_view name,
                       int64_t start) {
  return DeriveSeed(DeriveSeed(plan.seed, name), "incarnation",
                    static_cast<uint64_t>(start)) |
         1;
}

Processes::Processes(const Scenario& scenario, Task& task,
                     const PlanVersions& versions, Members& members,
                     simports::SimScheduler& scheduler,
                     simports::SimNetwork& network)
    : scenario_(scenario),
      task_(task),
      versions_(versions),
      members_(members),
      scheduler_(scheduler),
      network_(network) {
  for (int64_t i = 0; i < std::min<int64_t>(2, members_.size()); ++i) {
    seeds_.push_back(members_.name(i));
  }
}

Processes::~Processes() {
  for (Member& member : members_) {
    if (member.up()) member.loop->Stop();
  }
  for (Member& member : members_) {
    member.follower.reset();
    member.linked.reset();
    member.transport.reset();
  }
}

// Where nothing whole is left the node is set up anew with the newest plan, by
// its settings `run.plan` and `run.autostart`, or by hand. The number of starts
// may be an older one then, or a torn one's: as in dfld the time makes an
// incarnation one that never was.
int64_t Processes::ReadDisk(int64_t i) {
  Member& member = members_[i];
  // A state that cannot be written holds nobody up: what is there stays.
  if (const auto version = member.disk.Begin(members_.name(i))) {
    member.version = versions_.PlaceOf(*version);
    member.disk.TakeUp(versions_.ToKeep(member.version));
  } else {
    if (member.boots > 1) ++states_lost_;
    member.version = versions_.newest();
    (void)member.disk.Accept(versions_.ToKeep(member.version));
  }
  const absl::Duration passed = scheduler_.Now() - absl::UnixEpoch();
  return absl::ToInt64Nanoseconds(passed) * kStartsInOne +
         static_cast<int64_t>(member.disk.starts());
}

// A host's address is its member's name; of two contacts the later dials. With
// membership they find each other from the addresses of the first two on.
absl::Status Processes::Boot(int64_t i) {
  Member& member = members_[i];
  const std::string& name = members_.name(i);
  ++member.boots;
  const int64_t start = ReadDisk(i);
  member.loop = std::make_unique<simports::SimLoop>(scheduler_);
  simports::SimTransportOptions transport;
  transport.node = member.self;
  transport.incarnation = IncarnationOf(versions_.first(), name, start);
  transport.address = name;
  member.incarnations.push_back(transport.incarnation);
  member.transport = std::make_unique<simports::SimTransport>(
      network_, *member.loop, transport);
  runtime::NodeOptions options;
  options.self = member.self;
  options.incarnation = transport.incarnation;
  if (scenario_.checkpoints) {
    options.checkpoints.store = &member.disk.checkpoints();
    options.checkpoints.worker = member.loop.get();
  }
  if (member.hostile) {
    options.forge = MakeForge(
        scenario_.hostile,
        DeriveSeed(DeriveSeed(versions_.first().seed, name), "forge"));
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> learner =
      task_.MakeLearner(i, transport.incarnation);
  if (!learner.ok()) {
    return Annotate(learner.status(), absl::StrCat(name, " cannot start"));
  }
  auto trainer = std::make_unique<simports::SimTrainer>(
      *member.loop, *std::move(learner),
      [this, i](const ports::GradientRequest&) { return GradientTime(i); },
      absl::ZeroDuration());
  if (member.records.judge != nullptr) {
    member.records.files = &member.disk.files();
  }
  members_.Update(i, [&](Member& moved) {
    moved.phase = ports::Phase::kIdle;
    moved.step = 0;
    moved.round = 0;
    moved.linked = std::make_unique<runtime::LinkedNode>(
        options, *moved.loop, *moved.transport, *moved.loop, *moved.ear,
        moved.records, MembershipOf(i, transport.incarnation));
    moved.node = &moved.linked->node();
  });
  // What is damaged is left out: others have it.
  (void)member.linked->records().Load();
  if (scenario_.membership.has_value()) {
    member.follower = std::make_unique<runtime::PlanFollower>(
        member.self, *member.loop, *member.loop, member.linked->membership(),
        *member.node, *scenario_.catalogue);
  }
  if (scenario_.membership.has_value()) {
    member.linked->membership().SetCandidates("seeds", seeds_);
  }
  for (const int64_t other : member.contacts) {
    if (other > i || scenario_.membership.has_value()) break;
    DFL_CHECK(member.node->links().AddAddress(members_.name(other)).ok());
  }
  absl::StatusOr<PlanVersions::Given> given =
      versions_.For(i, member.version, member.follower.get());
  if (!given.ok()) {
    return Annotate(given.status(), absl::StrCat(name, " cannot start"));
  }
  DFL_CHECK(member.node->SetPlan(given->plan, std::move(trainer)).ok());
  if (member.follower != nullptr) {
    member.follower->Follow(given->document, given->plan);
  }
  (void)member.node->TakeUpCheckpoint(ports::Phase::kIdle);
  DFL_CHECK(member.node->Start().ok());
  return absl::OkStatus();
}

runtime::MembershipOptions Processes::MembershipOf(int64_t i,
                                                   uint64_t memory) const {
  runtime::MembershipOptions options;
  if (!scenario_.membership.has_value()) return options;
  const Member& member = members_[i];
  options.enabled = true;
  options.self = member.self;
  options.starts = static_cast<uint64_t>(member.boots);
  options.seed = memory;
  options.facts.addresses = {members_.name(i)};
  options.facts.rows = versions_.first().members[static_cast<size_t>(i)].rows;
  options.facts.pace = *scenario_.membership;
  options.facts.memory = memory;
  return options;
}

void Processes::Leave(int64_t i) {
  Member& member = members_[i];
  if (!member.up() || !scenario_.membership.has_value()) return;
  member.linked->membership().Leave();
}

void Processes::TakeDown(int64_t i) {
  Member& member = members_[i];
  if (!member.up()) return;
  models_received_ += member.node->models_received();
  if (member.phase == ports::Phase::kTraining) NoteStepGap(i);
  member.loop->Stop();
  members_.Update(i, [](Member& moved) { moved.node = nullptr; });
  member.follower.reset();
  member.linked.reset();
  member.transport.reset();
  member.loop.reset();
}

void Processes::NoteStepGap(int64_t i) {
  Member& member = members_[i];
  longest_step_gap_s_ =
      std::max(longest_step_gap_s_,
               absl::ToDoubleSeconds(scheduler_.Now() - member.step_began));
  member.step_began = scheduler_.Now();
}

int64_t Processes::models_received() const {
  int64_t sum = models_received_;
  for (const Member& member : members_) {
    if (member.up()) sum += member.node->models_received();
  }
  return sum;
}

// A shifted exponential, in whole nanoseconds.
absl::Duration Processes::GradientTime(int64_t i) {
  const ComputeSpec& compute = scenario_.compute;
  auto nanos = static_cast<double>(absl::ToInt64Nanoseconds(compute.time));
  if (compute.extra > absl::ZeroDuration()) {
    nanos += static_cast<double>(absl::ToInt64Nanoseconds(compute.extra)) *
             Exponential(members_[i].compute);
  }
  const auto factor = compute.factor.find(i);
  if (factor != compute.factor.end()) nanos *= factor->second;
  nanos *= members_[i].slowness;
  return absl::Nanoseconds(
      std::max<int64_t>(1, static_cast<int64_t>(std::floor(nanos))));
}

}  // namespace dfl::sim
