// dflsim: see dflsim.h.
#include <csignal>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/console/io.h"
#include "daemon/sim/dflsim.h"
#ifdef DFL_HAVE_TORCH
#include "daemon/sim/tasks/torch_data_learners.h"
#endif

int main(int argc, char** argv) {
  // A reader that left is noticed by the write.
  std::signal(SIGPIPE, SIG_DFL);
  dfl::console::Io io = dfl::console::ProcessIo();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // The clock of the user at the terminal. The simulated nodes never see it.
  const auto now = [] { return absl::Now(); };  // NOLINT(dfl-layers)
  dfl::sim::OpenDataLearners learners;
#ifdef DFL_HAVE_TORCH
  learners = dfl::sim::OpenTorchDataLearners;
#endif
  return dfl::sim::Dflsim(arguments, io, now, learners);
}
