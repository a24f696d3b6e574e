// What every command of dflsim works with.
#ifndef DFL_SIM_COMMAND_CONTEXT_H_
#define DFL_SIM_COMMAND_CONTEXT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/console/document.h"
#include "daemon/console/io.h"
#include "daemon/console/table.h"
#include "daemon/sim/dflsim.h"
#include "daemon/sim/tasks/data_task.h"

namespace dfl::sim {

class CommandContext {
 public:
  // All arguments must outlive it.
  CommandContext(console::Io& io, const std::function<absl::Time()>& now,
                 const OpenDataLearners& learners)
      : io(io), now(now), learners(learners) {}

  // Lines on stderr.
  void Say(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      io.err << "dflsim: " << console::Printable(std::string(line)) << "\n";
    }
  }
  ExitCode Fail(const absl::Status& status, ExitCode code = kFailed) {
    Say(status.message());
    return code;
  }
  // The command's one document on stdout.
  void Print(const console::Json& json,
             const std::function<std::string()>& table) {
    io.out << (output == "json"   ? console::ToJson(json)
               : output == "yaml" ? console::ToYaml(json)
                                  : table());
    io.out.flush();
  }

  console::Io& io;
  const std::function<absl::Time()>& now;
  const OpenDataLearners& learners;
  std::string output = "table";
};

}  // namespace dfl::sim

#endif  // DFL_SIM_COMMAND_CONTEXT_H_
