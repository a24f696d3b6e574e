// A condition that `dflctl wait` waits for.
#ifndef DFL_CLI_NETWORK_WAIT_RULE_H_
#define DFL_CLI_NETWORK_WAIT_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/network/survey.h"
#include "client/types.h"

namespace dfl::cli {

struct WaitRule {
  enum class Kind {
    kPhase,    // phase=NAME: every member there is in that phase
    kStep,     // step>=N: every member there has done N steps
    kMembers,  // members>=N: so many are there
    kPlan,     // plan=adopted: the target's newest plan is in force on every
               // member there
  };
  Kind kind = Kind::kPhase;
  std::string text;  // as it was given
  client::Phase phase = client::Phase::kUnknown;
  int64_t number = 0;

  // Whether members have to be asked for their own status.
  bool needs_status() const {
    return kind == Kind::kPhase || kind == Kind::kStep;
  }
};

// Errors: INVALID_ARGUMENT says what is allowed, with the nearest name.
absl::StatusOr<WaitRule> ParseWaitRule(absl::string_view text);

// What keeps a rule from being met.
struct Missing {
  std::string node;  // "": no single one
  std::string why;
};

// Nothing when `rule` is met. Members that are dead or have left do not count.
// `plan` is the newest that the target holds; only kPlan looks at it.
std::vector<Missing> Unmet(const WaitRule& rule, const Survey& survey,
                           const client::PlanDocument& plan);

}  // namespace dfl::cli

#endif  // DFL_CLI_NETWORK_WAIT_RULE_H_
