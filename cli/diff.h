// What changes between two texts, line by line.
#ifndef DFL_CLI_DIFF_H_
#define DFL_CLI_DIFF_H_

#include <string>

#include "absl/strings/string_view.h"

namespace dfl::cli {

// Lines "- old" and "+ new", with up to `around` unchanged lines " same" around
// them. " ..." stands for omitted lines. "" when the texts are equal. With
// `color`, removed lines are red and added ones green.
std::string LineDiff(absl::string_view before, absl::string_view after,
                     bool color = false, int around = 2);

}  // namespace dfl::cli

#endif  // DFL_CLI_DIFF_H_
