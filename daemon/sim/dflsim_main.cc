// dflsim: see dflsim.h.
#include <csignal>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/console/io.h"
#include "daemon/learner/opening/library_settings.h"
#include "daemon/sim/dflsim.h"
#include "daemon/sim/tasks/file_data_learners.h"

int main(int argc, char** argv) {
  dfl::learner::SetLibraryEnvironment();
  // A reader that left is noticed by the write.
  std::signal(SIGPIPE, SIG_DFL);
  dfl::console::Io io = dfl::console::ProcessIo();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // The clock of the user at the terminal. The simulated nodes never see it.
  const auto now = [] { return absl::Now(); };  // NOLINT(dfl-layers)
  return dfl::sim::Dflsim(arguments, io, now, dfl::sim::OpenFileDataLearners);
}
