#include "daemon/sim/members.h"

#include <algorithm>

namespace dfl::sim {

using ports::Phase;

bool Member::in_run() const {
  return up() && (phase == Phase::kTraining || phase == Phase::kDegraded ||
                  phase == Phase::kFinished || phase == Phase::kStopped);
}

bool Member::done() const {
  return up() && (phase == Phase::kFinished || phase == Phase::kStopped);
}

Members::Members(const core::RunPlan& plan) : all_(plan.members.size()) {
  for (size_t i = 0; i < all_.size(); ++i) {
    all_[i].self = plan.members[i].node;
    all_[i].compute = Rng(DeriveSeed(plan.seed, "compute", i));
  }
}

bool Members::AreContacts(int64_t a, int64_t b) const {
  const std::vector<int64_t>& contacts = (*this)[a].contacts;
  return std::binary_search(contacts.begin(), contacts.end(), b);
}

int64_t Members::measured() const {
  return std::count_if(all_.begin(), all_.end(),
                       [](const Member& member) { return member.measured(); });
}

void Members::Count(const Member& member, int64_t sign) {
  if (member.up()) up_ += sign;
  if (member.done()) done_ += sign;
  if (!member.in_run()) return;
  in_run_ += sign;
  step_sum_ += sign * member.step;
  round_sum_ += sign * member.round;
}

}  // namespace dfl::sim
