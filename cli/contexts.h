// Contexts: names for networks, each with its targets and the caller's
// certificate there, and which of them is the current one. They are kept in
// contexts.json in the user's folder of networks (~/.config/dfl), readable by
// their owner alone:
//
//   {"current": "plant-4",
//    "contexts": {"plant-4": {"targets": ["box-2:7601"],
//                             "identity": "/home/me/.config/dfl/plant-4/..."}}}
#ifndef DFL_CLI_CONTEXTS_H_
#define DFL_CLI_CONTEXTS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace dfl::cli {

struct NamedContext {
  std::vector<std::string> targets;  // as --target takes them; at least one
  std::string identity;              // as --identity takes it; "": none
};

class Contexts {
 public:
  using Environment = std::map<std::string, std::string>;

  // Those of the user. Without a file, or a home, there are none.
  // Errors: FAILED_PRECONDITION when the file is damaged; else as
  // config::ReadTextFile.
  static absl::StatusOr<Contexts> Load(const Environment& environment);

  const std::string& path() const { return path_; }  // "": no home
  const std::map<std::string, NamedContext>& all() const { return all_; }
  const std::string& current() const { return current_; }  // "": none

  // Errors: INVALID_ARGUMENT names the nearest one and all that there are.
  // `who` begins the text, such as "--context".
  absl::StatusOr<NamedContext> Find(const std::string& who,
                                    const std::string& name) const;

  // Adds or replaces it. The first one becomes the current one.
  // Errors: INVALID_ARGUMENT for a name that is not of letters, digits, '.',
  // '-' and '_', or longer than 64.
  absl::Status Put(const std::string& name, NamedContext context);
  // Errors: as Find.
  absl::Status Use(const std::string& name);
  // Afterwards there is no current one if it was that.
  // Errors: as Find.
  absl::Status Remove(const std::string& name);

  // Writes the file, whole or not at all.
  // Errors: FAILED_PRECONDITION when the user has no home; else as
  // dfl::FileError.
  absl::Status Save() const;

 private:
  explicit Contexts(std::string path) : path_(std::move(path)) {}
  absl::Status Parse(const std::string& text);

  std::string path_;
  std::map<std::string, NamedContext> all_;
  std::string current_;
};

}  // namespace dfl::cli

#endif  // DFL_CLI_CONTEXTS_H_
