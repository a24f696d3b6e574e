// The format of data files, by their content. Room-internal.
#ifndef DFL_CONFIG_GUESS_FORMAT_H_
#define DFL_CONFIG_GUESS_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/node_settings.h"

namespace dfl::config {

// Whether the base name of `path` says that it is for evaluation.
bool IsTestName(const std::string& path);

// Format and paths of `settings`, the features before the labels where a format
// has a file for each; of an archive its keys, of text what separates columns.
// `remarks` gets what was taken for granted.
absl::Status GuessFormat(const std::vector<std::string>& paths,
                         DataSettings* settings,
                         std::vector<std::string>* remarks);

}  // namespace dfl::config

#endif  // DFL_CONFIG_GUESS_FORMAT_H_
