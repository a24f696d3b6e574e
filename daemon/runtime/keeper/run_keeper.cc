#include "daemon/runtime/keeper/run_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace dfl::runtime {

RunKeeper::RunKeeper(ports::Files& files, const StateCodec& codec,
                     std::string node)
    : files_(files, codec) {
  state_.node = std::move(node);
}

absl::StatusOr<RunKeeper::Begun> RunKeeper::Begin() {
  DFL_ASSIGN_OR_RETURN(StateFiles::Loaded loaded, files_.Load());
  loaded.state.node = std::move(state_.node);
  state_ = std::move(loaded.state);
  ++state_.starts;
  return Begun{loaded.found, std::move(loaded.note)};
}

absl::StatusOr<RunKeeper::Offer> RunKeeper::Judge(
    const KeptPlan& plan, std::optional<uint64_t> expected_version) const {
  const uint64_t held = known()->version;
  const bool same = plan.text == known()->text;
  // However it came to be here, e.g. under another address of this node.
  if (same && accepted_version_ == held) return Offer::kUnchanged;
  if (expected_version && *expected_version != held) {
    return absl::AbortedError(absl::StrCat(
        "this node holds plan version ", held, ", not ", *expected_version,
        ": somebody else changed it; look at it (dflctl plan show) and try "
        "again"));
  }
  if (same) return Offer::kNew;
  if (plan.version <= held) {
    return absl::AbortedError(
        absl::StrCat("this node holds plan version ", held,
                     " and another document came with version ", plan.version,
                     "; a change must have a higher version"));
  }
  return Offer::kNew;
}

RunKeeper::Offer RunKeeper::JudgeOrdered(const KeptPlan& plan) const {
  const bool same = plan.text == known()->text;
  return same && accepted_version_ == known()->version ? Offer::kUnchanged
                                                       : Offer::kNew;
}

absl::Status RunKeeper::Accept(KeptPlan plan, DesiredPhase in_new_run) {
  before_ = Before{state_.plan, state_.desired_phase, accepted_version_};
  if (state_.plan->run_id != plan.run_id) state_.desired_phase = in_new_run;
  accepted_version_ = plan.version;
  state_.plan = std::make_shared<const KeptPlan>(std::move(plan));
  const absl::Status saved = Save();
  if (!saved.ok()) PutBack();
  return saved;
}

absl::Status RunKeeper::TakeBack() {
  if (!before_) return absl::OkStatus();
  PutBack();
  return Save();
}

void RunKeeper::PutBack() {
  state_.plan = std::move(before_->plan);
  state_.desired_phase = before_->desired_phase;
  accepted_version_ = before_->accepted_version;
  before_.reset();
}

absl::Status RunKeeper::TakeUp(KeptPlan plan) {
  before_.reset();
  accepted_version_ = plan.version;
  state_.plan = std::make_shared<const KeptPlan>(std::move(plan));
  return Save();
}

absl::Status RunKeeper::Want(DesiredPhase phase, const std::string& run_id) {
  if (state_.plan->run_id != run_id) return absl::OkStatus();
  state_.desired_phase = phase;
  return Save();
}

absl::Status RunKeeper::Obey(DesiredPhase phase, const std::string& run_id,
                             uint64_t mark) {
  state_.obeyed_order = mark;
  return Want(phase, run_id);
}

absl::Status RunKeeper::AddPeer(const std::string& address) {
  state_.added_peers.push_back(address);
  const absl::Status saved = Save();
  if (!saved.ok()) state_.added_peers.pop_back();
  return saved;
}

absl::Status RunKeeper::RemovePeer(const std::string& address) {
  std::vector<std::string>& added = state_.added_peers;
  added.erase(std::remove(added.begin(), added.end(), address), added.end());
  return Save();
}

}  // namespace dfl::runtime
