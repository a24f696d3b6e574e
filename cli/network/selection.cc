#include "cli/network/selection.h"

#include <algorithm>

#include "absl/time/time.h"

namespace dfl::cli {

void AddSelection(CLI::App& command, client::MemberSelection& selection) {
  command
      .add_option("--node", selection.nodes,
                  "Only these members: box-1,box-2; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--label", selection.labels,
                  "Only members with this label: site=north; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false);
}

absl::Duration AnswerTime(absl::Duration timeout) {
  return std::clamp(timeout / 2, absl::Milliseconds(100), absl::Seconds(60));
}

}  // namespace dfl::cli
