#include "cli/plan_wait.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/network/survey.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);
// What is degraded heals by itself, but not while a person looks on.
constexpr absl::Duration kDegradedPatience = absl::Seconds(5);

using Answers = std::vector<Answer<client::ApplyPlanResult>>;

// Until every target that took the plan says it is in force.
void WaitForTargets(Context& context, absl::Time deadline, uint64_t version,
                    absl::Duration timeout, Answers& answers) {
  std::vector<bool> done(answers.size(), false);
  for (size_t i = 0; i < answers.size(); ++i) done[i] = !answers[i].result.ok();
  while (std::find(done.begin(), done.end(), false) != done.end()) {
    const auto states = context.AskAll<client::DaemonStatus>(
        [](client::ControlClient& daemon) { return daemon.Status(); });
    const bool late = SteadyNow() >= deadline;
    for (size_t i = 0; i < states.size(); ++i) {
      if (done[i]) continue;
      const auto& state = states[i].result;
      if (state.ok() && state->node.plan_version >= version) {
        done[i] = true;
      } else if (late) {
        done[i] = true;
        answers[i].result = absl::DeadlineExceededError(absl::StrCat(
            answers[i].target, ": took plan version ", version,
            ", but it is not in force after ", absl::FormatDuration(timeout),
            state.ok() ? absl::StrCat("; the node is ",
                                      client::PhaseName(state->node.phase))
                       : absl::StrCat("; ", state.status().message())));
      }
    }
    if (std::find(done.begin(), done.end(), false) != done.end()) {
      absl::SleepFor(kPoll);
    }
  }
}

// ABORTED when the daemon holds another plan by now.
absl::Status CheckStillNewest(client::ControlClient& daemon,
                              const AppliedPlan& plan) {
  const absl::StatusOr<client::PlanDocument> held = daemon.Plan();
  if (!held.ok() || held->yaml == plan.yaml || held->version < plan.version) {
    return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrCat(
      "another plan, of version ", held->version,
      ", has taken the place of "
      "yours of version ",
      plan.version,
      ": somebody else changed it; look at it (dflctl plan show) and try "
      "again"));
}

std::string WhyNot(const client::Member& member) {
  std::string why = client::MemberStateName(member.state);
  if (!member.reason.empty()) absl::StrAppend(&why, ": ", member.reason);
  if (member.suspect) why += "; it does not answer at the moment";
  return absl::StrCat(why,
                      member.plan_version == 0
                          ? "; no plan is in force"
                          : absl::StrCat("; plan version ", member.plan_version,
                                         " is in force"));
}

struct Look {
  Adoption adoption;
  bool all_degraded = true;  // of those that are missing
};

Look LookAt(const client::MemberTable& table, const AppliedPlan& plan) {
  const std::string hash = PlanHashOf(plan.yaml);
  Look look;
  for (const client::Member& member : table.members) {
    if (!member.present() || member.state == client::MemberState::kDraining) {
      continue;
    }
    if (member.plan_version == plan.version && member.plan_hash == hash) {
      ++look.adoption.adopted;
      continue;
    }
    look.all_degraded =
        look.all_degraded && member.state == client::MemberState::kDegraded;
    look.adoption.missing.push_back({member.node, WhyNot(member)});
  }
  return look;
}

}  // namespace

Adoption WaitAdopted(Context& context, absl::Duration timeout,
                     const AppliedPlan& plan, Answers& answers) {
  const absl::Time deadline = SteadyNow() + timeout;
  // A target that has not adopted it in time can still name who else has not.
  client::ControlClient* daemon = nullptr;
  for (size_t i = 0; i < answers.size() && daemon == nullptr; ++i) {
    if (answers[i].result.ok()) daemon = &context.Client(i);
  }
  WaitForTargets(context, deadline, plan.version, timeout, answers);
  if (daemon == nullptr) return {};
  std::optional<absl::Time> degraded_since;
  while (true) {
    const absl::Status newest = CheckStillNewest(*daemon, plan);
    if (!newest.ok()) return {newest, 0, {}};
    const auto table = daemon->Members({});
    // A daemon without membership, or of another release, tells of itself.
    if (absl::IsUnimplemented(table.status()) ||
        (table.ok() && table->membership_off)) {
      return {};
    }
    const absl::Time now = SteadyNow();
    if (!table.ok()) {
      if (now >= deadline) return {table.status(), 0, {}};
      absl::SleepFor(kPoll);
      continue;
    }
    Look look = LookAt(*table, plan);
    if (look.adoption.missing.empty()) return look.adoption;
    if (!look.all_degraded) {
      degraded_since.reset();
    } else if (!degraded_since.has_value()) {
      degraded_since = now;
    }
    if (now >= deadline || (degraded_since.has_value() &&
                            now - *degraded_since >= kDegradedPatience)) {
      return look.adoption;
    }
    absl::SleepFor(kPoll);
  }
}

ExitCode ConcludeAdoption(Context& context, const Adoption& adoption) {
  if (!adoption.status.ok()) return context.Fail(adoption.status);
  if (adoption.missing.empty()) return kOk;
  for (const NotAdopted& missing : adoption.missing) {
    context.Say(
        absl::StrCat(missing.node, " has not adopted it: ", missing.why));
  }
  return adoption.adopted > 0 ? kPartlyDone : kTimeout;
}

}  // namespace dfl::cli
