// From data files alone to the section data of a node's settings: the format is
// told by content, columns by their names, and the rest by reading the files
// and following what each refusal names as its cure.
#ifndef DFL_CONFIG_GUESS_DATA_H_
#define DFL_CONFIG_GUESS_DATA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/node_settings.h"
#include "daemon/data/report.h"

namespace dfl::config {

struct DataGuess {
  DataSettings settings;
  // What was taken for granted, a sentence each; a person should look at it.
  std::vector<std::string> remarks;
  data::DataReport report;  // of the files, read with these settings
};

// Files whose name has the word test, t10k, val, valid, validation or eval in
// it are taken as test files. Reads all of them, several times.
// Errors: NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT for files of several
// formats, of none that is known, or that no setting makes readable (the text
// is the last refusal).
absl::StatusOr<DataGuess> GuessData(const std::vector<std::string>& paths);

// The section as it stands in a configuration file, "data:" first. Settings
// that have their default are left out.
std::string DataSectionYaml(const DataSettings& settings);

}  // namespace dfl::config

#endif  // DFL_CONFIG_GUESS_DATA_H_
