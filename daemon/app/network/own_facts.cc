#include "daemon/app/network/own_facts.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "daemon/records/record_content.h"

namespace dfl::app {
namespace {

using ports::Condition;
using ports::Phase;

constexpr absl::string_view kCut = "...";

}  // namespace

std::string ReasonFrom(absl::string_view text) {
  constexpr auto kMax = static_cast<size_t>(ports::kMaxReasonBytes);
  std::string reason(text.substr(0, kMax));
  for (char& c : reason) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  if (text.size() > kMax) {
    reason.replace(kMax - kCut.size(), kCut.size(), kCut.data(), kCut.size());
  }
  return reason;
}

ports::MemberFacts OwnFacts::Tell(ports::MemberFacts facts, const Now& now) {
  const runtime::NodeStatus& status = now.status;
  facts.labels = now.labels;
  // Without a model they are those that were told at the start.
  if (status.train_rows > 0) facts.rows = status.train_rows;
  facts.reason.clear();
  if (now.drain.has_value()) {
    facts.condition = Condition::kDraining;
    facts.reason = ReasonFrom(*now.drain);
  } else if (!now.plan_fault.empty()) {
    facts.condition = Condition::kDegraded;
    facts.reason = ReasonFrom(now.plan_fault);
  } else if (status.phase == Phase::kDegraded ||
             status.phase == Phase::kFailed) {
    facts.condition = Condition::kDegraded;
    facts.reason = ReasonFrom(status.last_error.empty() ? status.phase_reason
                                                        : status.last_error);
  } else if (!status.checkpoint_error.empty()) {
    facts.condition = Condition::kDegraded;
    facts.reason = ReasonFrom(status.checkpoint_error);
  } else if (!status.data_error.empty()) {
    facts.condition = Condition::kDegraded;
    facts.reason = ReasonFrom(status.data_error);
  } else if (status.phase == Phase::kJoining) {
    facts.condition = Condition::kJoining;
  } else {
    facts.condition = Condition::kWell;
  }
  // A plan that waits for its boundary is not in force yet.
  if (status.plan_version == 0) {
    mark_ = 0;
    marked_ = nullptr;
  } else if (now.plan->version == status.plan_version && now.plan != marked_ &&
             status.pending_plan_version == 0) {
    marked_ = now.plan;
    mark_ = records::PlanMark(now.plan->text);
  }
  facts.plan_version = status.plan_version;
  facts.plan_hash = mark_;
  return facts;
}

}  // namespace dfl::app
