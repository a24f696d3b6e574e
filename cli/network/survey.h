// What all members of a network say of themselves, asked through one of them.
#ifndef DFL_CLI_NETWORK_SURVEY_H_
#define DFL_CLI_NETWORK_SURVEY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/console.h"
#include "client/control_client.h"
#include "client/types.h"

namespace dfl::cli {

// A member as the asked daemon believes it to be, with its own status.
struct MemberReport {
  client::Member member;
  // UNAVAILABLE where the member is gone and was not asked.
  absl::StatusOr<client::DaemonStatus> status = absl::UnavailableError("gone");
  double age_seconds = 0;  // of the status
};

struct Survey {
  std::string node;  // who answered for the network
  bool membership_off = false;
  std::vector<MemberReport> members;  // sorted by name

  // The report of the daemon that answered; null where it is not selected.
  const MemberReport* self() const;
};

// Reads the table of members and has all that are selected and there asked.
// Members that are gone are in the survey, too, without a status. A member that
// does not answer is no error of the call. `go_on` may be null; once it is
// false, no more answers are waited for.
// Errors: as ControlClient::Members and AskMembers.
absl::StatusOr<Survey> TakeSurvey(client::ControlClient& daemon,
                                  const client::MemberSelection& selection,
                                  absl::Duration within,
                                  const std::function<bool()>& go_on = nullptr);

// Whether somebody who should have answered did not.
bool Failed(const MemberReport& report);

// "box-3: no answer within 5s": one line for each that failed.
std::vector<std::string> Failures(const Survey& survey);

Json ToJsonValue(const client::Member& member);
// A member, with "ok", "age_seconds" and "status", or "error".
Json ToJsonValue(const MemberReport& report);

// What a member's plan_hash is that has this document in force.
std::string PlanHashOf(const std::string& yaml);

// "member", "degraded", "suspect", ... for people.
std::string StateText(const client::Member& member);
// "site=north, rack=2", "-".
std::string LabelsText(const client::Member& member);
// "0 s", "12 s", "-" without a status.
std::string AgeText(const MemberReport& report);

}  // namespace dfl::cli

#endif  // DFL_CLI_NETWORK_SURVEY_H_
