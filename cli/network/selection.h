// Which members of the network a command means, and one daemon that answers for
// all of them.
#ifndef DFL_CLI_NETWORK_SELECTION_H_
#define DFL_CLI_NETWORK_SELECTION_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/context.h"
#include "client/control_client.h"
#include "client/types.h"

namespace dfl::cli {

// Adds --node a,b and --label site=north, which fill `selection`. Both may be
// repeated; who is meant by one of them is meant.
void AddSelection(CLI::App& command, client::MemberSelection& selection);

// Calls `ask` for the targets in their order until one of them is there, and
// returns what that one answers. So any of several targets does.
// Errors: as `ask` for the last target.
template <typename T>
absl::StatusOr<T> AskOne(
    Context& context,
    const std::function<absl::StatusOr<T>(client::ControlClient&)>& ask) {
  absl::StatusOr<T> answer = absl::UnavailableError("there is no target");
  for (size_t i = 0; i < context.targets().size(); ++i) {
    answer = ask(context.Client(i));
    if (!absl::IsUnavailable(answer.status()) &&
        !absl::IsDeadlineExceeded(answer.status())) {
      return answer;
    }
  }
  return answer;
}

// How long a member has to answer, where each call has `timeout`.
absl::Duration AnswerTime(absl::Duration timeout);

}  // namespace dfl::cli

#endif  // DFL_CLI_NETWORK_SELECTION_H_
