#include "tests/unit/runtime/sim_cluster.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/simports/analytic_learner.h"
#include "gtest/gtest.h"

namespace dfl::runtime {

void EventLog::Report(const ports::NodeEvent& event) {
  all_.emplace_back(scheduler_.Now(), event);
  simports::TraceDigest& trace = scheduler_.trace();
  trace.Add(event.index());
  trace.Add(static_cast<uint64_t>(
      absl::ToInt64Nanoseconds(scheduler_.Now() - absl::UnixEpoch())));
  if (const auto* step = std::get_if<ports::StepFinished>(&event)) {
    trace.Add(static_cast<uint64_t>(step->step));
  }
}

SimCluster::SimCluster(ClusterOptions options)
    : options_(std::move(options)),
      network_(std::make_unique<simports::SimNetwork>(scheduler_, options_.seed,
                                                      options_.network)),
      slots_(options_.nodes) {
  for (int64_t i = 0; i < size(); ++i) {
    slots_[i].log = std::make_unique<EventLog>(scheduler_);
    slots_[i].disk = std::make_unique<simports::SimFiles>();
    Boot(i);
  }
}

SimCluster::~SimCluster() {
  for (int64_t i = 0; i < size(); ++i) Crash(i);
}

NodeId SimCluster::id(int64_t i) const { return NodeId(absl::StrCat("n", i)); }

std::string SimCluster::address(int64_t i) const {
  return absl::StrCat("n", i, ":1");
}

void SimCluster::Boot(int64_t i) {
  Slot& slot = slots_[i];
  ++slot.incarnation;
  slot.loop = std::make_unique<simports::SimLoop>(scheduler_);
  slot.loop->set_worker_delay(options_.worker_delay);
  simports::SimTransportOptions transport;
  transport.node = id(i);
  transport.incarnation =
      DeriveSeed(options_.seed, id(i).name(), slot.incarnation);
  transport.address = address(i);
  transport.max_queued_bytes = options_.max_queued_bytes;
  slot.transport = std::make_unique<simports::SimTransport>(
      *network_, *slot.loop, transport);
  NodeOptions node;
  node.self = id(i);
  node.incarnation = transport.incarnation;
  node.offences = options_.offences;
  node.transfers = options_.transfers;
  slot.checkpoints = std::make_unique<store::CheckpointFiles>(*slot.disk);
  if (options_.disks) {
    node.checkpoints.store = slot.checkpoints.get();
    node.checkpoints.worker = slot.loop.get();
  }
  MembershipOptions membership;
  membership.enabled = options_.membership;
  membership.self = id(i);
  membership.starts = slot.incarnation;
  membership.seed = transport.incarnation;
  membership.facts = options_.facts(i);
  membership.facts.addresses = {address(i)};
  membership.facts.memory = transport.incarnation;
  slot.node = std::make_unique<LinkedNode>(
      node, *slot.loop, *slot.transport, *slot.loop, *slot.log, RecordOptions(),
      std::move(membership));
  slot.follower = std::make_unique<PlanFollower>(id(i), *slot.loop, *slot.loop,
                                                 slot.node->membership(),
                                                 slot.node->node());
  if (options_.dial) {
    for (int64_t j = 0; j < i; ++j) {
      EXPECT_TRUE(slot.node->links().AddAddress(address(j)).ok());
    }
  }
}

void SimCluster::Crash(int64_t i) {
  Slot& slot = slots_[i];
  if (slot.node == nullptr) return;
  slot.loop->Stop();
  slot.follower.reset();
  slot.node.reset();
  slot.transport.reset();
  slot.trainer = nullptr;
  slot.learners.clear();
  slot.loop.reset();
}

void SimCluster::Restart(int64_t i) {
  DFL_CHECK(!up(i));
  Boot(i);
  if (slots_[i].has_plan) {
    const core::RunPlan plan = slots_[i].plan;
    EXPECT_TRUE(SetPlan(i, plan).ok());
  }
}

void SimCluster::RestartFromDisk(int64_t i) {
  Restart(i);
  (void)node(i).TakeUpCheckpoint(ports::Phase::kIdle);
}

void SimCluster::Shutdown(int64_t i) {
  bool over = false;
  node(i).Suspend([&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    over = true;
  });
  EXPECT_TRUE(RunUntil([&] { return over; }));
  Crash(i);
}

void SimCluster::ShutdownAll() {
  int64_t over = 0;
  for (int64_t i = 0; i < size(); ++i) {
    node(i).Suspend([&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      ++over;
    });
  }
  EXPECT_TRUE(RunUntil([&] { return over == size(); }));
  for (int64_t i = 0; i < size(); ++i) Crash(i);
}

core::RunPlan SimCluster::MakePlan(const std::string& algorithm,
                                   core::KnobValues knobs) const {
  core::RunPlan plan;
  plan.version = 1;
  plan.run_id = "run-1";
  plan.seed = options_.seed;
  for (int64_t i = 0; i < size(); ++i) {
    plan.members.push_back(core::MemberSpec{.node = id(i)});
  }
  plan.model.kind = "linear";
  plan.model.classes = 0;
  plan.model.hidden.clear();
  plan.batch_size = 16;
  plan.algorithm.name = algorithm;
  plan.algorithm.knobs = std::move(knobs);
  plan.codec.format = core::MessageFormat{};
  plan.evaluation.every_steps = 0;
  return plan;
}

absl::Status SimCluster::SetPlan(int64_t i, const core::RunPlan& plan,
                                 bool fresh) {
  Slot& slot = slots_[i];
  absl::StatusOr<core::DerivedPlan> derived =
      options_.membership ? DeriveAmong(plan, slot.follower->Present(), id(i))
                          : core::CheckAndDerive(plan, id(i));
  if (!derived.ok()) return derived.status();
  std::unique_ptr<simports::SimTrainer> trainer;
  if (fresh || slot.learners.empty()) {
    slot.learners.push_back(
        options_.learner ? options_.learner(i)
                         : std::make_unique<simports::FakeLearner>(1000, 7));
    trainer = std::make_unique<simports::SimTrainer>(
        *slot.loop, *slot.learners.back(), options_.gradient_delay(i));
    slot.trainer = trainer.get();
  }
  const absl::Status set =
      slot.node->node().SetPlan(*derived, std::move(trainer));
  if (set.ok()) {
    slot.follower->Follow(std::make_shared<const core::RunPlan>(plan),
                          *derived);
  }
  if (set.ok()) {
    slot.has_plan = true;
    slot.plan = plan;
  }
  return set;
}

void SimCluster::SetPlanEverywhere(const core::RunPlan& plan) {
  for (int64_t i = 0; i < size(); ++i) {
    if (!up(i)) continue;
    const absl::Status set = SetPlan(i, plan);
    EXPECT_TRUE(set.ok()) << set;
  }
}

void SimCluster::StartAll() {
  for (int64_t i = 0; i < size(); ++i) {
    if (!up(i)) continue;
    const absl::Status started = node(i).Start();
    EXPECT_TRUE(started.ok()) << started;
  }
}

void SimCluster::Run(const core::RunPlan& plan) {
  SetPlanEverywhere(plan);
  StartAll();
}

absl::Status SimCluster::RenewTrainer(int64_t i,
                                      std::unique_ptr<ports::Learner> learner) {
  Slot& slot = slots_[i];
  slot.learners.push_back(std::move(learner));
  auto trainer = std::make_unique<simports::SimTrainer>(
      *slot.loop, *slot.learners.back(), options_.gradient_delay(i));
  simports::SimTrainer* const given = trainer.get();
  absl::Status renewed = slot.node->node().RenewTrainer(std::move(trainer));
  if (renewed.ok()) {
    slot.trainer = given;
  } else {
    slot.learners.pop_back();
  }
  return renewed;
}

int64_t SimCluster::LowestStep() {
  int64_t lowest = INT64_MAX;
  for (int64_t i = 0; i < size(); ++i) {
    if (up(i)) lowest = std::min(lowest, step(i));
  }
  return lowest;
}

bool SimCluster::AllFinished() {
  for (int64_t i = 0; i < size(); ++i) {
    if (node(i).phase() != ports::Phase::kFinished) return false;
  }
  return true;
}

std::vector<float> SimCluster::parameters(int64_t i) {
  const absl::Span<const float> values = node(i).parameters();
  return {values.begin(), values.end()};
}

bool SimCluster::RunToStep(int64_t steps, absl::Duration limit) {
  return RunUntil([&] { return LowestStep() >= steps; }, limit);
}

absl::Duration SimCluster::LongestGap(int64_t i, absl::Time from,
                                      absl::Time to) const {
  absl::Time last = from;
  absl::Duration longest;
  for (const auto& [when, event] : log(i).all()) {
    if (when < from || when > to) continue;
    if (!std::holds_alternative<ports::StepFinished>(event)) continue;
    longest = std::max(longest, when - last);
    last = when;
  }
  return std::max(longest, to - last);
}

uint64_t SimCluster::Digest() {
  simports::TraceDigest digest;
  digest.Add(scheduler_.trace().value());
  for (int64_t i = 0; i < size(); ++i) {
    if (!up(i)) continue;
    for (const float value : node(i).parameters()) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      digest.Add(bits);
    }
  }
  return digest.value();
}

void RunTwice(const ClusterOptions& options,
              const std::function<void(SimCluster&)>& scenario) {
  SCOPED_TRACE(absl::StrCat("seed ", options.seed));
  uint64_t first = 0;
  {
    SimCluster cluster(options);
    scenario(cluster);
    first = cluster.Digest();
  }
  if (testing::Test::HasFailure()) return;
  SimCluster cluster(options);
  scenario(cluster);
  EXPECT_EQ(first, cluster.Digest()) << "the same seed gave another run";
}

}  // namespace dfl::runtime
