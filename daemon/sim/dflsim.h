// dflsim as a function, so that tests can call it.
#ifndef DFL_SIM_DFLSIM_H_
#define DFL_SIM_DFLSIM_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/console/io.h"
#include "daemon/sim/tasks/data_task.h"

namespace dfl::sim {

// What a script may branch on.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         // the run did not get where its plan said, or a file
  kUsage = 2,          // the command line or the scenario is wrong
  kOurBug = 70,        // see --help
  kInterrupted = 130,  // Ctrl-C; what there was is written
};

// `arguments` without the program's name; `now` is real time, only used for
// progress; `learners` learn problems of data, null: they are refused. Returns
// the exit code.
int Dflsim(const std::vector<std::string>& arguments, console::Io& io,
           const std::function<absl::Time()>& now,
           const OpenDataLearners& learners = nullptr);

}  // namespace dfl::sim

#endif  // DFL_SIM_DFLSIM_H_
