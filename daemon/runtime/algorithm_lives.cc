#include "daemon/runtime/algorithm_lives.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "daemon/base/rng.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {

void AlgorithmLives::End() {
  exchange_.StopAlgorithm();
  training_.learner().DropWaiting();
  own_.algorithm.Stop();
}

void AlgorithmLives::Make(int64_t step) {
  const core::RunPlan& plan = own_.run.plan();
  auto decisions = std::make_unique<core::SeededDecisions>(
      DeriveSeed(plan.seed, own_.self.name()),
      DeriveSeed(step, plan.algorithm.name));
  core::AlgorithmContext context;
  context.plan = own_.run.node();
  context.vectors = core::NodeVectors{
      own_.model.parameters(), own_.model.gradient(), own_.model.buffers()};
  context.batches_per_pass = training_.BatchesPerPass();
  context.train_rows = training_.train_rows();
  context.mass_code = exchange_.mass().code();
  auto made = core::CreateAlgorithm(*own_.run.algorithm(), std::move(context),
                                    *decisions);
  own_.algorithm.Install(std::move(made), std::move(decisions));
}

void AlgorithmLives::GoOn() {
  const core::Algorithm& present = *own_.algorithm.get();
  Restart(present.step(), present.pace(), present.idle());
}

void AlgorithmLives::MakeRoom() {
  End();
  joining_.WaitForNobody();
  own_.algorithm.BeginEpoch();
  training_.learner().BeginEpoch();
  const core::AlgorithmInfo* info = own_.run.algorithm();
  if (info && info->computes_on_copy) training_.learner().ComputeOnCopy();
}

void AlgorithmLives::Introduce() {
  exchange_.mass().FollowAll();
  exchange_.far_models().Begin();
  presence_.Introduce();
}

void AlgorithmLives::Restart(int64_t step, std::optional<core::Pace> pace,
                             int64_t idle) {
  MakeRoom();
  Make(step);
  exchange_.mass().BeginAlgorithm();
  own_.algorithm.Handle(core::Started{step, pace, idle});
  own_.progress.epochs().Count(own_.algorithm.pace().steps,
                               training_.BatchesPerPass());
  Introduce();
}

absl::Status AlgorithmLives::Resume(const Checkpoint& checkpoint,
                                    uint64_t before) {
  const CheckpointHead& head = checkpoint.head;
  MakeRoom();
  Make(head.step);
  std::set<NodeId> partners;
  for (const std::string& name : head.partners) partners.emplace(name);
  exchange_.mass().GoOn(head.tracker_epoch, partners);
  DFL_RETURN_IF_ERROR(
      own_.algorithm.Import(head.decisions, checkpoint.algorithm));
  own_.progress.epochs().SetState(head.epochs);
  own_.progress.epochs().Count(own_.algorithm.pace().steps,
                               training_.BatchesPerPass());
  if (before > 0) exchange_.mass().BeginAbove(before);
  Introduce();
  return absl::OkStatus();
}

}  // namespace dfl::runtime
